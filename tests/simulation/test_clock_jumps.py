"""The date is set forward or back: what waits goes on waiting as long as it should, and no longer."""

import asyncio

import pytest

from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.stories import Client, Stopwatch, client_of, connect, partition_of, told
from support.wire.requests import fetch_of, values_of

DAY_MS = 86_400_000
JUMPS = pytest.mark.parametrize("by_ms", [DAY_MS, -DAY_MS, 365 * DAY_MS], ids=["forward", "back", "a year"])
# Not so far that what is there becomes too old to be kept.
SMALL_JUMPS = pytest.mark.parametrize("by_ms", [DAY_MS, -DAY_MS], ids=["forward", "back"])


@JUMPS
def test_a_waiting_fetch_waits_for_max_wait_ms_despite_clock_jumps(by_ms: int) -> None:
    @told(instant_network=True)
    async def story(world: World, broker: Broker, client: Client) -> None:
        await client.create("orders")
        client.send_fetch("orders", max_wait_ms=10_000)
        watch = Stopwatch(world)
        await asyncio.sleep(3)

        world.clock.jump(by_ms)
        await client.answer()

        assert watch.ms == 10_000

    story()


@JUMPS
def test_a_jump_closes_no_connection_and_keeps_none_open(by_ms: int) -> None:
    @told({"connections.max.idle.ms": 20_000}, instant_network=True)
    async def story(world: World, broker: Broker, client: Client) -> None:
        silent = await connect(broker)
        watch = Stopwatch(world)

        async def stay_busy() -> None:
            for _ in range(8):
                assert (await client.asked(MetadataRequest(topics=[]), 12)).brokers
                await asyncio.sleep(5)

        async def be_silent() -> float:
            await asyncio.sleep(1)
            world.clock.jump(by_ms)
            assert await silent.is_closed()
            return watch.ms

        closed_ms, _ = await asyncio.gather(be_silent(), stay_busy())

        assert 20_000 <= closed_ms <= 26_000

    story()


@JUMPS
def test_a_clock_jump_ends_no_session_and_fences_no_broker(by_ms: int) -> None:
    @told({"max.incremental.fetch.session.cache.slots": 1})
    async def story(world: World, broker: Broker, client: Client) -> None:
        await client.create("orders")
        session = (await client.asked(fetch_of("orders", {0: 0}, session_epoch=0), 12)).session_id

        world.clock.jump(by_ms)
        await asyncio.sleep(60)

        newcomer = await client.asked(fetch_of("orders", {0: 0}, session_epoch=0), 12)
        assert newcomer.session_id == 0, "the one that is there is not old"
        going_on = fetch_of("orders", {}, session_id=session, session_epoch=1)
        assert (await client.asked(going_on, 12)).error_code == 0
        assert not broker.services.image.brokers[1].fenced
        assert partition_of(broker, "orders").leader_epoch == 0

    story()


@SMALL_JUMPS
def test_topics_are_made_and_written_to_after_a_jump(by_ms: int) -> None:
    @told()
    async def story(world: World, broker: Broker, client: Client) -> None:
        await client.create("before", message_timestamp_type="LogAppendTime")
        await client.produce("before", b"one")

        world.clock.jump(by_ms)
        await client.create("after")
        assert await client.produce("after", b"two", time=world.clock.now_ms()) == 0
        assert await client.produce("before", b"three") == 1
        await asyncio.sleep(60)

        async with client_of(broker) as other:
            assert values_of(await other.fetch("before")) == [b"one", b"three"]

    story()
