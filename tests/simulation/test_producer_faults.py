"""Our producer and the broker that ships, on a network that breaks, and with a broker that is restarted."""

import asyncio

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.producer.producer import Delivered, Delivery
from barnabas.sim.world import World
from support.brokers import running
from support.log.fault_world import replayable
from support.our_client.worlds import producing
from support.scale import seeds
from support.stories import client_of

RECORDS = 300
PARTITIONS = 2
TIME = 1_767_225_600_123
# Small batches, so that many are under way at once; and patience, for networks that are down for long.
SETTINGS = {
    "batch_size": 120,
    "linger_ms": 1,
    "request_timeout_ms": 3000,
    "socket_connection_setup_timeout_ms": 2000,
    "max_block_ms": 500_000,
    "delivery_timeout_ms": 500_000,
}


async def disturb(world: World) -> None:
    """Reset and cut connections, again and again."""
    dice = world.dice("trouble")
    while True:
        await asyncio.sleep(dice.uniform(0.001, 0.2))
        if dice.random() < 0.7:
            world.network.reset("localhost", "localhost")
        else:
            world.network.cut("localhost", "localhost")
            await asyncio.sleep(dice.uniform(0.01, 4))
            world.network.heal()


def values_of(partition: int) -> list[bytes]:
    return [b"%d" % number for number in range(RECORDS) if number % PARTITIONS == partition]


def is_placed_right(placed: list[Delivered], found: dict[int, list[bytes | None]]) -> None:
    """Whatever has an offset is there, and everything is in its partition once and in order."""
    for number, each in enumerate(placed):
        if each.offset >= 0:
            assert found[each.partition][each.offset] == b"%d" % number
    for partition, values in found.items():
        assert values == values_of(partition)


@pytest.mark.parametrize("seed", seeds(20))
def test_each_record_arrives_once_and_in_order_on_a_bad_network(seed: int) -> None:
    with World(seed) as world, replayable(seed, []):
        world.network.delay_all((0.5, 5))

        async def story() -> None:
            async with running(world) as broker:
                async with client_of(broker) as client:
                    await client.create("orders", partitions=PARTITIONS)
                async with producing(world, **SETTINGS) as producer:
                    trouble = asyncio.ensure_future(disturb(world))
                    sent: list[Delivery] = []
                    for number in range(RECORDS):
                        sent.append(
                            await producer.send("orders", b"%d" % number, partition=number % PARTITIONS)
                        )
                        if number % 10 == 0:
                            await asyncio.sleep(0.005)
                    placed = [await each for each in sent]
                    trouble.cancel()
                    world.network.heal()
                async with client_of(broker) as client:
                    found = {number: await client.values("orders", partition=number) for number in range(2)}
                is_placed_right(placed, found)

        world.run(story())


@pytest.mark.parametrize("seed", seeds(10))
def test_each_record_arrives_once_and_in_order_while_the_broker_is_restarted(seed: int) -> None:
    with World(seed) as world, replayable(seed, []):
        world.network.delay_all((0.5, 5))
        dice = world.dice("restarts")

        async def send_all(sent: list[Delivery]) -> None:
            async with producing(world, **SETTINGS) as producer:
                for number in range(RECORDS):
                    sent.append(await producer.send("orders", b"%d" % number, partition=number % PARTITIONS))
                    await asyncio.sleep(0.001)
                await producer.flush()

        async def story() -> None:
            sent: list[Delivery] = []
            async with running(world) as broker:
                async with client_of(broker) as client:
                    await client.create("orders", partitions=PARTITIONS)
                sending = asyncio.ensure_future(send_all(sent))
                await asyncio.sleep(dice.uniform(0.05, 0.2))
                # What is answered on the way down may get lost.
                world.network.reset("localhost", "localhost")
            await asyncio.sleep(dice.uniform(0, 2))
            async with running(world) as broker:
                await asyncio.wait([sending], timeout=dice.uniform(0.05, 0.2))
            async with running(world) as broker:
                await sending
                async with client_of(broker) as client:
                    found = {number: await client.values("orders", partition=number) for number in range(2)}
            is_placed_right([each.result() for each in sent], found)

        world.run(story())


@pytest.mark.parametrize("seed", seeds(10))
def test_one_batch_in_flight_keeps_the_order_without_idempotence(seed: int) -> None:
    with World(seed) as world, replayable(seed, []):
        world.network.delay_all((0.5, 5))

        async def story() -> None:
            async with running(world) as broker:
                async with client_of(broker) as client:
                    await client.create("orders")
                settings = {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1}
                async with producing(world, **SETTINGS, **settings) as producer:
                    trouble = asyncio.ensure_future(disturb(world))
                    for number in range(RECORDS):
                        await producer.send("orders", b"%d" % number, partition=0)
                        if number % 10 == 0:
                            await asyncio.sleep(0.005)
                    await producer.flush()
                    trouble.cancel()
                    world.network.heal()
                async with client_of(broker) as client:
                    found = await client.values("orders")
            # A record may be there twice, and then right behind its batch.
            seen = list(dict.fromkeys(found))
            assert seen == [b"%d" % number for number in range(RECORDS)]

        world.run(story())


def test_deliveries_name_their_partition() -> None:
    with World(1) as world:

        async def story() -> None:
            async with running(world) as broker, client_of(broker) as client:
                await client.create("orders", partitions=PARTITIONS)
                async with producing(world) as producer:
                    delivery = await producer.send("orders", b"a", partition=1, timestamp_ms=TIME)
                    assert TopicPartition(delivery.topic, delivery.partition) == TopicPartition("orders", 1)
                    assert not delivery.done()
                    assert await delivery == Delivered("orders", 1, 0, TIME)
                    assert delivery.done()

        world.run(story())
