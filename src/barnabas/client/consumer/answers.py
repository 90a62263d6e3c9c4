"""What a fetch answer says of one partition, and what follows from it."""

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
from barnabas.records.beneath import bytes_beneath

NO_REPLICA: Final = -1

# The broker is not the one to ask, or not for the moment: look up the leader and ask again.
_MOVED: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        # Upkeep says whether the topic is gone, once the metadata says so.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)
# It passes without our doing anything: the broker has yet to hear of its epoch, or had a mishap.
_PASSING: Final = frozenset((ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR))


class Asked(NamedTuple):
    """One partition of a fetch that is under way."""

    one: Assigned
    generation: int
    offset: int


def take_answer(
    core: Core, asked: Asked, data: PartitionData, *, node: int, endpoints: list[NodeEndpoint]
) -> bool:
    """Do what the answer says. True if it brought something to read."""
    one = asked.one
    # The offset may be another one in the same generation, if two brokers were asked while it moved.
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
        # Another fetcher has it now, and it may not be running yet.
        core.changed()
        return False
    if not data.records:
        take_silence(core, one)
        return False
    return _take_records(core, one, data, node)


def take_silence(core: Core, one: Assigned) -> None:
    """Nothing new: perhaps because the end is reached."""
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
    """The bytes that hold them, and where in them they are.

    These are the whole answer if most of it is of this partition. Otherwise it is a copy, so that the answer
    need not be kept for as long as the last of its partitions is unread.
    """
    found = bytes_beneath(records) if isinstance(records, memoryview) else None
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
        # A follower may lag behind what was read from the leader, which is asked next.
        one.preferred = None
        core.changed()
    elif one.queue:
        # It may be in range again by the time that this is read; if not, it is told then.
        one.no_ahead = True
    else:
        core.reset(one)
