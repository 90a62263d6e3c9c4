"""Reads that wait for the disk: only who asked for them waits."""

import asyncio

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import running
from support.stories import Client, Stopwatch, client_of, connect, partition_of, told
from support.wire.requests import fetch_of, fetched, values_of

pytestmark = pytest.mark.kernel

# What the disk takes in these stories, and no network ever does.
DISK_MS = 700.0
# A batch of which two do not fit into the smallest segment there is.
LARGE = b"x" * 600_000


def cool(world: World, directory: str) -> None:
    """Drop every file of a partition from the page cache."""
    for path in world.disk.tree():
        if path.startswith(directory):
            world.disk.cool(path)


@told(instant_network=True)
async def test_a_cold_fetch_takes_as_long_as_the_disk_and_is_whole(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.produce("orders", b"one", b"two")
    hot = Stopwatch(world)
    await client.fetch("orders", max_wait_ms=10_000)
    assert hot.ms == 0
    cool(world, "/data/orders-0")
    world.executor.delay_ms = (DISK_MS, DISK_MS)
    watch = Stopwatch(world)

    data = await client.fetch("orders", max_wait_ms=10_000)

    assert values_of(data) == [b"one", b"two"]
    # Two pages at most: one of the index, one of the data.
    assert watch.ms in (DISK_MS, 2 * DISK_MS)


@told(instant_network=True)
async def test_a_fetch_that_may_not_wait_waits_for_the_disk_all_the_same(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.produce("orders", b"one")
    cool(world, "/data/orders-0")
    world.executor.delay_ms = (DISK_MS, DISK_MS)

    data = await client.fetch("orders", max_wait_ms=0)

    assert values_of(data) == [b"one"]


@told(instant_network=True)
async def test_a_slow_disk_omits_no_partition_from_a_fetch_response(
    world: World, broker: Broker, client: Client
) -> None:
    """The Java client throws a full answer away that lacks a partition it asked for."""
    await client.create("orders", partitions=2)
    await client.produce("orders", b"one", partition=0)
    cool(world, "/data/orders-0")
    world.executor.hold()

    answer = await client.asked(fetch_of("orders", {0: 0, 1: 0}, max_wait_ms=100), 12)

    (topic,) = answer.responses
    told_of = {data.partition_index: (data.error_code, data.high_watermark) for data in topic.partitions}
    assert told_of == {0: (0, 1), 1: (0, 0)}
    world.executor.release()
    assert values_of(await client.fetch("orders")) == [b"one"], "what was not in time comes the next time"


def times_of_others(*, beside_cold_readers: bool) -> list[float]:
    """How long a writer and a reader of the tail take, each step, on connections of their own."""
    with World(3) as world:
        world.network.delay_all((0.1, 0.1))

        async def story() -> list[float]:
            async with running(world) as broker, client_of(broker) as writer, client_of(broker) as reader:
                await writer.create("orders", segment_bytes=1 << 20)
                for _ in range(4):
                    await writer.produce("orders", LARGE)
                assert len(partition_of(broker, "orders").log.segments) == 4
                cool(world, "/data/orders-0/00000000000000000000")
                cool(world, "/data/orders-0/00000000000000000001")
                world.executor.delay_ms = (DISK_MS, DISK_MS)
                cold = [await connect(broker) for _ in range(8)] if beside_cold_readers else []
                for one in cold:
                    one.send_fetch("orders", 0, max_wait_ms=60_000)
                times = await lived(world, writer, reader)
                for one in cold:
                    _, answer = await one.answer()
                    assert values_of(fetched(answer))[0] == LARGE
                    one.close()
                return times

        return world.run(story())


async def lived(world: World, writer: Client, reader: Client) -> list[float]:
    times = []
    for number in range(20):
        reader.send_fetch("orders", 4 + number, max_wait_ms=60_000)
        watch = Stopwatch(world)
        await writer.produce("orders", b"small")
        times.append(watch.ms)
        _, answer = await reader.answer()
        assert values_of(fetched(answer)) == [b"small"]
        times.append(watch.ms)
    return times


def test_cold_readers_do_not_delay_hot_readers_and_writers() -> None:
    alone = times_of_others(beside_cold_readers=False)
    beside = times_of_others(beside_cold_readers=True)

    assert beside == alone
    assert max(alone) < DISK_MS / 100


@told(instant_network=True)
async def test_a_fetch_behind_a_cold_one_is_read_at_once_and_answered_after_it(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("cold")
    await client.create("hot")
    await client.produce("cold", b"one")
    cool(world, "/data/cold-0")
    world.executor.delay_ms = (DISK_MS, DISK_MS)
    watch = Stopwatch(world)

    first = client.send_fetch("cold", max_wait_ms=10_000)
    second = client.send_produce("hot", b"two")
    async with client_of(broker) as other:
        await asyncio.sleep(0.001)
        assert await other.values("hot") == [b"two"]
        assert watch.ms < DISK_MS
    answered = [(await client.answer())[0], (await client.answer())[0]]

    assert answered == [first, second]
    assert watch.ms >= DISK_MS


@told(instant_network=True)
async def test_a_client_that_leaves_a_cold_fetch_leaves_nothing_behind(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.produce("orders", b"one")
    cool(world, "/data/orders-0")
    world.executor.delay_ms = (DISK_MS, DISK_MS)
    gone = await connect(broker)
    gone.send_fetch("orders", max_wait_ms=60_000)
    await asyncio.sleep(0.01)

    gone.close()
    await asyncio.sleep(5)

    assert not partition_of(broker, "orders").waiters
    assert values_of(await client.fetch("orders")) == [b"one"]


@told(instant_network=True)
async def test_a_topic_deleted_during_a_cold_read_is_reported_as_unknown(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.create("other")
    await client.produce("orders", b"one")
    cool(world, "/data/orders-0")
    world.executor.delay_ms = (DISK_MS, DISK_MS)
    client.send_fetch("orders", max_wait_ms=60_000)

    async with client_of(broker) as admin:
        await admin.delete("orders")
    _, answer = await client.answer()

    assert fetched(answer).error_code in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (await client.fetch("orders")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [one.offline for one in broker.logs.directories] == [None]
    assert await client.produce("other", b"v") == 0


@told(instant_network=True)
async def test_records_deleted_while_a_cold_read_of_them_waits_are_out_of_range(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", segment_bytes=1 << 20)
    for _ in range(3):
        await client.produce("orders", LARGE)
    cool(world, "/data/orders-0/00000000000000000000")
    world.executor.hold()
    client.send_fetch("orders", max_wait_ms=60_000)

    async with client_of(broker) as admin:
        await asyncio.sleep(0.1)
        await admin.delete_records("orders", upto=2)
    world.executor.release()
    _, answer = await client.answer()

    assert fetched(answer).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert await client.values("orders", offset=2) == [LARGE]


@told(instant_network=True)
async def test_a_hanging_disk_delays_only_its_own_reader_until_the_timeout(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.produce("orders", b"one")
    cool(world, "/data/orders-0")
    world.executor.hold()
    client.send_fetch("orders", max_wait_ms=5_000)
    watch = Stopwatch(world)

    async with client_of(broker) as writer:
        await asyncio.sleep(0.001)
        assert await writer.produce("orders", b"two") == 1
    assert watch.ms < 10
    _, answer = await client.answer()

    assert watch.ms == 5_000
    assert fetched(answer).error_code == 0
    world.executor.release()
    assert await client.values("orders") == [b"one", b"two"]
