"""Our producer in the simulated world: with the broker that ships, or with brokers that do as a test says.

ScriptedBrokers speak over the simulated wire and keep what they take by Kafka's rules for producers: a batch
goes on where the last one ended, and the last five are known again. What they do with a batch is the script's
choice: take it, refuse it, take it and say nothing, or break the connection.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.ports import ClientPorts
from barnabas.client.producer.producer import Producer
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import decode_request, response_parts
from barnabas.protocol.messages.cluster import (
    ApiVersion,
    ApiVersionsResponse,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.messages.transactions import InitProducerIdResponse
from barnabas.records.decode import decode_batch
from barnabas.records.header import BatchHeader, read_header
from barnabas.records.validate import check_batch
from barnabas.sim.world import World

ADDRESS: Final = "127.0.0.1:9092"
FIRST_PORT: Final = 9092
REMEMBERED: Final = 5
ORDERS: Final = TopicPartition("orders", 0)


def ports_of(world: World, name: str = "client") -> ClientPorts:
    return ClientPorts(clock=world.clock, rng=world.dice(name))


def producer_of(world: World, **settings: object) -> Producer:
    return Producer(bootstrap_servers=ADDRESS, ports=ports_of(world), **settings)


@asynccontextmanager
async def producing(world: World, **settings: object) -> AsyncIterator[Producer]:
    """A producer, and after the block nothing of it is left."""
    before = set(asyncio.all_tasks())
    producer = producer_of(world, **settings)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.close()
    nothing_left(producer, before)


def nothing_left(producer: Producer, before: "set[asyncio.Task[Any]]") -> None:
    """No memory, no batch, no task beside those that were there, and no connection."""
    assert producer.buffered_bytes == 0
    if producer._sender is not None:
        assert not producer._sender.accumulator.incomplete
        assert not producer._sender.accumulator.memory.waiters
    assert producer._cluster is None or not list(producer._cluster._nodes.ready())
    ours = [task for task in asyncio.all_tasks() - before if "barnabas/client/" in repr(task)]
    assert ours == []


# Reactions of a script to a batch.


@dataclass(frozen=True)
class Take:
    """Append it and answer."""


@dataclass(frozen=True)
class TakeSilently:
    """Append it and say nothing; with `breaks`, break the connection."""

    breaks: bool = False


@dataclass(frozen=True)
class Refuse:
    code: ErrorCode
    leader: tuple[int, int] | None = None
    message: str | None = None


@dataclass(frozen=True)
class Break:
    """Break the connection without looking at it."""


@dataclass(frozen=True)
class Wait:
    """Append it, and answer after so long."""

    seconds: float


@dataclass(frozen=True)
class Arrival:
    """One batch in one request."""

    node: int
    tp: TopicPartition
    header: BatchHeader
    values: list[bytes | None]
    version: int


Reaction = Take | TakeSilently | Refuse | Break | Wait
Script = Callable[[Arrival], Reaction]


@dataclass
class _Known:
    epoch: int = -1
    # First and next sequence and base offset of the last batches.
    batches: list[tuple[int, int, int]] = field(default_factory=list)


class _Silent(Exception):
    """No answer."""


class _Broken(Exception):
    """No connection any more."""


class ScriptedBrokers:
    def __init__(self, *, nodes: int = 1, partitions: int = 1, produce_version: int = 13) -> None:
        self.script: Script = lambda arrival: Take()
        self.arrivals: list[Arrival] = []
        self.log: dict[TopicPartition, list[bytes | None]] = {}
        # Leader and epoch.
        self.leaders = {TopicPartition("orders", number): (1, 0) for number in range(partitions)}
        self.topic_ids = {"orders": Uuid(b"o" * 16)}
        self.identities = 0
        self.identity_errors: list[ErrorCode] = []
        self.metadata_requests = 0
        self.batches_a_request: list[int] = []
        self._known: dict[tuple[TopicPartition, int], _Known] = {}
        self._nodes = nodes
        self._produce_version = produce_version
        self._servers: list[asyncio.Server] = []
        self._writers: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def running(self) -> "AsyncIterator[ScriptedBrokers]":
        for node in range(1, self._nodes + 1):
            server = await asyncio.start_server(
                lambda reader, writer, node=node: self._serve(node, reader, writer),  # type: ignore[misc]
                "127.0.0.1",
                FIRST_PORT + node - 1,
            )
            self._servers.append(server)
        try:
            yield self
        finally:
            for server in self._servers:
                server.close()
            for writer in self._writers:
                writer.close()
            # The handlers see the end of their streams.
            await asyncio.sleep(0.1)

    def forget_all_but_the_last_batch(self) -> None:
        """What a restart does to a broker's memory of producers: its snapshot has the last batch of each."""
        for known in self._known.values():
            known.batches = known.batches[-1:]

    def recreate_topic(self) -> None:
        self.topic_ids["orders"] = Uuid(b"p" * 16)
        self.log.clear()
        self._known.clear()

    async def _serve(self, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                request = decode_request(await reader.readexactly(size))
                try:
                    answer = await self._answer(node, request)
                except _Silent:
                    continue
                parts = response_parts(
                    answer, request.version, key=request.api.key, correlation_id=request.correlation_id
                )
                writer.write(b"".join(parts))
        except (asyncio.IncompleteReadError, ConnectionError, _Broken):
            pass
        finally:
            writer.close()

    async def _answer(self, node: int, request: Any) -> object:
        match request.api.key:
            case ApiKey.API_VERSIONS:
                return self._versions()
            case ApiKey.METADATA:
                self.metadata_requests += 1
                return self._metadata(request.body)
            case ApiKey.INIT_PRODUCER_ID:
                if self.identity_errors:
                    return InitProducerIdResponse(error_code=self.identity_errors.pop(0))
                self.identities += 1
                return InitProducerIdResponse(producer_id=1000 + self.identities, producer_epoch=0)
            case ApiKey.PRODUCE:
                return await self._produce(node, request)
            case other:
                raise AssertionError(f"nobody expects {other}")

    def _versions(self) -> ApiVersionsResponse:
        spoken = {
            ApiKey.API_VERSIONS: (0, 4),
            ApiKey.METADATA: (0, 13),
            ApiKey.INIT_PRODUCER_ID: (0, 5),
            ApiKey.PRODUCE: (3, self._produce_version),
        }
        rows = [
            ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in spoken.items()
        ]
        return ApiVersionsResponse(error_code=0, api_keys=rows)

    def _metadata(self, body: Any) -> MetadataResponse:
        brokers = [
            MetadataResponseBroker(node_id=node, host="127.0.0.1", port=FIRST_PORT + node - 1)
            for node in range(1, self._nodes + 1)
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
                replica_nodes=[1],
                isr_nodes=[1],
            )
            for tp, (leader, epoch) in self.leaders.items()
            if tp.topic == name
        ]
        return MetadataResponseTopic(name=name, error_code=0, topic_id=self.topic_ids[name], partitions=rows)

    # Produce

    async def _produce(self, node: int, request: Any) -> ProduceResponse:
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        responses: list[TopicProduceResponse] = []
        endpoints: dict[int, NodeEndpoint] = {}
        self.batches_a_request.append(sum(len(topic.partition_data) for topic in request.body.topic_data))
        for topic in request.body.topic_data:
            name = topic.name or names.get(topic.topic_id)
            rows = []
            for part in topic.partition_data:
                if name is None:
                    rows.append(_row(part.index, ErrorCode.UNKNOWN_TOPIC_ID))
                    continue
                row = await self._react(node, TopicPartition(name, part.index), bytes(part.records), request)
                rows.append(row)
                if row.current_leader is not None:
                    leader = row.current_leader.leader_id
                    endpoints[leader] = NodeEndpoint(
                        node_id=leader, host="127.0.0.1", port=FIRST_PORT + leader - 1
                    )
            responses.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=rows)
            )
        if request.body.acks == 0:
            raise _Silent
        return ProduceResponse(responses=responses, node_endpoints=list(endpoints.values()))

    async def _react(
        self, node: int, tp: TopicPartition, data: bytes, request: Any
    ) -> PartitionProduceResponse:
        check_batch(data)
        arrival = Arrival(
            node, tp, read_header(data), [record.value for record in decode_batch(data)], request.version
        )
        self.arrivals.append(arrival)
        match self.script(arrival):
            case Take():
                return self._take(arrival)
            case TakeSilently(breaks=breaks):
                self._take(arrival)
                raise _Broken if breaks else _Silent
            case Wait(seconds=seconds):
                row = self._take(arrival)
                await asyncio.sleep(seconds)
                return row
            case Break():
                raise _Broken
            case Refuse(code=code, leader=leader, message=message):
                hint = (
                    None if leader is None else LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
                )
                return _row(tp.partition, code, current_leader=hint, error_message=message)

    def _take(self, arrival: Arrival) -> PartitionProduceResponse:
        header, tp = arrival.header, arrival.tp
        log = self.log.setdefault(tp, [])
        if header.producer_id >= 0:
            known = self._known.setdefault((tp, header.producer_id), _Known())
            first, after = header.base_sequence, header.base_sequence + header.count
            for old_first, old_after, offset in known.batches:
                if (header.producer_epoch, first, after) == (known.epoch, old_first, old_after):
                    return _row(tp.partition, ErrorCode.NONE, base_offset=offset)
            if known.epoch == header.producer_epoch and known.batches[-1][1] != first:
                return _row(tp.partition, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
            known.epoch = header.producer_epoch
            known.batches = [*known.batches, (first, after, len(log))][-REMEMBERED:]
        row = _row(tp.partition, ErrorCode.NONE, base_offset=len(log))
        log += arrival.values
        return row


def _row(index: int, code: ErrorCode, **fields: Any) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=code, **{"base_offset": -1, **fields})
