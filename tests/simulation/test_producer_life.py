"""A producer's life with the broker that ships: batches, back-pressure, flushing, topics that go, the end."""

import asyncio
from itertools import pairwise

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.errors import BrokerUnavailable, Closed, UnknownTopic
from barnabas.client.producer.errors import (
    BadPartition,
    BufferFull,
    DeliveryTimedOut,
    NotStarted,
    ProducerCrashed,
    RecordTooLarge,
    TopicNotReady,
)
from barnabas.client.producer.key_hashes import murmur2_partition
from barnabas.client.producer.producer import Producer
from barnabas.records.errors import TimestampOutOfRange
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import running
from support.our_client.worlds import nothing_left, ports_of, producer_of, producing
from support.stories import Client, Stopwatch, client_of, told, until

SHORT = {"request_timeout_ms": 1000, "delivery_timeout_ms": 3000}


# Batches


@told(instant_network=True)
async def test_a_batch_waits_for_its_linger(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    async with producing(world, linger_ms=50) as producer:
        await (await producer.send("orders", b"before"))
        watch = Stopwatch(world)
        first = await producer.send("orders", b"a")
        await asyncio.sleep(0.03)
        second = await producer.send("orders", b"b")
        assert (await first).offset == 1
        assert 50 <= watch.ms <= 53
        assert second.done(), "they went together"


@told(instant_network=True)
async def test_a_full_batch_goes_at_once(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    async with producing(world, linger_ms=1000, batch_size=200) as producer:
        await (await producer.send("orders", b"before"))
        watch = Stopwatch(world)
        sent = [await producer.send("orders", b"x" * 50) for _ in range(4)]
        await sent[0]
        assert watch.ms < 10
        assert not sent[-1].done(), "the last batch has room, and waits"


@told(instant_network=True)
async def test_without_a_linger_nothing_waits(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    async with producing(world, linger_ms=0) as producer:
        await (await producer.send("orders", b"before"))
        watch = Stopwatch(world)
        await (await producer.send("orders", b"a"))
        assert watch.ms < 2


@told(instant_network=True)
async def test_flush_sends_lingering_batches_and_waits_for_them(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=3)
    async with producing(world, linger_ms=60_000) as producer:
        watch = Stopwatch(world)
        sent = [await producer.send("orders", b"a", partition=number) for number in range(3)]
        await producer.flush()
        assert watch.ms < 100
        assert all(each.done() for each in sent)


@told()
async def test_flush_of_nothing_returns(world: World, broker: Broker, client: Client) -> None:
    async with producing(world) as producer:
        await producer.flush()


@told()
async def test_keys_decide_the_partition_as_in_java(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders", partitions=5)
    async with producing(world) as producer:
        placed = [await (await producer.send("orders", b"v", key)) for key in (b"1", b"2", b"3", b"", b"1")]
    assert [each.partition for each in placed] == [
        murmur2_partition(key, 5) for key in (b"1", b"2", b"3", b"", b"1")
    ]
    found = {number: await client.read("orders", partition=number) for number in range(5)}
    for each, key in zip(placed, (b"1", b"2", b"3", b"", b"1"), strict=True):
        assert found[each.partition][each.offset].key == key


@told()
async def test_everything_of_a_record_arrives(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    async with producing(world, compression_type="zstd") as producer:
        now_ms = world.clock.now_ms()
        await producer.send("orders", b"v", b"k", timestamp_ms=now_ms - 5, headers=[("h", b"1"), ("n", None)])
        await producer.send("orders")
    full, empty = await client.read("orders")
    assert (full.key, full.value, full.timestamp) == (b"k", b"v", now_ms - 5)
    assert full.headers == (("h", b"1"), ("n", None))
    assert (empty.key, empty.value, empty.headers) == (None, None, ())
    assert empty.timestamp >= now_ms


@told()
async def test_records_without_a_key_use_all_partitions(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders", partitions=3)
    async with producing(world, batch_size=1000) as producer:
        sent = [await producer.send("orders", b"x" * 100) for _ in range(200)]
        await producer.flush()
        used = [each.result().partition for each in sent]
    assert set(used) == {0, 1, 2}
    changes = sum(one != other for one, other in pairwise(used))
    assert changes < 40, "they stick to a partition for a batch"


# Memory


@told()
async def test_a_send_waits_for_buffer_space_and_loses_no_record(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    highest = 0
    watch = Stopwatch(world)
    async with producing(world, buffer_memory=5000, linger_ms=60_000) as producer:
        for number in range(200):
            await producer.send("orders", b"%03d" % number + b"x" * 100)
            highest = max(highest, producer.buffered_bytes)
        await producer.flush()
        assert producer.buffered_bytes == 0
    assert watch.ms < 5000, "while somebody waits for room, batches do not linger"
    assert 4000 < highest <= 5000
    found = await client.values("orders")
    assert [value[:3] for value in found if value] == [b"%03d" % number for number in range(200)]


@told()
async def test_room_is_given_in_the_order_of_asking(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    async with producing(world, buffer_memory=1500, linger_ms=0) as producer:
        await (await producer.send("orders", b"before"))
        # The large one does not starve though the small ones would always fit.
        sizes = [1000, 1300, 10, 10, 1000, 10]
        order: list[int] = []

        async def send(number: int, size: int) -> None:
            await producer.send("orders", b"x" * size)
            order.append(number)

        await asyncio.gather(*(send(number, size) for number, size in enumerate(sizes)))
        await producer.flush()
    assert order == [0, 1, 2, 3, 4, 5]
    assert [len(value or b"") for value in await client.values("orders")][1:] == sizes


@told()
async def test_without_room_send_gives_up_after_max_block_ms(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    async with producing(world, buffer_memory=1500, max_block_ms=2000) as producer:
        await (await producer.send("orders", b"before"))
        world.network.cut("localhost", "localhost")
        first = await producer.send("orders", b"x" * 1000)
        watch = Stopwatch(world)
        with pytest.raises(BufferFull) as full:
            await producer.send("orders", b"x" * 1000)
        assert 2000 <= watch.ms <= 2010
        assert (full.value.needed, full.value.used, full.value.limit) == (1021, 1021, 1500)
        assert producer.buffered_bytes == 1021
        world.network.heal()
        await first


@told()
async def test_a_cancelled_send_uses_no_buffer_space_and_later_ones_continue(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    async with producing(world, buffer_memory=1500) as producer:
        await (await producer.send("orders", b"before"))
        world.network.cut("localhost", "localhost")
        await producer.send("orders", b"x" * 1000)
        large = asyncio.ensure_future(producer.send("orders", b"y" * 1000))
        small = asyncio.ensure_future(producer.send("orders", b"z" * 100))
        await asyncio.sleep(0.1)
        assert not small.done()
        large.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert small.done(), "it was behind the large one, and has room"
        world.network.heal()
        await producer.flush()
    assert [len(value or b"") for value in await client.values("orders")] == [6, 1000, 100]


@told()
async def test_try_send_does_not_wait(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    async with producing(world, buffer_memory=1500) as producer:
        with pytest.raises(TopicNotReady):
            producer.try_send("orders", b"a")
        await until(lambda: producer._sender is not None and "orders" in producer._sender.accumulator.topics)
        first = producer.try_send("orders", b"x" * 1000)
        with pytest.raises(BufferFull):
            producer.try_send("orders", b"x" * 1000)
        assert (await first).offset == 0
        assert (await producer.try_send("orders", b"x" * 1000)).offset == 1


@told()
async def test_a_record_that_is_too_large_is_refused_before_anything_is_taken(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    async with producing(world, max_request_size=1000, buffer_memory=500) as producer:
        with pytest.raises(RecordTooLarge, match=r"max\.request\.size=1000") as large:
            await producer.send("orders", b"x" * 1000)
        assert (large.value.size, large.value.limit) == (1082, 1000)
        with pytest.raises(RecordTooLarge, match=r"buffer\.memory=500"):
            await producer.send("orders", b"x" * 450)
        with pytest.raises(TimestampOutOfRange):
            await producer.send("orders", b"a", timestamp_ms=-2)
        with pytest.raises(TypeError, match="value must be bytes or None, not str"):
            await producer.send("orders", "text")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a header must be"):
            await producer.send("orders", b"a", headers=[(b"k", b"v")])  # type: ignore[list-item]
        assert producer.buffered_bytes == 0
        assert (await (await producer.send("orders", b"a"))).offset == 0


@told()
async def test_a_partitioner_that_fails_takes_nothing(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    async with producing(world, partitioner=lambda topic, key, count: int(key or b"0")) as producer:
        # The first one waits for metadata, and has its room when the partition is chosen.
        for _ in range(2):
            with pytest.raises(
                BadPartition, match="partition 9 does not exist: topic orders has 1 partitions"
            ):
                await producer.send("orders", b"a", b"9")
            assert producer.buffered_bytes == 0
        assert (await (await producer.send("orders", b"a", b"0"))).offset == 0


# Topics


@told()
async def test_a_missing_topic_is_auto_created_by_the_broker(
    world: World, broker: Broker, client: Client
) -> None:
    async with producing(world) as producer:
        assert (await (await producer.send("fresh", b"a"))).offset == 0


@told({"auto.create.topics.enable": "false"})
async def test_a_missing_topic_is_unknown_after_max_block_ms(
    world: World, broker: Broker, client: Client
) -> None:
    async with producing(world, max_block_ms=3000) as producer:
        watch = Stopwatch(world)
        with pytest.raises(UnknownTopic, match="orders"):
            await producer.send("orders", b"a")
        assert 2000 <= watch.ms <= 3010
        waiting = asyncio.ensure_future(producer.send("orders", b"b"))
        await asyncio.sleep(1)
        await client.create("orders")
        assert (await (await waiting)).offset == 0


@told()
async def test_a_missing_partition_is_awaited(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders", partitions=2)
    async with producing(world, max_block_ms=2000) as producer:
        with pytest.raises(UnknownTopic, match=r"orders-2.*the topic has 2"):
            await producer.send("orders", b"a", partition=2)
        with pytest.raises(ValueError, match="negative"):
            await producer.send("orders", b"a", partition=-1)
        assert (await (await producer.send("orders", b"a", partition=1))).partition == 1


@told({"auto.create.topics.enable": "false"})
async def test_a_deleted_topic_fails_only_its_own_records(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.create("payments")
    async with producing(world, max_block_ms=1000, **SHORT) as producer:
        await (await producer.send("orders", b"a"))
        await (await producer.send("payments", b"a"))
        await client.delete("orders")
        late = await producer.send("orders", b"b")
        assert (await (await producer.send("payments", b"b"))).offset == 1
        with pytest.raises(UnknownTopic):
            await late
        with pytest.raises(UnknownTopic):
            await producer.send("orders", b"c")
        await client.create("orders")
        assert (await (await producer.send("orders", b"d"))).offset == 0
        assert (await (await producer.send("payments", b"c"))).offset == 2


@told({"auto.create.topics.enable": "false"})
async def test_a_recreated_topic_starts_at_sequence_0(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    async with producing(world) as producer:
        for _ in range(3):
            await (await producer.send("orders", b"old"))
        await client.delete("orders")
        await client.create("orders")
        sent = [await producer.send("orders", b"new %d" % number) for number in range(3)]
        assert [(await each).offset for each in sent] == [0, 1, 2]
    assert await client.values("orders") == [b"new 0", b"new 1", b"new 2"]


@told(until_ms=3_000_000)
async def test_a_topic_in_use_is_not_dropped_as_idle(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    await client.create("payments")
    async with producing(world, metadata_max_idle_ms=60_000, metadata_max_age_ms=10_000) as producer:
        await (await producer.send("payments", b"a"))
        await (await producer.send("orders", b"a"))
        for number in range(100):
            await asyncio.sleep(5)
            assert (await producer.try_send("payments", b"a")).offset > 0
            if number % 4 == 0:
                assert (await producer.try_send("orders", b"a")).offset > 0


# Time


def test_without_a_broker_start_fails_and_leaves_nothing() -> None:
    with World(1) as world:

        async def story() -> None:
            before = set(asyncio.all_tasks())
            producer = producer_of(world, default_api_timeout_ms=2000)
            with pytest.raises(BrokerUnavailable):
                await producer.start()
            await producer.close()
            nothing_left(producer, before)

        world.run(story())


def test_deliveries_time_out_during_an_outage_and_succeed_after_it() -> None:
    with World(1) as world:

        async def story() -> None:
            async with running(world) as broker, client_of(broker) as client:
                await client.create("orders")
                producer = producer_of(world, **SHORT)
                await producer.start()
                await (await producer.send("orders", b"a"))
            watch = Stopwatch(world)
            late = await producer.send("orders", b"b")
            with pytest.raises(DeliveryTimedOut) as error:
                await late
            assert 3000 <= watch.ms <= 3010
            assert error.value.last is not None
            async with running(world) as broker, client_of(broker) as client:
                assert (await (await producer.send("orders", b"c"))).offset == 1
                await producer.close()
                assert await client.values("orders") == [b"a", b"c"]

        world.run(story())


# The end


@told()
async def test_close_delivers_accepted_records(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    async with producing(world, linger_ms=60_000) as producer:
        sent = [await producer.send("orders", b"%d" % number) for number in range(100)]
        watch = Stopwatch(world)
    assert watch.ms < 1000
    assert [each.result().offset for each in sent] == list(range(100))


@told()
async def test_close_fails_records_not_delivered_in_time(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    before = set(asyncio.all_tasks())
    producer = producer_of(world, buffer_memory=1500)
    await producer.start()
    await (await producer.send("orders", b"before"))
    world.network.cut("localhost", "localhost")
    under_way = await producer.send("orders", b"x" * 1000)
    waiting = asyncio.ensure_future(producer.send("orders", b"x" * 1000))
    watching = asyncio.ensure_future(_outcome(under_way))
    await asyncio.sleep(1)
    watch = Stopwatch(world)
    await producer.close(timeout_ms=500)
    assert 500 <= watch.ms <= 510
    assert isinstance(under_way.exception(), Closed)
    assert isinstance(await watching, Closed)
    with pytest.raises(Closed):
        await waiting
    with pytest.raises(Closed):
        await producer.send("orders", b"late")
    with pytest.raises(Closed):
        producer.try_send("orders", b"late")
    await producer.close()
    nothing_left(producer, before)
    world.network.heal()


async def _outcome(delivery: object) -> object:
    try:
        return await delivery  # type: ignore[misc]
    except Closed as error:
        return error


@told()
async def test_a_bug_fails_all_waiting_calls(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    before = set(asyncio.all_tasks())
    producer = producer_of(world)
    await producer.start()
    await (await producer.send("orders", b"a"))
    # A bug: something that cannot be sent came into the queue.
    late = await producer.send("orders", b"b")
    late._batch.builder = None
    with pytest.raises(ProducerCrashed, match="a batch without content"):
        await late
    with pytest.raises(ProducerCrashed):
        await producer.send("orders", b"c")
    await producer.close()
    nothing_left(producer, before)


def test_a_producer_that_was_not_started_says_so() -> None:
    with World(1) as world:
        producer = Producer({"bootstrap.servers": "127.0.0.1:9092"}, ports=ports_of(world))

        async def story() -> None:
            with pytest.raises(NotStarted):
                await producer.send("orders", b"a")
            await producer.close()
            with pytest.raises(Closed):
                await producer.start()

        world.run(story())


@told()
async def test_cancelling_a_wait_for_a_delivery_affects_no_other(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    async with producing(world, linger_ms=100) as producer:
        sent = [await producer.send("orders", b"%d" % number) for number in range(2)]
        tasks = [asyncio.ensure_future(_outcome(each)) for each in sent]
        await asyncio.sleep(0.01)
        tasks[0].cancel()
        assert (await sent[1]).offset == 1
        assert TopicPartition("orders", 0) == sent[0].result()[:2]
        assert (await sent[0]).offset == 0
