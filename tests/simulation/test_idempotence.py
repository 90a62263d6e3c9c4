"""Idempotent producers: each record once and in order, whatever the network and the process do meanwhile."""

import asyncio
from asyncio import IncompleteReadError
from contextlib import ExitStack

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import running
from support.lives import next_life, started
from support.log.fault_world import replayable
from support.scale import seeds
from support.stories import Client, client_of, connect, told
from support.wire.requests import Producer, produced

IN_FLIGHT = 5
RECORDS = 200
KILLS = 3


@told()
async def test_a_duplicate_gets_the_offset_of_the_first(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    me = await client.producer()
    await client.produce("orders", b"before")
    first = await client.try_produce("orders", b"one", b"two", producer=me, sequence=0)
    await client.produce("orders", b"between")

    again = await client.try_produce("orders", b"one", b"two", producer=me, sequence=0)

    assert (first.error_code, first.base_offset) == (0, 1)
    assert (again.error_code, again.base_offset) == (0, 1)
    assert await client.values("orders") == [b"before", b"one", b"two", b"between"]


@told()
async def test_a_gap_is_refused_and_can_still_be_filled(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    me = await client.producer()
    await client.produce("orders", b"0", producer=me, sequence=0)

    gap = await client.try_produce("orders", b"2", producer=me, sequence=2)
    await client.produce("orders", b"1", producer=me, sequence=1)
    await client.produce("orders", b"2", producer=me, sequence=2)

    assert (gap.error_code, gap.base_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert await client.values("orders") == [b"0", b"1", b"2"]


@told()
async def test_an_old_epoch_is_fenced_by_a_new_one(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    old = await client.producer()
    new = Producer(old.id, old.epoch + 1)
    await client.produce("orders", b"old", producer=old, sequence=0)
    await client.produce("orders", b"new", producer=new, sequence=0)

    late = await client.try_produce("orders", b"late", producer=old, sequence=1)

    assert late.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await client.values("orders") == [b"old", b"new"]


class Sender:
    """A producer with five batches in flight that sends again, in order, what was not answered."""

    def __init__(self, me: Producer) -> None:
        self._me = me
        self.answered = 0
        self.connections = 0

    async def send_all(self, broker: Broker) -> None:
        while self.answered < RECORDS:
            try:
                client = await connect(broker)
                self.connections += 1
                await self._send(client)
            except (IncompleteReadError, OSError):
                await asyncio.sleep(0.01)

    async def _send(self, client: Client) -> None:
        begun = self.answered
        try:
            while self.answered < RECORDS:
                while begun < min(self.answered + IN_FLIGHT, RECORDS):
                    client.send_produce("orders", b"%d" % begun, producer=self._me, sequence=begun)
                    begun += 1
                async with asyncio.timeout(2):
                    _, answer = await client.answer()
                done = produced(answer)
                assert done.error_code == 0, ErrorCode(done.error_code).name
                assert done.base_offset == self.answered
                self.answered += 1
        finally:
            client.close()


@pytest.mark.parametrize("seed", seeds(10))
def test_five_batches_in_flight_with_retries_write_each_record_once(seed: int) -> None:
    with World(seed) as world, replayable(seed, []):
        world.network.delay_all((0.5, 5))

        async def disturb() -> None:
            dice = world.dice("trouble")
            while True:
                await asyncio.sleep(dice.uniform(0.001, 0.1))
                if dice.random() < 0.7:
                    world.network.reset("localhost", "localhost")
                else:
                    world.network.cut("localhost", "localhost")
                    await asyncio.sleep(dice.uniform(0.01, 3))
                    world.network.heal()

        async def story() -> None:
            async with running(world) as broker, client_of(broker) as client:
                await client.create("orders")
                sender = Sender(await client.producer())
                trouble = asyncio.ensure_future(disturb())
                await sender.send_all(broker)
                trouble.cancel()
                world.network.heal()
                async with client_of(broker) as reader:
                    assert await reader.values("orders") == [b"%d" % number for number in range(RECORDS)]
                assert sender.connections > 1

        world.run(story())


async def begin(client: Client) -> Producer:
    await client.create("orders")
    me = await client.producer()
    for number in range(7):
        await client.produce("orders", b"%d" % number, producer=me, sequence=number)
    return me


async def go_on(client: Client, me: Producer, *, unheard: int) -> None:
    """As a producer does that did not hear of its last batches."""
    for number in range(7 - unheard, 7):
        again = await client.try_produce("orders", b"%d" % number, producer=me, sequence=number)
        assert (again.error_code, again.base_offset) == (0, number)
    gap = await client.try_produce("orders", b"8", producer=me, sequence=8)
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert await client.produce("orders", b"7", producer=me, sequence=7) == 7
    assert (await client.producer()).id > me.id, "no id is given away twice"
    assert await client.values("orders") == [b"%d" % number for number in range(8)]


def test_producers_are_known_after_a_clean_restart() -> None:
    with World(1) as world:

        async def first() -> Producer:
            async with running(world) as broker, client_of(broker) as client:
                return await begin(client)

        async def second(me: Producer) -> None:
            async with running(world) as broker, client_of(broker) as client:
                # A snapshot of producers has the last batch of each, as Kafka's has.
                await go_on(client, me, unheard=1)

        world.run(second(world.run(first())))


def test_producers_are_known_after_a_kill() -> None:
    with World(1) as world:

        async def first() -> Producer:
            async with client_of(await started(world)) as client:
                return await begin(client)

        me = world.run(first())
        with next_life(world) as after:

            async def second() -> None:
                async with running(after) as broker, client_of(broker) as client:
                    # The log is read again, and all that a producer may have in flight is in it.
                    await go_on(client, me, unheard=IN_FLIGHT)

            after.run(second())


@pytest.mark.parametrize("seed", seeds(10))
def test_a_producer_that_lives_through_kills_gets_each_record_in_once(seed: int) -> None:
    with ExitStack() as worlds, replayable(seed, []):
        world = worlds.enter_context(World(seed))

        async def meet() -> Sender:
            async with client_of(await started(world)) as client:
                await client.create("orders")
                return Sender(await client.producer())

        async def live(world: World, sender: Sender) -> None:
            sending = asyncio.ensure_future(sender.send_all(await started(world)))
            await asyncio.wait([sending], timeout=world.dice("life").uniform(0.001, 0.03))

        sender = world.run(meet())
        for _ in range(KILLS):
            world = worlds.enter_context(next_life(world))
            world.run(live(world, sender))
        world = worlds.enter_context(next_life(world))

        async def finish() -> list[bytes | None]:
            async with running(world) as broker, client_of(broker) as client:
                await sender.send_all(broker)
                return await client.values("orders")

        assert world.run(finish()) == [b"%d" % number for number in range(RECORDS)]
