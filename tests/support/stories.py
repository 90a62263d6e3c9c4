"""What stories of a whole broker are told with: a client that speaks in sentences, and lives after lives.

Everything goes over the simulated wire. A story may look at the broker's rooms to see what is left behind,
but it changes nothing there.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from barnabas.base.ids import TopicPartition
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.fetch import PartitionData
from barnabas.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceResponse,
)
from barnabas.protocol.messages.topics import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from barnabas.protocol.messages.transactions import InitProducerIdRequest
from barnabas.records.record import Record
from barnabas.replication.partition import Partition
from barnabas.server.broker import Broker
from barnabas.sim.world import UNTIL_MS, World
from support.brokers import running
from support.wire.client import key_of
from support.wire.frames import RawClient
from support.wire.requests import (
    TIMEOUT_MS,
    Producer,
    batch,
    dotted,
    fetch_of,
    fetched,
    new_topic,
    produce_of,
    produced,
    records_of,
    went_well,
)

TOPIC_RESOURCE, BROKER_RESOURCE, GROUP_RESOURCE = 2, 4, 32
_SET = 0
PRODUCE_VERSION, FETCH_VERSION = 12, 12
# What a patient reader asks for in one fetch.
_READ_BYTES = 1 << 20


class Client(RawClient):
    """One connection. Requests are sent by send_*, and answered by answer(); the others do both."""

    def ask(self, body: object, version: int) -> int:
        """Send without waiting; the correlation id."""
        return self.send(body, version, key=key_of(body))

    async def asked(self, body: object, version: int) -> Any:
        return await self.call(body, version, key=key_of(body))

    # Topics and settings

    async def create(self, topic: str, partitions: int = 1, **configs: object) -> None:
        """Keywords are settings of the topic, with underscores for dots."""
        made = await self.asked(
            CreateTopicsRequest(topics=[new_topic(topic, partitions, configs)], timeout_ms=TIMEOUT_MS), 7
        )
        went_well(made.topics[0])

    async def delete(self, topic: str) -> None:
        request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=TIMEOUT_MS)
        went_well((await self.asked(request, 5)).responses[0])

    async def delete_records(self, topic: str, upto: int, partition: int = 0) -> None:
        asked = DeleteRecordsPartition(partition_index=partition, offset=upto)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=TIMEOUT_MS
        )
        went_well((await self.asked(request, 2)).topics[0].partitions[0])

    async def configure(self, topic: str, **configs: object) -> None:
        await self._alter(TOPIC_RESOURCE, topic, configs)

    async def configure_group(self, group: str, **configs: object) -> None:
        await self._alter(GROUP_RESOURCE, group, configs)

    async def configure_broker(self, name: str = "1", **configs: object) -> None:
        await self._alter(BROKER_RESOURCE, name, configs)

    async def _alter(self, kind: int, name: str, configs: Mapping[str, object]) -> None:
        changes = [
            IncrementalAlterConfigsAlterableConfig(name=dotted(one), config_operation=_SET, value=str(value))
            for one, value in configs.items()
        ]
        resource = IncrementalAlterConfigsAlterConfigsResource(
            resource_type=kind, resource_name=name, configs=changes
        )
        answer = await self.asked(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        went_well(answer.responses[0])

    async def setting(self, topic: str, name: str) -> str | None:
        """The value that holds for a topic."""
        resource = DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=[name]
        )
        answer = await self.asked(DescribeConfigsRequest(resources=[resource]), 4)
        value: str | None = went_well(answer.results[0]).configs[0].value
        return value

    # Produce

    def send_produce(
        self, topic: str, *values: bytes, partition: int = 0, acks: int = -1, **fields: Any
    ) -> int:
        return self.send_batch(topic, batch(*values, **fields), partition=partition, acks=acks)

    def send_batch(self, topic: str, data: bytes, *, partition: int = 0, acks: int = -1) -> int:
        return self.ask(produce_of(topic, partition, data, acks), PRODUCE_VERSION)

    async def produce(self, topic: str, *values: bytes, **fields: Any) -> int:
        """Append one batch; its first offset."""
        done = await self.try_produce(topic, *values, **fields)
        assert done.error_code == 0, f"{ErrorCode(done.error_code).name}: {done.error_message}"
        return int(done.base_offset)

    async def try_produce(self, topic: str, *values: bytes, **fields: Any) -> PartitionProduceResponse:
        """The same, whatever is answered."""
        number = self.send_produce(topic, *values, **fields)
        answered, response = await self.answer()
        assert answered == number
        return produced(response)

    async def producer(self) -> Producer:
        """The identity of a new idempotent producer."""
        while True:
            answer = await self.asked(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4
            )
            if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return Producer(went_well(answer).producer_id, answer.producer_epoch)
            await asyncio.sleep(0.1)

    # Fetch

    def send_fetch(self, topic: str, offset: int = 0, *, partition: int = 0, **fields: Any) -> int:
        return self.ask(fetch_of(topic, {partition: offset}, **fields), FETCH_VERSION)

    async def fetch(self, topic: str, offset: int = 0, *, partition: int = 0, **fields: Any) -> PartitionData:
        """One fetch of one partition, whatever is answered."""
        number = self.send_fetch(topic, offset, partition=partition, **fields)
        answered, response = await self.answer()
        assert answered == number
        return fetched(response)

    async def read(self, topic: str, *, partition: int = 0, offset: int = 0) -> list[Record]:
        """Every record up to the high watermark, as a patient consumer reads them."""
        found: list[Record] = []
        while True:
            data = await self.fetch(topic, offset, partition=partition, partition_max_bytes=_READ_BYTES)
            assert data.error_code == 0, ErrorCode(data.error_code).name
            fresh = [record for record in records_of(data) if record.offset >= offset]
            if not fresh and offset >= data.high_watermark:
                return found
            found += fresh
            offset = found[-1].offset + 1 if fresh else data.high_watermark

    async def values(self, topic: str, *, partition: int = 0, offset: int = 0) -> list[bytes | None]:
        return [record.value for record in await self.read(topic, partition=partition, offset=offset)]


# Brokers and their clients


@asynccontextmanager
async def client_of(broker: Broker) -> AsyncIterator[Client]:
    client = await connect(broker)
    try:
        yield client
    finally:
        client.close()


# Who came to a broker, to be shown out when its story has ended.
_GUESTS: WeakKeyDictionary[Broker, list[Client]] = WeakKeyDictionary()


async def connect(broker: Broker) -> Client:
    """A further client. It need not be closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.listeners[0].port)
    client = Client(reader, writer)
    _GUESTS.setdefault(broker, []).append(client)
    return client


