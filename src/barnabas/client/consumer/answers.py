"""Handles one partition of a fetch response."""

from typing import Final, NamedTuple

from barnabas.base.errors import Malformed
from barnabas.client.consumer.arrived import Arrived
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.decode import reach
from barnabas.client.consumer.errors import CorruptRecords
from barnabas.client.consumer.positions import Assigned
from barnabas.client.errors import refused
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import NodeEndpoint, PartitionData
from barnabas.protocol.schema.fields import Records
from barnabas.records.buffers import bytes_of_view

NO_REPLICA: Final = -1

# This broker cannot serve the partition now: look up the leader and retry.
_MOVED: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        # Upkeep reports a deleted topic once the metadata confirms it.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)
# Transient errors: the broker has not seen the epoch yet, or had an internal error.
_PASSING: Final = frozenset((ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR))


class Asked(NamedTuple):
    """One partition of a fetch in flight."""

    one: Assigned
    generation: int
    offset: int


def take_answer(
    core: Core, asked: Asked, data: PartitionData, *, node: int, endpoints: list[NodeEndpoint]
) -> bool:
    """Apply the response. Return True if it brought records."""
    one = asked.one
    # The offset can differ within a generation if the leader moved and two brokers were asked.
    if not core.is_current(one, asked.generation) or one.fetch_offset != asked.offset:
        return False
    if data.error_code != ErrorCode.NONE:
        _take_error(core, one, ErrorCode.of(data.error_code), data, endpoints)
        return False
    one.failures, one.missing, one.no_ahead = 0, 0, False
    _take_watermarks(one, data)
    if data.preferred_read_replica != NO_REPLICA:
        one.preferred = data.preferred_read_replica
        lasts_ms = core.settings.metadata_max_age_ms
        one.preferred_until_ms = core.cluster.ports.clock.monotonic_ms() + lasts_ms
        # Another fetcher takes over, and may have to be started.
        core.changed()
        return False
    if not data.records:
        take_silence(core, one)
        return False
    return _take_records(core, one, data, node)


def take_silence(core: Core, one: Assigned) -> None:
    """Handle a response without records: report the end of the partition if it is reached."""
    end = one.end_offset(committed=core.settings.read_committed)
    if 0 <= end <= one.fetch_offset:
        core.delivery.reach_end(one)
        core.news.set()


def _take_watermarks(one: Assigned, data: PartitionData) -> None:
    if data.high_watermark >= 0:
        one.high_watermark = data.high_watermark
    if data.last_stable_offset >= 0:
        one.last_stable_offset = data.last_stable_offset
    if data.log_start_offset >= 0:
        one.log_start_offset = data.log_start_offset


def _take_records(core: Core, one: Assigned, data: PartitionData, node: int) -> bool:
    records, start, end = _bytes_of(data.records or b"")
    try:
        whole, next_offset, last_epoch = reach(records, start, end)
    except Malformed as error:
        core.stop(one, CorruptRecords(one.tp, one.fetch_offset, str(error)))
        return False
    if next_offset <= one.fetch_offset:
        why = f"{end - start} bytes of records contain no complete batch that ends after it"
        core.stop(one, CorruptRecords(one.tp, one.fetch_offset, why))
        return False
    committed = core.settings.read_committed
    aborted = data.aborted_transactions if committed else None
    arrived = Arrived(
        data=records,
        start=start,
        whole=whole,
        from_offset=one.fetch_offset,
        next_offset=next_offset,
        last_epoch=last_epoch,
        end_offset=one.end_offset(committed=committed),
        aborted=[(each.first_offset, each.producer_id) for each in aborted or ()],
        node=node,
    )
    core.delivery.arrive(one, arrived)
    core.positions.serve_last(one)
    core.news.set()
    return True


def _bytes_of(records: Records) -> tuple[bytes, int, int]:
    """Return a buffer with the records, and their start and end in it.

    The buffer is the whole response if most of it belongs to this partition. Otherwise the records are
    copied, so that an unread partition does not keep the whole response in memory.
    """
    found = bytes_of_view(records) if isinstance(records, memoryview) else None
    if found is not None and 2 * len(records) >= len(found[0]):
        data, start = found
        return data, start, start + len(records)
    copy = bytes(records)
    return copy, 0, len(copy)


def _take_error(
    core: Core, one: Assigned, code: ErrorCode, data: PartitionData, endpoints: list[NodeEndpoint]
) -> None:
    if code is ErrorCode.OFFSET_OUT_OF_RANGE:
        _take_out_of_range(core, one)
    elif code in _MOVED:
        hint = data.current_leader
        if hint is None or not core.cluster.take_hint(one.tp, hint.leader_id, hint.leader_epoch, endpoints):
            core.forget_leader(one, code.name)
        else:
            one.preferred = None
            core.changed()
    elif code in _PASSING:
        one.preferred = None
        core.failed(one, code.name)
    elif code is ErrorCode.CORRUPT_MESSAGE:
        core.stop(one, CorruptRecords(one.tp, one.fetch_offset, "the broker returned CORRUPT_MESSAGE"))
    else:
        core.stop(one, refused(code, about=f"partition {one.tp}"))


def _take_out_of_range(core: Core, one: Assigned) -> None:
    if one.preferred is not None:
        # A follower may lag behind the position: ask the leader next.
        one.preferred = None
        core.changed()
    elif one.queue:
        # The offset may be in range once the queue is read; if not, the error is handled then.
        one.no_ahead = True
    else:
        core.reset(one)
