"""The timestamp of the first record at an offset or after it: one small Fetch a partition, one batch read.

That is how old the first record is that a group has not read. Offsets are no records: those of control
batches, those that compaction has removed and those before the beginning of the log are passed over. Records
of aborted transactions count, as they do in a group's lag.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from barnabas.base.errors import Malformed
from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.client.admin import offsets
from barnabas.client.admin.call import Call, Outcome, Spoken, check
from barnabas.client.admin.leaders import shares_of
from barnabas.client.consumer.decode import BatchReader, reach
from barnabas.client.errors import ClientError, Refused
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

# How many partitions are read at a time: the answers are in memory together.
PARTITIONS_AT_ONCE: Final = 16
# The first batch is sent whole however little is asked for (KIP-74). Where that holds no record, more is read
# at a time, so that many small batches without one are passed over quickly.
_FIRST_BYTES: Final = 1
_NEXT_BYTES: Final = 256 * 1024
_IDS_FROM: Final = 13
_NO_EPOCH: Final = -1


async def first_times(
    call: Call, wanted: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Outcome[int | None]]:
    """In milliseconds, for each partition and offset; -1 if the record has none. None: no record follows."""
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

    return await call.settle("FETCH", wanted, attempt, awaits_unknown=True)


async def _first_time(call: Call, leader: int, tp: TopicPartition, offset: int) -> int | None:
    """Batch by batch until there is a record, or the end."""
    bytes_max = _FIRST_BYTES
    while True:
        told = await _fetch(call, leader, tp, offset, bytes_max)
        if told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            start = await _start(call, tp)
            if start is None or start <= offset:
                # It lies after the end: the log was cut, or the offset was made up.
                return None
            offset = start
            continue
        check(told.error_code, about=str(tp))
        timestamp, following = _read(tp, told, offset)
        if timestamp is not None:
            return timestamp
        if following <= offset or following >= told.high_watermark:
            return None
        offset, bytes_max = following, _NEXT_BYTES


async def _start(call: Call, tp: TopicPartition) -> int | None:
    spec = {tp: int(offsets.OffsetSpec.EARLIEST)}
    outcome = (await offsets.list_offsets(call, spec, isolation="read_uncommitted"))[tp]
    if isinstance(outcome, ClientError):
        raise outcome
    return outcome.offset


async def _fetch(call: Call, leader: int, tp: TopicPartition, offset: int, bytes_max: int) -> PartitionData:
    def make(spoken: Spoken) -> object:
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
        # A broker that holds back a client answers its fetches with nothing (KIP-219).
        silent.retriable = answer.throttle_time_ms > 0
        raise silent
    found: PartitionData = rows[0]
    return found


def _topic_id(call: Call, tp: TopicPartition) -> Uuid:
    topic = call.cluster.metadata.topics.get(tp.topic)
    return ZERO_UUID if topic is None else topic.topic_id


def _read(tp: TopicPartition, told: PartitionData, offset: int) -> tuple[int | None, int]:
    """The timestamp of the first record, if there is one, and where the log goes on after what was read."""
    data = bytes(told.records or b"")
    try:
        whole, _, _ = reach(data, 0, len(data))
        reader = BatchReader(tp.topic, tp.partition, data, 0, whole, offset, True, [])
        while not reader.done:
            found = reader.take(1)
            if found:
                return found[0].timestamp, reader.next_offset
    except Malformed as error:
        corrupt = Refused(ErrorCode.CORRUPT_MESSAGE, about=str(tp), message=f"at offset {offset}: {error}")
        # What is broken on the disk of a leader stays so.
        corrupt.retriable = False
        raise corrupt from error
    return None, reader.next_offset
