"""An unmodified client in the simulated world: aiokafka administrates, produces and consumes by assignment.

It asks the machine for the time in some places, so a run of it need not be the same twice; what it must have
written and read at the end is.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete

from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import running
from support.lives import next_life, started
from support.stories import Client, partition_of, told

ADDRESS = "127.0.0.1:9092"
RECORDS = 200
RETRIES_MS = 100


@asynccontextmanager
async def begun(client: Any) -> AsyncIterator[Any]:
    await client.start()
    try:
        yield client
    finally:
        await (client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())


def producer(**options: Any) -> AIOKafkaProducer:
    return AIOKafkaProducer(bootstrap_servers=ADDRESS, retry_backoff_ms=RETRIES_MS, **options)


async def make_topic(name: str, partitions: int = 1) -> None:
    async with begun(AIOKafkaAdminClient(bootstrap_servers=ADDRESS)) as admin:
        # By the broker's time: the client's is the machine's, and far from the world's.
        settings = {"message.timestamp.type": "LogAppendTime"}
        await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=settings)])


async def consumed(topic: str, partition: int, count: int) -> list[tuple[int, bytes | None]]:
    """The first so many records of a partition, by a consumer of its own."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=ADDRESS, auto_offset_reset="earliest", retry_backoff_ms=RETRIES_MS
    )
    consumer.assign([TopicPartition(topic, partition)])
    async with begun(consumer):
        return [(record.offset, record.value) for record in [await consumer.getone() for _ in range(count)]]


def numbered(count: int) -> list[tuple[int, bytes]]:
    return [(number, b"%d" % number) for number in range(count)]


@told()
async def test_topics_and_settings_can_be_administrated(world: World, broker: Broker, client: Client) -> None:
    async with begun(AIOKafkaAdminClient(bootstrap_servers=ADDRESS)) as admin:
        await admin.create_topics([NewTopic("orders", 2, 1, topic_configs={"retention.ms": "1234567"})])
        await admin.create_partitions({"orders": NewPartitions(total_count=3)})
        assert await admin.list_topics() == ["orders"]
        (described,) = await admin.describe_topics(["orders"])
        assert sorted(one["partition"] for one in described["partitions"]) == [0, 1, 2]

        resource = ConfigResource(ConfigResourceType.TOPIC, "orders", {"retention.ms": "7654321"})
        await admin.alter_configs([resource])
        assert partition_of(broker, "orders").log.config.retention_ms == 7_654_321

        await client.produce("orders", b"one", b"two")
        deleted = await admin.delete_records({TopicPartition("orders", 0): RecordsToDelete(before_offset=1)})
        assert deleted == {TopicPartition("orders", 0): 1}
        await admin.delete_topics(["orders"])
        assert await admin.list_topics() == []


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("delay_ms", [(0.0, 0.1), (5.0, 80.0)], ids=["near", "far"])
def test_produced_records_are_consumed(idempotent: bool, delay_ms: tuple[float, float]) -> None:
    @told()
    async def story(world: World, broker: Broker, client: Client) -> None:
        world.network.delay_all(delay_ms)
        await make_topic("orders", partitions=2)
        reading = [asyncio.ensure_future(consumed("orders", n, RECORDS // 2)) for n in range(2)]
        async with begun(producer(enable_idempotence=idempotent, linger_ms=2)) as sender:
            for number in range(RECORDS):
                await sender.send("orders", b"%d" % (number // 2), partition=number % 2)
            await sender.flush()

        assert [await one for one in reading] == [numbered(RECORDS // 2)] * 2

    story()


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_kept_and_read(codec: str) -> None:
    @told()
    async def story(world: World, broker: Broker, client: Client) -> None:
        await make_topic("orders")
        async with begun(producer(compression_type=codec)) as sender:
            await asyncio.gather(*[await sender.send("orders", b"%d" % n, partition=0) for n in range(50)])

        assert await consumed("orders", 0, 50) == numbered(50)

    story()


@pytest.mark.parametrize("seed", range(5))
def test_an_idempotent_producer_gets_each_record_through_a_bad_network_once(seed: int) -> None:
    @told(seed=seed)
    async def story(world: World, broker: Broker, client: Client) -> None:
        dice = world.dice("trouble")
        world.network.delay_all((0.5, 10))

        async def disturb() -> None:
            while True:
                await asyncio.sleep(dice.uniform(0.02, 0.3))
                if dice.random() < 0.5:
                    world.network.reset("localhost", "localhost")
                else:
                    world.network.cut("localhost", "localhost")
                    await asyncio.sleep(dice.uniform(0.01, 2))
                    world.network.heal()

        await make_topic("orders")
        async with begun(producer(enable_idempotence=True, linger_ms=2)) as sender:
            trouble = asyncio.ensure_future(disturb())
            sent = []
            for number in range(RECORDS):
                sent.append(await sender.send("orders", b"%d" % number, partition=0))
                await asyncio.sleep(0.01)
            offsets = [(await one).offset for one in sent]
            trouble.cancel()
            world.network.heal()

        assert offsets == list(range(RECORDS))
        assert await consumed("orders", 0, RECORDS) == numbered(RECORDS)

    story()


def test_a_producer_continues_after_a_broker_restart() -> None:
    with World(3) as world:

        async def story() -> None:
            async with running(world):
                await make_topic("orders")
                sender = producer(enable_idempotence=True)
                await sender.start()
                for number in range(10):
                    await sender.send_and_wait("orders", b"%d" % number, partition=0)
            late = [asyncio.ensure_future(sender.send_and_wait("orders", b"10", partition=0))]
            await asyncio.sleep(3)
            async with running(world):
                await asyncio.gather(*late)
                await sender.send_and_wait("orders", b"11", partition=0)
                await sender.stop()
                assert await consumed("orders", 0, 12) == numbered(12)

        world.run(story())


def test_acknowledged_records_survive_a_kill() -> None:
    with World(5) as world:

        async def first() -> tuple[AIOKafkaProducer, int]:
            await started(world)
            await make_topic("orders")
            sender = producer(acks="all", linger_ms=1, max_batch_size=200)
            await sender.start()
            sent = [await sender.send("orders", b"%d" % n, partition=0) for n in range(RECORDS)]
            return sender, sum(one.done() for one in sent)

        sender, acknowledged = world.run(first())
        assert 0 < acknowledged < RECORDS
        with next_life(world) as after:
            # In the world before the kill, where nothing happened to its broker.
            world.run(sender.stop())

            async def second() -> None:
                async with running(after):
                    assert await consumed("orders", 0, acknowledged) == numbered(acknowledged)

            after.run(second())
