"""Many clients on a bad network, topics that come and go: the broker stays whole, and nothing is left behind.

BARNABAS_SEEDS=500 pytest tests/simulation/test_chaos.py     tries more of them
"""

import asyncio

import pytest

from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import running
from support.chaos import PARTITIONS, TOPICS, disturb, live
from support.log.fault_world import replayable
from support.scale import seeds
from support.stories import client_of, say_goodbye, until

CLIENTS = 40
# No request to the controller takes longer.
SETTLED_S = 5


async def check_nothing_is_left(broker: Broker, tasks_before: int) -> None:
    """Connections, waiting fetches and tasks of clients are gone with them."""
    await until(lambda: len(broker.listeners[0].pool) == 0)
    # What they had begun goes on to its end.
    await asyncio.sleep(SETTLED_S)
    assert not [str(tp) for tp, one in broker.replicas.partitions.items() if one.waiters]
    await until(lambda: len(broker._tasks._running) == tasks_before)
    assert not broker.failed.done(), broker.failed
    assert [one.path for one in broker.logs.directories if one.offline is not None] == []


async def check_logs(broker: Broker) -> None:
    """Every log that is there can be read from end to end."""
    async with client_of(broker) as client:
        for topic in TOPICS:
            if topic not in broker.services.image.topics:
                await client.create(topic, partitions=PARTITIONS)
            for index in range(PARTITIONS):
                found = await client.read(topic, partition=index)
                assert [record.offset for record in found] == list(range(len(found)))
                assert await client.produce(topic, b"after", partition=index) == len(found)


@pytest.mark.parametrize("seed", seeds(15))
def test_nothing_breaks_and_nothing_stays_behind(seed: int) -> None:
    with World(seed) as world, replayable(seed, []):
        dice = world.dice("chaos")

        async def story() -> None:
            async with running(world) as broker:
                before = len(broker._tasks._running)
                trouble = asyncio.ensure_future(disturb(world, dice))
                lives = [later(dice.uniform(0, 2), live(broker, world.dice(str(n)))) for n in range(CLIENTS)]
                await asyncio.gather(*lives)
                trouble.cancel()
                world.network.heal()
                say_goodbye(broker)
                await check_nothing_is_left(broker, before)
                await check_logs(broker)

        world.run(story())
        world.run(again(world))


async def later(seconds: float, work: object) -> None:
    await asyncio.sleep(seconds)
    await work  # type: ignore[misc]


async def again(world: World) -> None:
    """The same after a restart."""
    async with running(world) as broker:
        assert broker.replicas.offline == {}
        await check_logs(broker)
