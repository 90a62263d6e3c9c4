"""The timestamp of the first record at or after an offset: usually one small Fetch per partition.

It is the age of the first record that a group has not read. Offsets without a record are skipped: control
batches, compacted records, and offsets before the start of the log. Records of aborted transactions count, as
they do in a group's lag.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from barnabas.base.errors import Malformed
from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.client.admin.call import Call, NegotiatedApi, Outcome, check
from barnabas.client.admin.leaders import shares_of
from barnabas.client.admin.records import OffsetSpec, list_offsets
from barnabas.client.consumer.decode import BatchReader, find_complete_batches
from barnabas.client.errors import ClientError, Refused
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

# Partitions read concurrently, which bounds the memory of their responses.
PARTITIONS_AT_ONCE: Final = 16
# A broker returns the first batch whole even above the limit (KIP-74). If it has no record, larger fetches
# follow, to skip many small batches quickly.
_FIRST_BYTES: Final = 1
_NEXT_BYTES: Final = 256 * 1024
_IDS_FROM: Final = 13
_NO_EPOCH: Final = -1


async def first_times(
    call: Call, wanted: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Outcome[int | None]]:
    """Return timestamps in ms for each partition and offset; -1: record without one, None: no record."""
    room = asyncio.Semaphore(PARTITIONS_AT_ONCE)

    async def one(leader: int, tp: TopicPartition) -> Outcome[int | None]:
        async with room:
            try:
                return await _first_time(call, leader, tp, wanted[tp])
            except ClientError as error:
                return error

    async def attempt(pending: list[TopicPartition]) -> dict[TopicPartition, Outcome[int | None]]:
        shares, found = await shares_of(call, pending, None)
        asked: dict[TopicPartition, asyncio.Task[Outcome[int | None]]] = {}
        async with asyncio.TaskGroup() as tasks:
            for leader, share in shares.items():
                for tp in share:
                    asked[tp] = tasks.create_task(one(leader, tp))
        found.update({tp: task.result() for tp, task in asked.items()})
        return found

    return await call.retry_items("FETCH", wanted, attempt, retries_unknown=True)


async def _first_time(call: Call, leader: int, tp: TopicPartition, offset: int) -> int | None:
    """Fetch until a record or the end of the log."""
    bytes_max = _FIRST_BYTES
    while True:
        entry = await _fetch(call, leader, tp, offset, bytes_max)
        if entry.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            start = await _start(call, tp)
            if start is None or start <= offset:
                # The offset is after the end: the log was truncated, or the offset never existed.
                return None
            offset = start
            continue
        check(entry.error_code, about=str(tp))
        timestamp, following = _read(tp, entry, offset)
        if timestamp is not None:
            return timestamp
        if following <= offset or following >= entry.high_watermark:
            return None
        offset, bytes_max = following, _NEXT_BYTES


async def _start(call: Call, tp: TopicPartition) -> int | None:
    spec = {tp: int(OffsetSpec.EARLIEST)}
    outcome = (await list_offsets(call, spec, isolation="read_uncommitted"))[tp]
    if isinstance(outcome, ClientError):
        raise outcome
    return outcome.offset


async def _fetch(call: Call, leader: int, tp: TopicPartition, offset: int, bytes_max: int) -> PartitionData:
    def make(api: NegotiatedApi) -> object:
        known = call.cluster.known_leader(tp)
        row = FetchPartition(
            partition=tp.partition,
            current_leader_epoch=_NO_EPOCH if known is None else known[1],
            fetch_offset=offset,
            partition_max_bytes=bytes_max,
        )
        topic = FetchTopic(topic=tp.topic, topic_id=_topic_id(call, tp), partitions=[row])
        return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=bytes_max, topics=[topic])

    newest = None if _topic_id(call, tp) != ZERO_UUID else _IDS_FROM - 1
    answer: Any = await call.ask(ApiKey.FETCH, make, leader, newest=newest)
    check(answer.error_code, about=str(tp))
    rows = [row for topic in answer.responses for row in topic.partitions]
    if len(rows) != 1:
        why = "missing in the broker's response"
        silent = Refused(ErrorCode.UNKNOWN_SERVER_ERROR, about=str(tp), message=why)
        # A throttled client gets empty fetch responses (KIP-219).
        silent.retriable = answer.throttle_time_ms > 0
        raise silent
    found: PartitionData = rows[0]
    return found


def _topic_id(call: Call, tp: TopicPartition) -> Uuid:
    topic = call.cluster.metadata.topics.get(tp.topic)
    return ZERO_UUID if topic is None else topic.topic_id


def _read(tp: TopicPartition, entry: PartitionData, offset: int) -> tuple[int | None, int]:
    """Return the timestamp of the first record, or None, and the next offset."""
    data = bytes(entry.records or b"")
    try:
        whole, _, _ = find_complete_batches(data, 0, len(data))
        reader = BatchReader(tp.topic, tp.partition, data, 0, whole, offset, True, [])
        while not reader.done:
            found = reader.take(1)
            if found:
                return found[0].timestamp, reader.next_offset
    except Malformed as error:
        corrupt = Refused(ErrorCode.CORRUPT_MESSAGE, about=str(tp), message=f"at offset {offset}: {error}")
        # A corrupt batch on the leader's disk stays corrupt.
        corrupt.retriable = False
        raise corrupt from error
    return None, reader.next_offset
