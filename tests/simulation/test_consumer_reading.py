"""A consumer and the broker that ships: reading, seeking, pausing, waiting, ends."""

import asyncio
from contextlib import suppress

import pytest

from barnabas.client.consumer.errors import NoOffset, NotAssigned
from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.client.errors import ClientError, Closed, UnknownTopic
from barnabas.records.header import Codec, TimestampType
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.our_client.consumer_worlds import ORDERS, consumer_of, nothing_left, reading, take, values
from support.stories import Client, Stopwatch, client_of, told, until

TWO = (("orders", 0), ("orders", 1))


async def fill(client: Client, *counts: int) -> None:
    """A topic with so many records in each partition, ten a batch, whose values are their offsets."""
    await client.create("orders", partitions=len(counts))
    for partition, count in enumerate(counts):
        for first in range(0, count, 10):
            sent = [b"%d" % number for number in range(first, min(first + 10, count))]
            await client.produce("orders", *sent, partition=partition)


def numbers(*ranges: range) -> list[bytes]:
    return [b"%d" % number for each in ranges for number in each]


@told()
async def test_every_record_is_read_with_all_its_fields(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    await client.produce("orders", b"one", b"two", key=b"k", time=1_767_225_600_123, codec=Codec.ZSTD)

    async with reading(world, ORDERS) as consumer:
        first, second = await take(consumer, 2)

    assert first == Message(
        "orders", 0, 0, 1_767_225_600_123, TimestampType.CREATE_TIME, b"k", b"one", (), first.leader_epoch
    )
    assert (second.offset, second.value, second.tp, second.leader_epoch) == (1, b"two", ORDERS, 0)


@told()
async def test_batches_respect_the_maximum_and_lose_no_record(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client, 95)
    found: list[bytes | None] = []

    async with reading(world, ORDERS, max_poll_records=20) as consumer:
        while len(found) < 95:
            each = await consumer.batch()
            assert 0 < len(each) <= 20
            found += values(each)
        assert found == numbers(range(95))
        assert await consumer.position(ORDERS) == 95

        consumer.seek(ORDERS, 90)
        assert values(await consumer.batch(3)) == numbers(range(90, 93))
        assert await consumer.position(ORDERS) == 93


@told(instant_network=True)
async def test_a_reader_waits_until_something_is_written(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client, 0)

    async with reading(world, ORDERS) as consumer:
        waiting = asyncio.ensure_future(consumer.batch())
        await asyncio.sleep(10)
        assert not waiting.done()
        watch = Stopwatch(world)
        await client.produce("orders", b"late")

        assert values(await waiting) == [b"late"]
        assert watch.ms < 5


@told(instant_network=True)
async def test_a_batch_is_empty_after_the_timeout(world: World, broker: Broker, client: Client) -> None:
    await fill(client, 0)

    async with reading(world, ORDERS) as consumer:
        watch = Stopwatch(world)
        assert await consumer.batch(timeout_ms=1_234) == []
        assert watch.ms == pytest.approx(1_234, abs=1)
        await client.produce("orders", b"one")
        assert values(await consumer.batch(timeout_ms=60_000)) == [b"one"]


@told()
async def test_seek_drops_the_records_of_a_fetch_in_flight(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client, 60)

    async with reading(world, ORDERS) as consumer:
        for turn in range(30):
            # At any moment of a fetch: it is sent, under way, here, half read.
            await asyncio.sleep(turn * 0.0003)
            offset, count = (turn * 7) % 50, 1 + turn % 5
            consumer.seek(ORDERS, offset)
            assert values(await take(consumer, count)) == numbers(range(offset, offset + count)), turn
            assert await consumer.position(ORDERS) == offset + count


@told()
async def test_seek_back_while_later_records_are_in_flight(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client, 60)

    async with reading(world, ORDERS, max_partition_fetch_bytes=1) as consumer:
        for turn in range(40):
            consumer.seek(ORDERS, 30)
            if turn % 3 == 0:
                await take(consumer, 1)
            await asyncio.sleep(turn * 0.00005)
            consumer.seek(ORDERS, 5)
            assert values(await take(consumer, 10)) == numbers(range(5, 15)), turn


@told(instant_network=True)
async def test_an_idle_partition_does_not_hold_up_a_busy_one(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client, 300, 0)

    async with reading(world, *TWO, max_partition_fetch_bytes=1) as consumer:
        await take(consumer, 1)
        watch = Stopwatch(world)
        for _ in range(299):
            await asyncio.sleep(0.001)
            await anext(consumer)

        # A fetch that waits for the idle one takes half a second.
        assert watch.ms < 320


@told()
async def test_the_places_to_begin(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    for number in range(10):
        await client.produce("orders", b"%d" % number, time=1_767_225_600_000 + number * 1000)
    await client.delete_records("orders", upto=2)

    async with reading(world, ORDERS, auto_offset_reset="latest") as consumer:
        assert await consumer.position(ORDERS) == 10
        consumer.seek_to_beginning()
        assert values(await take(consumer, 1)) == [b"2"]
        consumer.seek_to_time(1_767_225_604_500, ORDERS)
        assert values(await take(consumer, 1)) == [b"5"]
        consumer.seek_to_time(1_767_225_700_000)
        assert await consumer.position(ORDERS) == 10
        consumer.seek_to_end(ORDERS)
        assert await consumer.position(ORDERS) == 10
        assert await consumer.beginning_offsets([ORDERS]) == {ORDERS: 2}
        assert await consumer.end_offsets([ORDERS]) == {ORDERS: 10}
        at = (await consumer.offsets_for_times({ORDERS: 1_767_225_603_000}))[ORDERS]
        assert at is not None
        assert (at.offset, at.timestamp_ms) == (3, 1_767_225_603_000)
        assert await consumer.offsets_for_times({ORDERS: 1_767_225_700_000}) == {ORDERS: None}


@told()
async def test_by_duration_begins_so_long_ago(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    now_ms = world.clock.now_ms()
    for minutes in (90, 70, 50, 30):
        await client.produce("orders", b"%d" % minutes, time=now_ms - minutes * 60_000)

    async with reading(world, ORDERS, auto_offset_reset="by_duration:PT1H") as consumer:
        assert values(await take(consumer, 2)) == [b"50", b"30"]
    async with reading(world, ORDERS, auto_offset_reset="by_duration:PT1M") as consumer:
        assert await consumer.position(ORDERS) == 4


@told()
async def test_without_auto_offset_reset_an_out_of_range_error_is_raised_once(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client, 30)
    await client.delete_records("orders", upto=5)

    async with reading(world, ORDERS, auto_offset_reset="none") as consumer:
        with pytest.raises(NoOffset) as nowhere:
            await consumer.batch()
        assert (nowhere.value.offset, nowhere.value.start, nowhere.value.end) == (None, 5, 30)
        assert await consumer.batch(timeout_ms=5_000) == []
        assert consumer.stopped == {ORDERS: nowhere.value}

        consumer.seek(ORDERS, 2)
        with pytest.raises(NoOffset) as gone:
            await consumer.batch()
        assert (gone.value.offset, gone.value.start, gone.value.end) == (2, 5, 30)
        assert await consumer.position(ORDERS) == 2

        consumer.seek(ORDERS, 5)
        assert values(await take(consumer, 25)) == numbers(range(5, 30))
        assert consumer.stopped == {}


@told()
async def test_an_offset_that_is_gone_is_reset(world: World, broker: Broker, client: Client) -> None:
    await fill(client, 30)
    await client.delete_records("orders", upto=12)

    async with reading(world, ORDERS) as consumer:
        consumer.seek(ORDERS, 3)
        assert values(await take(consumer, 2)) == numbers(range(12, 14))
        consumer.seek(ORDERS, 1_000)
        assert values(await take(consumer, 2)) == numbers(range(12, 14))


@told()
async def test_a_paused_partition_is_silent_and_loses_nothing(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client, 40, 40)

    async with reading(world, *TWO, max_poll_records=5) as consumer:
        first = await take(consumer, 3)
        held = first[0].tp
        consumer.pause(held)
        assert consumer.paused == {held}
        assert await consumer.position(held) == 3

        others = await take(consumer, 40)
        assert {message.tp for message in others} == {*map(tuple, TWO)} - {held}
        assert await consumer.batch(timeout_ms=3_000) == []

        consumer.resume()
        rest = await take(consumer, 37)
        assert values(rest) == numbers(range(3, 40))
        assert consumer.paused == frozenset()


@told()
async def test_an_end_of_partition_is_reported_each_time_it_is_reached(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client, 3, 0)

    async with reading(world, *TWO, enable_partition_eof=True) as consumer:
        found = await take(consumer, 5)
        ends = {(each.partition, each.offset) for each in found if isinstance(each, EndOfPartition)}
        assert ends == {(0, 3), (1, 0)}
        assert await consumer.batch(timeout_ms=5_000) == []

        await client.produce("orders", b"more", partition=1)
        more, end = await take(consumer, 2)
        assert (more.value, type(end), end.offset) == (b"more", EndOfPartition, 1)

        # The session has nothing to tell of a partition that was sought to its end.
        consumer.seek(ORDERS, 3)
        (again,) = await take(consumer, 1)
        assert (type(again), again.tp, again.offset) == (EndOfPartition, ORDERS, 3)
        assert await consumer.batch(timeout_ms=5_000) == []


@told()
async def test_lag_is_as_of_the_last_answer(world: World, broker: Broker, client: Client) -> None:
    await fill(client, 40)

    async with reading(world, ORDERS) as consumer:
        assert consumer.lag(ORDERS) is None
        await take(consumer, 15)
        assert consumer.lag(ORDERS) == 25


@told()
async def test_reassigning_keeps_the_positions_of_retained_partitions(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client, 30, 30, 30)

    async with reading(world, ORDERS) as consumer:
        await take(consumer, 7)
        assert await consumer.assign_topic("orders") == {(*ORDERS[:1], n) for n in range(3)}
        assert await consumer.position(ORDERS) == 7
        found = await take(consumer, 83)
        assert values([each for each in found if each.tp == ORDERS]) == numbers(range(7, 30))

        await consumer.assign([("orders", 2)])
        assert consumer.assignment == {("orders", 2)}
        with pytest.raises(NotAssigned):
            consumer.seek(ORDERS, 0)
        consumer.unassign()
        assert await consumer.batch(timeout_ms=2_000) == []


@told()
async def test_a_missing_partition_cannot_be_assigned(world: World, broker: Broker, client: Client) -> None:
    await fill(client, 1)

    async with consumer_of(world, allow_auto_create_topics=False, default_api_timeout_ms=2_000) as consumer:
        with pytest.raises(UnknownTopic, match="orders-1"):
            await consumer.assign([("orders", 1)])
        with pytest.raises(UnknownTopic, match="nothing"):
            await consumer.assign([("nothing", 0)])


@told()
async def test_a_slow_reader_holds_no_more_than_it_may(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders", partitions=4)
    for partition in range(4):
        for _ in range(40):
            await client.produce("orders", bytes(10_000), partition=partition)
    limit = 100 * 1024
    most = 0

    async with reading(
        world, *(("orders", n) for n in range(4)), queued_max_messages_kbytes=100, max_poll_records=1
    ) as consumer:
        for _ in range(160):
            await asyncio.sleep(0.05)
            most = max(most, consumer.held_bytes)
            assert len(await consumer.batch(1)) == 1
        assert await consumer.batch(timeout_ms=1_000) == []
        assert consumer.held_bytes == 0

    # Something is fetched ahead, and at most one batch more than the bound.
    assert limit // 2 < most <= limit + 11_000


@told()
async def test_paused_data_does_not_stand_in_the_way_of_others(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    for partition in range(2):
        for number in range(20):
            await client.produce("orders", b"%d" % number + bytes(1_000), partition=partition)

    async with reading(world, ORDERS, queued_max_messages_kbytes=8) as consumer:
        await until(lambda: consumer.held_bytes > 4_000)
        consumer.pause(ORDERS)
        await consumer.assign(TWO)
        assert {message.partition for message in await take(consumer, 20)} == {1}
        consumer.resume()
        again = await take(consumer, 20)
        assert [message.offset for message in again] == list(range(20))


@told()
async def test_no_partition_starves(world: World, broker: Broker, client: Client) -> None:
    await fill(client, 600, 30)

    async with reading(world, *TWO, max_partition_fetch_bytes=2_000) as consumer:
        order = [message.partition for message in await take(consumer, 630)]

    # The small one is done long before the large one.
    assert max(index for index, partition in enumerate(order) if partition == 1) < 400


@told()
async def test_a_batch_larger_than_the_fetch_limit_is_read(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.produce("orders", bytes(50_000), b"small")
    await client.produce("orders", b"next")

    async with reading(world, ORDERS, max_partition_fetch_bytes=100, fetch_max_bytes=100) as consumer:
        found = await take(consumer, 3)

    assert [len(message.value or b"") for message in found] == [50_000, 5, 4]


@told()
async def test_closing_ends_pending_reads(world: World, broker: Broker, client: Client) -> None:
    await fill(client, 2)
    before = set(asyncio.all_tasks())
    consumer = consumer_of(world)
    await consumer.start()
    await consumer.assign([ORDERS])

    async def everything() -> list[bytes | None]:
        return [message.value async for message in consumer]

    loop = asyncio.ensure_future(everything())
    waiting = asyncio.ensure_future(consumer.batch(timeout_ms=60_000))
    await asyncio.sleep(2)
    await consumer.close()
    await consumer.close()

    assert len(await loop) == 2
    with pytest.raises(Closed):
        await waiting
    with pytest.raises(Closed):
        await consumer.batch()
    with pytest.raises(Closed):
        consumer.seek(ORDERS, 0)
    nothing_left(consumer, before)
    assert len(broker.services.sessions) == 0


@told()
async def test_a_cancelled_reader_loses_nothing(world: World, broker: Broker, client: Client) -> None:
    await fill(client, 0)
    found: list[Message] = []

    async def write() -> None:
        async with client_of(broker) as producer:
            for number in range(60):
                await producer.produce("orders", b"%d" % number)
                await asyncio.sleep(0.003)

    async with reading(world, ORDERS) as consumer:
        writing = asyncio.ensure_future(write())
        dice = world.dice("cancel")
        while len(found) < 60:
            waiting = asyncio.ensure_future(consumer.batch(dice.randrange(1, 4)))
            # Sometimes it is cancelled in the very turn in which it would have returned.
            await asyncio.sleep(dice.choice((0, 0, 0.001, 0.004)))
            if dice.random() < 0.7:
                waiting.cancel()
            with suppress(asyncio.CancelledError):
                found += await waiting
        await writing

    assert values(found) == numbers(range(60))


@told()
async def test_a_deleted_topic_is_reported_once_and_others_are_read(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client, 3)
    await client.create("other")

    async with reading(world, ORDERS, ("other", 0)) as consumer:
        await take(consumer, 3)
        await client.delete("orders")
        with pytest.raises(UnknownTopic, match="orders-0"):
            await consumer.batch(timeout_ms=30_000)
        assert list(consumer.stopped) == [ORDERS]

        await client.produce("other", b"still here")
        assert values(await take(consumer, 1)) == [b"still here"]
        assert await consumer.batch(timeout_ms=5_000) == []


@told()
async def test_a_topic_that_was_created_again_is_another_one(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client, 3)

    async with reading(world, ORDERS) as consumer:
        await take(consumer, 3)
        await client.delete("orders")
        await client.create("orders")
        await client.produce("orders", b"new")
        with pytest.raises(ClientError, match="orders") as error:
            await consumer.batch(timeout_ms=30_000)
        assert type(error.value).__name__ in ("TopicRecreated", "UnknownTopic")

        await consumer.assign([ORDERS])
        assert values(await take(consumer, 1)) == [b"new"]


@told()
async def test_log_append_time_is_reported_as_timestamp_type(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", message_timestamp_type="LogAppendTime")
    await client.produce("orders", b"one")

    async with reading(world, ORDERS) as consumer:
        (message,) = await take(consumer, 1)

    assert message.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert message.timestamp == pytest.approx(world.clock.now_ms(), abs=10_000)
