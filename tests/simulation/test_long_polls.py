"""Fetches that wait: as long as they were told to, no longer than they have to, and without polling."""

import asyncio

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import running
from support.stories import Client, Stopwatch, client_of, connect, connect_many, partition_of, told, until
from support.wire.requests import batch, fetch_of, fetched, produced, values_of

pytestmark = pytest.mark.kernel

CONSUMERS = 1_000


@told(instant_network=True)
async def test_a_fetch_without_records_waits_for_max_wait_ms(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    watch = Stopwatch(world)

    data = await client.fetch("orders", max_wait_ms=5_000)

    assert watch.ms == 5_000
    assert (data.error_code, data.records, data.high_watermark) == (0, b"", 0)


@pytest.mark.parametrize("max_wait_ms", [0, -1])
def test_a_fetch_that_must_not_wait_does_not(max_wait_ms: int) -> None:
    @told(instant_network=True)
    async def story(world: World, broker: Broker, client: Client) -> None:
        await client.create("orders")
        watch = Stopwatch(world)

        await client.fetch("orders", max_wait_ms=max_wait_ms)

        assert watch.ms == 0

    story()


@told(instant_network=True)
async def test_a_fetch_is_answered_by_the_append_that_it_waits_for(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    client.send_fetch("orders", max_wait_ms=30_000)
    await asyncio.sleep(1.5)
    watch = Stopwatch(world)

    async with client_of(broker) as producer:
        await producer.produce("orders", b"one")
        _, answer = await client.answer()

    assert watch.ms == 0
    assert values_of(fetched(answer)) == [b"one"]


@told(instant_network=True)
async def test_min_bytes_counts_all_partitions_together(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders", partitions=3)
    async with client_of(broker) as producer:
        enough = 3 * len(batch(b"one"))
        client.ask(fetch_of("orders", {0: 0, 1: 0, 2: 0}, max_wait_ms=30_000, min_bytes=enough), 12)
        watch = Stopwatch(world)
        arrival = asyncio.ensure_future(client.answer())
        for partition in (0, 1):
            await asyncio.sleep(1)
            await producer.produce("orders", b"one", partition=partition)
            await asyncio.sleep(0.5)
            assert not arrival.done(), "two of three batches are not enough"
        await asyncio.sleep(1)
        await producer.produce("orders", b"one", partition=2)
        _, answer = await arrival

    assert watch.ms == 4_000
    found = {data.partition_index: values_of(data) for data in answer.responses[0].partitions}
    assert found == {0: [b"one"], 1: [b"one"], 2: [b"one"]}


@told(instant_network=True)
async def test_fewer_than_min_bytes_are_returned_after_max_wait_ms(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    client.send_fetch("orders", max_wait_ms=3_000, min_bytes=1_000_000)
    watch = Stopwatch(world)
    async with client_of(broker) as producer:
        await asyncio.sleep(1)
        await producer.produce("orders", b"one")

    _, answer = await client.answer()

    assert watch.ms == 3_000
    assert values_of(fetched(answer)) == [b"one"]


@told(instant_network=True)
async def test_an_error_in_one_partition_answers_for_all_at_once(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    watch = Stopwatch(world)

    answer = await client.asked(fetch_of("orders", {0: 0, 7: 0}, max_wait_ms=30_000), 12)

    assert watch.ms == 0
    codes = {data.partition_index: data.error_code for data in answer.responses[0].partitions}
    assert codes == {0: 0, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@told()
async def test_a_waiting_fetch_fails_when_its_topic_is_deleted(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    client.send_fetch("orders", max_wait_ms=60_000)
    await asyncio.sleep(1)
    watch = Stopwatch(world)

    async with client_of(broker) as admin:
        await admin.delete("orders")
        _, answer = await client.answer()

    assert fetched(answer).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert watch.ms < 100


@told(instant_network=True)
async def test_a_waiting_fetch_fails_when_its_offset_is_deleted(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    async with client_of(broker) as other:
        await other.produce("orders", b"one", b"two")
        client.ask(fetch_of("orders", {0: 1, 1: 0}, max_wait_ms=60_000, min_bytes=1_000_000), 12)
        await asyncio.sleep(1)
        watch = Stopwatch(world)
        await other.delete_records("orders", upto=2)
        _, answer = await client.answer()

    assert watch.ms == 0
    assert answer.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@told()
async def test_a_waiting_fetch_fails_when_the_leader_epoch_changes(
    world: World, broker: Broker, client: Client
) -> None:
    """The broker's leaving raises the epoch of what it leads: whoever waited in the old one is fenced."""
    await client.create("orders")
    client.send_fetch("orders", max_wait_ms=60_000, current_leader_epoch=0)
    await asyncio.sleep(1)
    watch = Stopwatch(world)

    assert broker.lifecycle is not None
    await broker.lifecycle.beat(want_shut_down=True)
    _, answer = await client.answer()

    assert fetched(answer).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert watch.ms < 100


def turns_of(waiting: int) -> int:
    """How many turns the loop of an idle broker does in ten minutes with so many fetches waiting."""
    with World(1) as world:

        async def story() -> int:
            async with running(world) as broker, client_of(broker) as client:
                await client.create("orders")
                clients = await connect_many(broker, waiting)
                for one in clients:
                    one.send_fetch("orders", max_wait_ms=3_600_000)
                await until(lambda: len(partition_of(broker, "orders").waiters) == waiting)
                # To the same moment in both runs, so that the same periodic work is due.
                await asyncio.sleep(60 - world.loop.time())
                before = world.loop.turns
                await asyncio.sleep(600)
                spent = world.loop.turns - before
                for one in clients:
                    one.close()
                return spent

        return world.run(story(), until_ms=1_000_000)


def test_waiting_costs_no_turns_of_the_loop() -> None:
    idle, busy = turns_of(0), turns_of(20)

    # Chance decides how long the executor takes, and with it whether two things share a turn.
    assert busy <= idle * 1.05, f"{idle} turns without anybody waiting, {busy} with twenty"


@told()
async def test_a_thousand_waiting_consumers_are_answered_by_one_append(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    consumers = await connect_many(broker, CONSUMERS)
    for one in consumers:
        one.send_fetch("orders", max_wait_ms=60_000)
    await until(lambda: len(partition_of(broker, "orders").waiters) == CONSUMERS)
    watch = Stopwatch(world)

    await client.produce("orders", b"news")
    answers = await asyncio.gather(*(one.answer() for one in consumers))

    assert [values_of(fetched(answer)) for _, answer in answers] == [[b"news"]] * CONSUMERS
    assert watch.ms < 100
    assert not partition_of(broker, "orders").waiters


@told()
async def test_a_client_that_leaves_takes_its_waiting_fetches_along(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=3)
    gone = await connect(broker)
    for _ in range(5):
        gone.ask(fetch_of("orders", {0: 0, 1: 0, 2: 0}, max_wait_ms=600_000), 12)
    partitions = [partition_of(broker, "orders", index) for index in range(3)]
    await until(lambda: [len(one.waiters) for one in partitions] == [5, 5, 5])
    timers = timers_of(world, "FetchWait")

    gone.close()
    await asyncio.sleep(1)

    assert timers == 5
    assert [len(one.waiters) for one in partitions] == [0, 0, 0]
    assert timers_of(world, "FetchWait") == 0


def timers_of(world: World, name: str) -> int:
    """How many timers of the loop will call something of this name."""
    scheduled = world.loop._scheduled  # type: ignore[attr-defined]
    return sum(name in repr(timer) and not timer.cancelled() for timer in scheduled)


@told(instant_network=True)
async def test_a_produce_behind_a_waiting_fetch_is_appended_at_once(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.create("other")
    waiting = client.send_fetch("other", max_wait_ms=10_000)
    behind = client.send_produce("orders", b"one")
    watch = Stopwatch(world)

    async with client_of(broker) as reader:
        await asyncio.sleep(0.001)
        assert await reader.values("orders") == [b"one"]
    first, _ = await client.answer()
    then_ms = watch.ms
    second, answer = await client.answer()

    assert (first, second) == (waiting, behind)
    assert then_ms == watch.ms == 10_000
    assert produced(answer).base_offset == 0


@told(instant_network=True)
async def test_a_produce_answers_the_fetch_before_it_on_the_same_connection(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    waiting = client.send_fetch("orders", max_wait_ms=10_000)
    behind = client.send_produce("orders", b"one")
    watch = Stopwatch(world)

    first, read = await client.answer()
    second, done = await client.answer()

    assert (first, second) == (waiting, behind)
    assert values_of(fetched(read)) == [b"one"]
    assert produced(done).error_code == 0
    assert watch.ms == 0
