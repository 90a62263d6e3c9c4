"""A consumer through restarts and a bad network: every record once, in order, and nothing is left behind.

BARNABAS_SEEDS=500 pytest tests/simulation/test_consumer_faults.py     tries more of them
"""

import asyncio
from contextlib import suppress
from random import Random

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.message import Message
from barnabas.sim.world import World
from support.brokers import running
from support.our_client.consumer_worlds import consumer_of, nothing_left
from support.scale import seeds
from support.stories import client_of, say_goodbye

PARTITIONS = 3
LIVES = 4
RECORDS_A_LIFE = 90
HOST = "localhost"


async def write(broker: object, first: int) -> None:
    """The records of one life, numbered within their partitions."""
    async with client_of(broker) as client:  # type: ignore[arg-type]
        if first == 0:
            await client.create("orders", partitions=PARTITIONS)
        for number in range(first, first + RECORDS_A_LIFE // PARTITIONS, 2):
            for partition in range(PARTITIONS):
                sent = [b"%d" % each for each in (number, number + 1)]
                assert await client.produce("orders", *sent, partition=partition) == number
            await asyncio.sleep(0.005)


async def disturb(world: World, dice: Random) -> None:
    """Break every connection now and then, and hold the network up."""
    while True:
        await asyncio.sleep(dice.uniform(0.005, 0.3))
        if dice.random() < 0.7:
            world.network.reset(HOST, HOST)
        else:
            world.network.delay_all((0.0, dice.uniform(0, 0.05)))


async def read(consumer: Consumer, dice: Random, found: list[Message], count: int) -> None:
    """In all the ways there are, slowly and fast, with readers that are cancelled and with seeks."""
    while len(found) < count:
        match dice.randrange(6):
            case 0:
                # Whoever waits without end must not have paused what is left.
                consumer.resume()
                found.append(await anext(consumer))
            case 1:
                waiting = asyncio.ensure_future(consumer.batch(dice.randrange(1, 20)))
                await asyncio.sleep(dice.choice((0, 0.001, 0.05)))
                waiting.cancel()
                with suppress(asyncio.CancelledError):
                    found += await waiting
            case 2:
                await asyncio.sleep(dice.uniform(0, 0.02))
            case 3:
                some = dice.choice(sorted(consumer.assignment))
                consumer.pause(some) if dice.random() < 0.3 else consumer.resume()
            case 4:
                # To where it is anyway: whatever is under way is dropped and comes again.
                some = dice.choice(sorted(consumer.assignment))
                consumer.seek(some, await consumer.position(some))
            case _:
                found += await consumer.batch(dice.randrange(1, 20), timeout_ms=dice.choice((0, 10, 500)))


def check(found: list[Message], each: int) -> None:
    for partition in range(PARTITIONS):
        mine = [message for message in found if message.partition == partition]
        assert [message.offset for message in mine] == list(range(each)), partition
        assert [message.value for message in mine] == [b"%d" % number for number in range(each)]


@pytest.mark.parametrize("seed", seeds(25))
def test_every_record_is_read_once_and_in_order(seed: int) -> None:
    with World(seed) as world:
        dice = world.dice("faults")

        async def story() -> None:
            before = set(asyncio.all_tasks())
            found: list[Message] = []
            consumer: Consumer | None = None
            trouble: asyncio.Task[None] | None = None
            for life in range(LIVES):
                async with running(world) as broker:
                    if consumer is None:
                        await write(broker, 0)
                        consumer = consumer_of(
                            world,
                            max_partition_fetch_bytes=dice.choice((200, 1_000, 1 << 20)),
                            queued_max_messages_kbytes=dice.choice((1, 1024)),
                            max_poll_records=dice.choice((1, 7, 500)),
                        )
                        await consumer.start()
                        await consumer.assign_topic("orders")
                    else:
                        await write(broker, life * RECORDS_A_LIFE // PARTITIONS)
                    trouble = asyncio.ensure_future(disturb(world, dice))
                    # Not to the end, but in the last life: the broker goes away in the middle.
                    last = life == LIVES - 1
                    done = (life + 1) * RECORDS_A_LIFE
                    await read(consumer, dice, found, done if last else done - dice.randrange(RECORDS_A_LIFE))
                    trouble.cancel()
                    say_goodbye(broker)
                    if last:
                        consumer.resume()
                        assert await consumer.batch(timeout_ms=3_000) == []
                        await consumer.close()
                if not last:
                    await asyncio.sleep(dice.choice((0, 0.5, 20)))
            assert consumer is not None
            nothing_left(consumer, before)
            check(found, LIVES * RECORDS_A_LIFE // PARTITIONS)

        world.run(story())


@pytest.mark.parametrize("seed", seeds(20))
def test_closing_at_any_moment_leaves_nothing_behind(seed: int) -> None:
    with World(seed) as world:
        dice = world.dice("close")

        async def story() -> None:
            async with running(world) as broker:
                await write(broker, 0)
                for _ in range(5):
                    before = set(asyncio.all_tasks())
                    consumer = consumer_of(world)
                    reader = asyncio.ensure_future(life_of(consumer))
                    await asyncio.sleep(dice.choice((0, 0.0005, 0.002, 0.005, 0.02, 0.7)))
                    reader.cancel()
                    with suppress(asyncio.CancelledError):
                        await reader
                    await asyncio.sleep(0)
                    nothing_left(consumer, before)

        world.run(story())


async def life_of(consumer: Consumer) -> None:
    async with consumer:
        await consumer.assign([TopicPartition("orders", 0)])
        while True:
            await consumer.batch()
            consumer.seek_to_beginning()
