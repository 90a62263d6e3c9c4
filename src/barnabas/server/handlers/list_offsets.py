"""ListOffsets (key 2), versions 1-11.

Supported: earliest and latest offset, offset by timestamp, record with the maximum timestamp; isolation
levels and leader epochs. A lookup in a cold index reads the disk in the executor, never on the loop.
Not supported: remote storage. No offset is tiered, and timeout_ms (v10), which limits remote lookups, has no
effect.
v2 isolation_level; v4 leader epochs; v6 flexible; v7 MAX_TIMESTAMP; v8 EARLIEST_LOCAL; v9 LATEST_TIERED;
v10 timeout_ms; v11 EARLIEST_PENDING_UPLOAD.
"""

import asyncio
from functools import partial
from typing import Final, TypeAlias

from barnabas.base.errors import BarnabasError
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.replication.errors import NotLeader
from barnabas.replication.partition import Partition
from barnabas.server.errors import code_of
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import Slices
from barnabas.server.services import Services, hosted
from barnabas.storage.lookup import TimedOffset, latest_record, offset_for_time
from barnabas.storage.warming import warmed

# Special timestamps.
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
# The first version that supports each of them. Other negative timestamps are unsupported.
_SINCE: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

_EPOCHS_FROM: Final = 4

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1

# Values of replica_id that are not replicas.
CONSUMER: Final = -1
DEBUGGER: Final = -2

# Lookups by timestamp before the loop serves other requests.
_LOOKUPS_AT_ONCE: Final = 64

# By topic and partition; None for a duplicate partition, which is an error.
Wanted: TypeAlias = dict[str, dict[int, ListOffsetsPartition | None]]


def handle(ctx: Context, request: Request) -> Answer:
    body: ListOffsetsRequest = request.body
    if body.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        # Kafka's error code for it.
        return refuse(body, request.version, ErrorCode.UNKNOWN_SERVER_ERROR)
    listing = _Listing(ctx.broker, body, request.version)
    return listing.look_up() if listing.must_look() else listing.answer()


class _Listing:
    """One request. Fills in the offsets known in memory first, then performs the lookups by timestamp."""

    def __init__(self, broker: Services, body: ListOffsetsRequest, version: int) -> None:
        self._broker: Final = broker
        self._version: Final = version
        self._replica_id: Final = body.replica_id
        self._committed: Final = body.isolation_level == READ_COMMITTED
        self._looks: list[tuple[ListOffsetsPartitionResponse, Partition, int]] = []
        self._topics = [
            ListOffsetsTopicResponse(
                name=name, partitions=[self._begin(name, index, asked) for index, asked in partitions.items()]
            )
            for name, partitions in _gathered(body).items()
        ]

    def must_look(self) -> bool:
        return bool(self._looks)

    def answer(self) -> ListOffsetsResponse:
        return ListOffsetsResponse(topics=self._topics)

    async def look_up(self) -> ListOffsetsResponse:
        for number, (answer, partition, timestamp) in enumerate(self._looks, 1):
            await self._look(answer, partition, timestamp)
            if number % _LOOKUPS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return self.answer()

    def _begin(
        self, name: str, index: int, asked: ListOffsetsPartition | None
    ) -> ListOffsetsPartitionResponse:
        if asked is None:
            return _failed(index, ErrorCode.INVALID_REQUEST)
        timestamp = asked.timestamp
        if timestamp < 0 and self._version < _SINCE.get(timestamp, self._version + 1):
            return _failed(index, ErrorCode.UNSUPPORTED_VERSION)
        try:
            partition = self._find(name, asked)
        except BarnabasError as error:
            return _failed(index, _code(error))
        answer = ListOffsetsPartitionResponse(partition_index=index)
        if timestamp == LATEST:
            self._say(answer, self._readable_end(partition), partition.leader_epoch)
        elif timestamp in (EARLIEST, EARLIEST_LOCAL):
            self._say(answer, partition.log.start_offset, _first_epoch(partition))
        elif timestamp not in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            self._looks.append((answer, partition, timestamp))
        return answer

    def _find(self, name: str, asked: ListOffsetsPartition) -> Partition:
        partition = hosted(self._broker, name, asked.partition_index)
        try:
            partition.need_leader(asked.current_leader_epoch)
        except NotLeader:
            # A debugger may read any replica.
            if self._replica_id != DEBUGGER:
                raise
        return partition

    def _readable_end(self, partition: Partition) -> int:
        """The end of the log as the requester may read it."""
        log = partition.log
        if self._replica_id != CONSUMER:
            return log.end_offset
        return log.last_stable_offset if self._committed else log.high_watermark

    async def _look(self, answer: ListOffsetsPartitionResponse, partition: Partition, timestamp: int) -> None:
        log, broker = partition.log, self._broker
        # Taken before the lookup, which may wait: later records were not readable when the request arrived.
        end = self._readable_end(partition)
        look = partial(offset_for_time, log, timestamp)
        if timestamp == MAX_TIMESTAMP:
            # Includes deleted records whose segment still exists, as in Kafka.
            look = partial(latest_record, log, start=log.bases[0])
        try:
            found: TimedOffset | None = await warmed(log, broker.executor, look)
            # The log may have been deleted or have failed during the disk read.
            log.check_open()
        except BarnabasError as error:
            answer.error_code = _code(error)
            return
        except OSError as error:
            answer.error_code = _code(broker.logs.failed(log, error, reading=True))
            return
        if found is not None and found.offset < end:
            self._say(answer, found.offset, found.leader_epoch)
            answer.timestamp = found.timestamp

    def _say(self, answer: ListOffsetsPartitionResponse, offset: int, epoch: int) -> None:
        answer.offset = offset
        if self._version >= _EPOCHS_FROM:
            answer.leader_epoch = epoch


def _gathered(body: ListOffsetsRequest) -> Wanted:
    wanted: Wanted = {}
    for topic in body.topics:
        if not topic.partitions:
            continue
        partitions = wanted.setdefault(topic.name, {})
        for asked in topic.partitions:
            index = asked.partition_index
            partitions[index] = None if index in partitions else asked
    return wanted


def _first_epoch(partition: Partition) -> int:
    """The epoch of the first record or, in an empty log, of the next one."""
    log = partition.log
    if log.start_offset == log.end_offset and log.last_epoch < partition.leader_epoch:
        return partition.leader_epoch
    epoch = log.epochs.epoch_for(log.start_offset)
    return -1 if epoch is None else epoch


def _code(error: BarnabasError) -> ErrorCode:
    code = code_of(error)
    if code is None:
        raise error
    return code


def _failed(index: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)


def refuse(body: ListOffsetsRequest, version: int, code: ErrorCode) -> object:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_failed(asked.partition_index, code) for asked in topic.partitions],
            )
            for topic in body.topics
        ]
    )


API = Api(
    ApiKey.LIST_OFFSETS,
    versions=range(1, 12),
    handle=handle,
    refuse=refuse,
    slices=(Slices(("topics", "partitions")),),
)
