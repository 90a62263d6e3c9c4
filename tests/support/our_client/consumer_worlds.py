"""Consumers of ours in the simulated world: with the broker that ships, or with brokers that obey a test.

ReadableBrokers speak over the simulated wire and have logs in memory; a test says who leads, which replica is
nearer, what a leader's log has lost, and what they answer to a fetch instead.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import Random
from typing import Any, Final

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.message import Message
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request, decode_request, response_parts
from barnabas.protocol.messages.cluster import (
    ApiVersion,
    ApiVersionsResponse,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from barnabas.protocol.messages.offsets import (
    EpochEndOffset,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from barnabas.records.header import read_header, stamp
from barnabas.server.fetch.sessions import FINAL_EPOCH, FetchSessions
from barnabas.sim.world import World
from support.our_client.peers import ADDRESS, PORT, listening, ports_of
from support.wire.requests import batch

ORDERS: Final = TopicPartition("orders", 0)
EARLIEST: Final = -2
HINTS_FROM: Final = 16


def consumer_of(world: World, **settings: object) -> Consumer:
    named = {"auto_offset_reset": "earliest", "bootstrap_servers": ADDRESS, **settings}
    return Consumer(ports=ports_of(world, "consumer"), **named)


@asynccontextmanager
async def reading(world: World, *tps: tuple[str, int], **settings: object) -> AsyncIterator[Consumer]:
    """A consumer with an assignment; after the block nothing of it is left."""
    before = set(asyncio.all_tasks())
    async with consumer_of(world, **settings) as consumer:
        await consumer.assign(tps)
        yield consumer
    nothing_left(consumer, before)


def nothing_left(consumer: Consumer, before: "set[asyncio.Task[Any]]") -> None:
    """No task beside those that were there, and no connection."""
    core = consumer._core_or_none
    assert core is None or not list(core.cluster._nodes.ready())
    assert core is None or not list(core.cluster._nodes.ready("fetch"))
    ours = [task for task in asyncio.all_tasks() - before if "barnabas/client/" in str(task.get_coro())]
    assert ours == []


def values(messages: list[Message]) -> list[bytes | None]:
    return [message.value for message in messages]


async def take(consumer: Consumer, count: int) -> list[Message]:
    """So many messages, by `async for`."""
    found: list[Message] = []
    async for message in consumer:
        found.append(message)
        if len(found) == count:
            return found
    raise AssertionError(f"the stream ended after {len(found)} messages")


def log_of(*counts: int, epoch: int = 0, first: int = 0) -> list[bytes]:
    """Batches of so many records each, whose values are their offsets."""
    batches, offset = [], first
    for count in counts:
        data = bytearray(batch(*(b"%d" % (offset + index) for index in range(count))))
        stamp(data, 0, base_offset=offset, leader_epoch=epoch)
        batches.append(bytes(data))
        offset += count
    return batches


# What a broker does with one partition of a fetch instead of serving it; None: serve it.
Script = Callable[[int, TopicPartition, Any], "PartitionData | None"]


class ReadableBrokers:
    """Numbered from 1, with one topic unless more are put into `topic_ids` and `logs`."""

    def __init__(self, *, nodes: int = 1, partitions: int = 1) -> None:
        self.nodes = nodes
        self.topic_ids = {"orders": Uuid(b"o" * 16)}
        self.logs: dict[TopicPartition, list[bytes]] = {
            TopicPartition("orders", number): [] for number in range(partitions)
        }
        self.starts = dict.fromkeys(self.logs, 0)
        # Leader and epoch.
        self.leaders = dict.fromkeys(self.logs, (1, 0))
        # The end of each epoch in the leader's log, as OffsetForLeaderEpoch tells it.
        self.epoch_ends: dict[TopicPartition, tuple[int, int]] = {}
        self.script: Script = lambda node, tp, asked: None
        # Errors of whole fetches, one a fetch.
        self.fetch_errors: list[ErrorCode] = []
        self.fetches: list[tuple[int, FetchRequest]] = []
        self.ended: list[int] = []
        self.fetch_version = 18
        self.asked: list[ApiKey] = []
        self._sessions = {
            node: FetchSessions(10, partial(Random(node).randrange, 1, 1000)) for node in self._numbers
        }

    @property
    def _numbers(self) -> range:
        return range(1, self.nodes + 1)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ReadableBrokers"]:
        async with AsyncExitStack() as stack:
            for node in self._numbers:
                await stack.enter_async_context(listening(partial(self._serve, node), PORT + node - 1))
            yield self

    def restart_sessions(self) -> None:
        """Forget every session, as a broker that restarts does."""
        for node, sessions in self._sessions.items():
            sessions._sessions.clear()
            assert len(self._sessions[node]) == 0

    async def _serve(self, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            request = decode_request(await reader.readexactly(size))
            answer = await self._answer(node, request)
            parts = response_parts(
                answer, request.version, key=request.api.key, correlation_id=request.correlation_id
            )
            writer.write(b"".join(parts))

    async def _answer(self, node: int, request: Request) -> object:
        self.asked.append(request.api.key)
        match request.api.key:
            case ApiKey.API_VERSIONS:
                return self._versions()
            case ApiKey.METADATA:
                return self._metadata(request.body)
            case ApiKey.LIST_OFFSETS:
                return self._offsets(request.body)
            case ApiKey.OFFSET_FOR_LEADER_EPOCH:
                return self._epochs(request.body)
            case ApiKey.FETCH:
                return await self._fetch(node, request)
            case other:
                raise AssertionError(f"nobody expects {other}")

    def _versions(self) -> ApiVersionsResponse:
        keys = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH)
        rows = [
            ApiVersion(api_key=key, min_version=api(key).versions.first, max_version=api(key).versions.last)
            for key in keys
        ]
        rows.append(ApiVersion(api_key=ApiKey.FETCH, min_version=4, max_version=self.fetch_version))
        return ApiVersionsResponse(error_code=0, api_keys=rows)

    def _metadata(self, body: Any) -> MetadataResponse:
        brokers = [
            MetadataResponseBroker(node_id=node, host="127.0.0.1", port=PORT + node - 1)
            for node in self._numbers
        ]
        topics = [self._topic(wanted.name) for wanted in body.topics or []]
        return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=1, topics=topics)

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topic_ids:
            return MetadataResponseTopic(
                name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions=[]
            )
        rows = [
            MetadataResponsePartition(
                error_code=0,
                partition_index=tp.partition,
                leader_id=leader,
                leader_epoch=epoch,
                replica_nodes=list(self._numbers),
                isr_nodes=list(self._numbers),
            )
            for tp, (leader, epoch) in self.leaders.items()
            if tp.topic == name
        ]
        return MetadataResponseTopic(name=name, error_code=0, topic_id=self.topic_ids[name], partitions=rows)

    def end_of(self, tp: TopicPartition) -> int:
        log = self.logs[tp]
        return read_header(log[-1]).next_offset if log else self.starts[tp]

    def _offsets(self, body: Any) -> ListOffsetsResponse:
        topics = []
        for topic in body.topics:
            rows = []
            for one in topic.partitions:
                tp = TopicPartition(topic.name, one.partition_index)
                offset = self.starts[tp] if one.timestamp == EARLIEST else self.end_of(tp)
                rows.append(
                    ListOffsetsPartitionResponse(
                        partition_index=tp.partition, error_code=0, offset=offset, leader_epoch=0
                    )
                )
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
        return ListOffsetsResponse(topics=topics)

    def _epochs(self, body: Any) -> OffsetForLeaderEpochResponse:
        topics = []
        for topic in body.topics:
            rows = []
            for one in topic.partitions:
                tp = TopicPartition(topic.topic, one.partition)
                epoch, end = self.epoch_ends.get(tp, (one.leader_epoch, self.end_of(tp)))
                rows.append(
                    EpochEndOffset(error_code=0, partition=tp.partition, leader_epoch=epoch, end_offset=end)
                )
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=rows))
        return OffsetForLeaderEpochResponse(topics=topics)

    async def _fetch(self, node: int, request: Request) -> FetchResponse:
        body: FetchRequest = request.body
        if body.session_epoch == FINAL_EPOCH:
            self.ended.append(body.session_id)
        else:
            self.fetches.append((node, body))
        if self.fetch_errors:
            return FetchResponse(error_code=self.fetch_errors.pop(0))
        sessions = self._sessions[node]
        plan = sessions.plan(body, request.version, 0)
        if plan.error:
            return FetchResponse(error_code=plan.error)
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        read = []
        for wanted in plan.wanted:
            name = names.get(Uuid(wanted.topic)) if isinstance(wanted.topic, bytes) else wanted.topic
            read.append((wanted, self._read(node, name, wanted.asked)))
        sessions.served(plan, read)
        news = [one for one in read if one[0].is_news(one[1])]
        if not news:
            await asyncio.sleep(body.max_wait_ms / 1000)
        rows = [
            FetchableTopicResponse(
                topic=wanted.topic if isinstance(wanted.topic, str) else "",
                topic_id=Uuid(wanted.topic) if isinstance(wanted.topic, bytes) else Uuid(bytes(16)),
                partitions=[data],
            )
            for wanted, data in (news if plan.incremental else read)
        ]
        endpoints = [
            NodeEndpoint(node_id=each, host="127.0.0.1", port=PORT + each - 1) for each in self._numbers
        ]
        return FetchResponse(
            session_id=plan.session_id,
            responses=rows,
            node_endpoints=endpoints if request.version >= HINTS_FROM else [],
        )

    def _read(self, node: int, name: str | None, asked: Any) -> PartitionData:
        if name is None:
            return answer_of(asked, error=ErrorCode.UNKNOWN_TOPIC_ID)
        tp = TopicPartition(name, asked.partition)
        scripted = self.script(node, tp, asked)
        if scripted is not None:
            return scripted
        if not self.starts[tp] <= asked.fetch_offset <= self.end_of(tp):
            return answer_of(asked, error=ErrorCode.OFFSET_OUT_OF_RANGE)
        found = [one for one in self.logs[tp] if read_header(one).next_offset > asked.fetch_offset]
        return answer_of(asked, b"".join(found), end=self.end_of(tp), start=self.starts[tp])


def answer_of(
    asked: Any,
    records: bytes = b"",
    *,
    error: ErrorCode = ErrorCode.NONE,
    end: int = -1,
    start: int = -1,
    leader: tuple[int, int] | None = None,
    replica: int = -1,
) -> PartitionData:
    """What a broker says of one partition."""
    hint = None if leader is None else LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
    return PartitionData(
        partition_index=asked.partition,
        error_code=error,
        high_watermark=end,
        last_stable_offset=end,
        log_start_offset=start,
        current_leader=hint,
        preferred_read_replica=replica,
        records=records,
    )