def say_goodbye(broker: Broker) -> None:
    """Close every client that connect() made."""
    for guest in _GUESTS.pop(broker, []):
        guest.close()


async def connect_many(broker: Broker, count: int) -> Sequence[Client]:
    return await asyncio.gather(*(connect(broker) for _ in range(count)))


def partition_of(broker: Broker, topic: str, index: int = 0) -> Partition:
    return broker.replicas.partitions[TopicPartition(topic, index)]


class Stopwatch:
    """Virtual milliseconds since it was made."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._start_ns = world.loop.time_ns()

    @property
    def ms(self) -> float:
        return (self._world.loop.time_ns() - self._start_ns) / 1_000_000


async def until(true: Callable[[], bool], *, step_s: float = 0.01, timeout_s: float = 60.0) -> None:
    """Let virtual time pass until something is true; AssertionError if it does not come to that."""
    for _ in range(int(timeout_s / step_s)):
        if true():
            return
        await asyncio.sleep(step_s)
    raise AssertionError(f"still not true after {timeout_s} s")


Story = Callable[[World, Broker, Client], Coroutine[Any, Any, None]]


def told(
    settings: Mapping[str, object] | None = None,
    *,
    seed: int = 1,
    instant_network: bool = False,
    until_ms: float = UNTIL_MS,
) -> Callable[[Story], Callable[[], None]]:
    """Make a test of a story: a world of its own, a broker that runs, and one client of it.

    On an instant network nothing takes time but what the broker waits for, so that times can be compared.
    """

    def as_test(story: Story) -> Callable[[], None]:
        def test() -> None:
            with World(seed) as world:
                if instant_network:
                    world.network.delay_all((0, 0))
                world.run(_tell(world, settings, story), until_ms=until_ms)

        test.__name__, test.__doc__ = story.__name__, story.__doc__
        return test

    return as_test


async def _tell(world: World, settings: Mapping[str, object] | None, story: Story) -> None:
    async with running(world, settings) as broker, client_of(broker) as client:
        try:
            await story(world, broker, client)
            assert not broker.failed.done(), broker.failed
        finally:
            # A story that failed while the disk hung could not end.
            world.executor.release()
            say_goodbye(broker)
