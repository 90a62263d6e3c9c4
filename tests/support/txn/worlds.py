"""A broker of a script that keeps transactions by Kafka's rules, for our producer in the simulated world.

It is one node: leader, transaction coordinator and group coordinator. What it does with a request is the
script's choice: do it and answer, do it and say nothing, lose it, or refuse it. `committed` is what a
consumer would see that reads committed records.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.producer.producer import Producer
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.cluster import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from barnabas.protocol.messages.produce import PartitionProduceResponse
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    EndTxnResponse,
    InitProducerIdResponse,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.sim.world import World
from support.our_client.worlds import (
    ORDERS,
    Arrival,
    ScriptedBrokers,
    _Broken,
    _row,
    _Silent,
    nothing_left,
    producer_of,
)

FIRST_ID: Final = 5000
OURS: Final = "orders-1"


@dataclass(frozen=True)
class Do:
    """Do it and answer."""


@dataclass(frozen=True)
class DoSilently:
    """Do it and break the connection; or, with `stalls`, say nothing."""

    stalls: bool = False


@dataclass(frozen=True)
class Lose:
    """Break the connection without looking at it."""


@dataclass(frozen=True)
class DoLater:
    """Do it, and answer after so long."""

    seconds: float


@dataclass(frozen=True)
class Say:
    """Answer with this code and do nothing."""

    code: ErrorCode


@dataclass(frozen=True)
class SayLater:
    """Answer with this code after so long, while other connections go on, and do nothing."""

    code: ErrorCode
    seconds: float


Story = Callable[[World, "TransactionalBrokers"], Coroutine[Any, Any, None]]
BOTH = pytest.mark.parametrize("version", [1, 2])
Doing = Do | DoSilently | Lose | DoLater | Say | SayLater


class TransactionalBrokers(ScriptedBrokers):
    def __init__(self, *, version: int = 2, partitions: int = 2) -> None:
        super().__init__(partitions=partitions)
        self.version = version
        self.doings: dict[ApiKey, deque[Doing]] = {}
        # What is done with all others.
        self.chance: Callable[[ApiKey], Doing] = lambda key: Do()
        # Every request of a transaction in the order of arrival: its key, and its epoch where it has one.
        self.asked: list[tuple[ApiKey, int]] = []
        self.bodies: list[Any] = []
        self.producer_id, self.epoch, self.state = FIRST_ID, -1, "Empty"
        self.epoch_max = 32_766
        self.partitions: set[TopicPartition] = set()
        self.groups: set[str] = set()
        self.committed: dict[TopicPartition, list[bytes | None]] = {}
        self.offsets: dict[tuple[str, TopicPartition], int] = {}
        self._open: dict[TopicPartition, list[bytes | None]] = {}
        self._open_offsets: dict[tuple[str, TopicPartition], int] = {}
        self._before: tuple[int, int] | None = None

    def on(self, key: ApiKey, *doings: Doing) -> None:
        """Do so with the next ones of these, and the usual with those that follow."""
        self.doings[key] = deque(doings)

    def requests(self) -> list[ApiKey]:
        return [key for key, _ in self.asked]

    def values(self) -> list[bytes | None]:
        """All that is committed, sorted."""
        return sorted(value or b"" for log in self.committed.values() for value in log)

    def abort_by_timeout(self) -> None:
        """What the coordinator does when a transaction takes too long."""
        assert self.state == "Ongoing"
        self._finish("CompleteAbort")
        self._before = (self.producer_id, self.epoch)
        self.epoch += 1

    # Requests

    async def _answer(self, node: int, request: Any) -> object:
        key = request.api.key
        if key in (ApiKey.API_VERSIONS, ApiKey.METADATA):
            return await super()._answer(node, request)
        if key is not ApiKey.PRODUCE:
            self.asked.append((key, getattr(request.body, "producer_epoch", -1)))
            self.bodies.append(request.body)
        doings = self.doings.get(key)
        match doings.popleft() if doings else self.chance(key):
            case Lose():
                raise _Broken
            case Say(code=code) if key is not ApiKey.PRODUCE:
                return self._said(request, code)
            case DoSilently(stalls=stalls):
                await self._done(node, request)
                raise _Silent if stalls else _Broken
            case SayLater(code=code, seconds=seconds):
                await asyncio.sleep(seconds)
                return self._said(request, code)
            case DoLater(seconds=seconds):
                answer = await self._done(node, request)
                await asyncio.sleep(seconds)
                return answer
        return await self._done(node, request)

    async def _done(self, node: int, request: Any) -> object:
        match request.api.key:
            case ApiKey.PRODUCE:
                self.asked.append((ApiKey.PRODUCE, -1))
                assert request.body.transactional_id == OURS
                return await self._produce(node, request)
            case ApiKey.FIND_COORDINATOR:
                return self._said(request, ErrorCode.NONE)
            case ApiKey.INIT_PRODUCER_ID:
                return self._init(request.body)
            case ApiKey.ADD_PARTITIONS_TO_TXN:
                return self._said(request, self._add_partitions(request.body))
            case ApiKey.ADD_OFFSETS_TO_TXN:
                return self._said(request, self._add_group(request.body))
            case ApiKey.TXN_OFFSET_COMMIT:
                return self._said(request, self._commit_offsets(request))
            case ApiKey.END_TXN:
                return self._end(request)
        raise AssertionError(f"nobody expects {request.api.key}")

    def _versions(self) -> ApiVersionsResponse:
        spoken = (
            ApiKey.API_VERSIONS,
            ApiKey.METADATA,
            ApiKey.FIND_COORDINATOR,
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.ADD_OFFSETS_TO_TXN,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.END_TXN,
            ApiKey.PRODUCE,
        )
        rows = [
            ApiVersion(api_key=key, min_version=api(key).versions.first, max_version=api(key).versions.last)
            for key in spoken
        ]
        feature = FinalizedFeatureKey(
            name="transaction.version", max_version_level=self.version, min_version_level=self.version
        )
        return ApiVersionsResponse(error_code=0, api_keys=rows, finalized_features=[feature])

    def _said(self, request: Any, code: ErrorCode) -> object:
        """An answer that says this code of everything that was asked for."""
        body = request.body
        match request.api.key:
            case ApiKey.FIND_COORDINATOR:
                rows = [
                    Coordinator(key=key, node_id=1, host="127.0.0.1", port=9092, error_code=code)
                    for key in body.coordinator_keys
                ]
                return FindCoordinatorResponse(coordinators=rows)
            case ApiKey.INIT_PRODUCER_ID:
                return InitProducerIdResponse(error_code=code, producer_epoch=-1)
            case ApiKey.ADD_PARTITIONS_TO_TXN:
                topics = [
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=code)
                            for each in topic.partitions
                        ],
                    )
                    for topic in body.v3_and_below_topics
                ]
                return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
            case ApiKey.ADD_OFFSETS_TO_TXN:
                return AddOffsetsToTxnResponse(error_code=code)
            case ApiKey.TXN_OFFSET_COMMIT:
                return TxnOffsetCommitResponse(
                    topics=[
                        TxnOffsetCommitResponseTopic(
                            name=topic.name,
                            partitions=[
                                TxnOffsetCommitResponsePartition(
                                    partition_index=each.partition_index, error_code=code
                                )
                                for each in topic.partitions
                            ],
                        )
                        for topic in body.topics
                    ]
                )
        return EndTxnResponse(error_code=code)

    # The coordinator

    def _init(self, body: Any) -> InitProducerIdResponse:
        who = (body.producer_id, body.producer_epoch)
        if who == self._before:
            return InitProducerIdResponse(producer_id=self.producer_id, producer_epoch=self.epoch)
        if body.producer_id >= 0 and who != (self.producer_id, self.epoch):
            return InitProducerIdResponse(error_code=ErrorCode.PRODUCER_FENCED, producer_epoch=-1)
        if self.state == "Ongoing":
            self._finish("CompleteAbort")
        self._before = who if body.producer_id >= 0 else None
        self.epoch += 1
        self.state = "Empty"
        return InitProducerIdResponse(producer_id=self.producer_id, producer_epoch=self.epoch)

    def _check(self, producer_id: int, epoch: int) -> ErrorCode:
        if producer_id != self.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return ErrorCode.NONE if epoch == self.epoch else ErrorCode.PRODUCER_FENCED

    def _add_partitions(self, body: Any) -> ErrorCode:
        code = self._check(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
        if code is ErrorCode.NONE:
            self.state = "Ongoing"
            self.partitions |= {
                TopicPartition(topic.name, each)
                for topic in body.v3_and_below_topics
                for each in topic.partitions
            }
        return code

    def _add_group(self, body: Any) -> ErrorCode:
        code = self._check(body.producer_id, body.producer_epoch)
        if code is ErrorCode.NONE:
            self.state = "Ongoing"
            self.groups.add(body.group_id)
        return code

    def _commit_offsets(self, request: Any) -> ErrorCode:
        body = request.body
        code = self._check(body.producer_id, body.producer_epoch)
        if code is not ErrorCode.NONE:
            return code
        if request.version >= 5:
            self.state = "Ongoing"
        elif body.group_id not in self.groups:
            return ErrorCode.INVALID_TXN_STATE
        for topic in body.topics:
            for each in topic.partitions:
                tp = TopicPartition(topic.name, each.partition_index)
                self._open_offsets[body.group_id, tp] = each.committed_offset
        return ErrorCode.NONE

    def _end(self, request: Any) -> EndTxnResponse:
        body, is_v2 = request.body, request.version >= 5
        wanted = "CompleteCommit" if body.committed else "CompleteAbort"
        who = (body.producer_id, body.producer_epoch)
        if is_v2 and who == self._before and self.state.startswith("Complete"):
            if self.state == wanted:
                return EndTxnResponse(producer_id=self.producer_id, producer_epoch=self.epoch)
            return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)
        code = self._check(*who)
        if code is not ErrorCode.NONE:
            return EndTxnResponse(error_code=code)
        if self.state != "Ongoing" and (self.state != wanted if not is_v2 else body.committed):
            return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)
        if self.state == "Ongoing" or is_v2:
            self._finish(wanted)
        if not is_v2:
            return EndTxnResponse()
        self._before = who
        if self.epoch >= self.epoch_max:
            self.producer_id, self.epoch = self.producer_id + 1, 0
        else:
            self.epoch += 1
        return EndTxnResponse(producer_id=self.producer_id, producer_epoch=self.epoch)

    def _finish(self, state: str) -> None:
        if state == "CompleteCommit":
            for tp, values in self._open.items():
                self.committed.setdefault(tp, []).extend(values)
            self.offsets |= self._open_offsets
        self.state, self._open, self._open_offsets = state, {}, {}
        self.partitions, self.groups = set(), set()

    # The leader

    def _take(self, arrival: Arrival) -> PartitionProduceResponse:
        header, tp = arrival.header, arrival.tp
        assert header.is_transactional
        if (header.producer_id, header.producer_epoch) != (self.producer_id, self.epoch):
            return _row(tp.partition, ErrorCode.INVALID_PRODUCER_EPOCH)
        if arrival.version >= 12:
            self.state = "Ongoing"
        elif tp not in self.partitions:
            return _row(tp.partition, ErrorCode.INVALID_TXN_STATE)
        known = self._known.get((tp, header.producer_id))
        if known is not None and known.epoch != header.producer_epoch:
            if header.base_sequence != 0:
                return _row(tp.partition, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
            # What was written under another epoch is not taken for the same.
            known.batches.clear()
        before = len(self.log.get(tp, []))
        row = super()._take(arrival)
        if len(self.log.get(tp, [])) > before:
            self._open.setdefault(tp, []).extend(arrival.values)
        return row


@asynccontextmanager
async def transacting(world: World, **settings: object) -> AsyncIterator[Producer]:
    """A transactional producer, and after the block nothing of it is left."""
    before = set(asyncio.all_tasks())
    producer = producer_of(world, **{"transactional_id": OURS, "linger_ms": 0, **settings})
    await producer.start()
    try:
        yield producer
    finally:
        await producer.close()
    nothing_left(producer, before)


def tell(story: Story, version: int = 2, seed: int = 1) -> TransactionalBrokers:
    brokers = TransactionalBrokers(version=version)
    with World(seed) as world:

        async def run() -> None:
            async with brokers.running():
                await story(world, brokers)

        world.run(run())
    return brokers


async def transact(producer: Producer, *values: bytes, offset: int | None = None) -> None:
    """One transaction with these values, in both partitions in turn."""
    async with producer.transaction() as transaction:
        for number, value in enumerate(values):
            await producer.send("orders", value, partition=number % 2)
        if offset is not None:
            await transaction.send_offsets({ORDERS: offset}, "billing")
