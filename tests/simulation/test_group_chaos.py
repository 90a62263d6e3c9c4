"""Brokers that go down while members of both protocols join, commit and leave, and what is there afterwards.

After a kill every commit that was acknowledged is there, and offsets have not gone back. After a power loss
that holds for what was flushed. In both cases the members come back and share everything again.

BARNABAS_SEEDS=500 pytest tests/simulation/test_group_chaos.py     tries more of them
"""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from barnabas.server.broker import Broker
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from barnabas.sim.world import World
from support.brokers import running
from support.group.model_lives import (
    OFFSETS_PARTITIONS,
    PARTITIONS,
    TOPIC,
    Acknowledged,
    Life,
    begin,
    check_commits,
    check_they_share,
    new_lives,
    watch_each_other,
)
from support.lives import doomed, next_life, started, until_power_loss
from support.log.fault_world import replayable
from support.scale import seeds
from support.stories import client_of, partition_of, say_goodbye

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
    "log.flush.interval.messages": 3,
}
MEMBERS = 2
LIVES = 2
OPERATIONS_MAX = 1_500


async def prepare(broker: Broker) -> None:
    async with client_of(broker) as client:
        await client.create(TOPIC, partitions=PARTITIONS)


async def look(
    world: World, lives: Sequence[Life], known: Acknowledged, least: dict[tuple[str, int], int]
) -> None:
    """The commits are there; the members come back and go on; then all of it ends well."""
    async with running(world, SETTINGS) as broker:
        async with client_of(broker) as client:
            await check_commits(client, known, least)
            tasks = begin(lives, broker)
            await check_they_share(lives)
            await check_commits(client, known, least)
            for one in tasks:
                one.cancel()
        say_goodbye(broker)


@pytest.mark.parametrize("seed", seeds(20))
def test_after_kills_acknowledged_commits_exist_and_members_rejoin(seed: int) -> None:
    known = Acknowledged()
    with ExitStack() as worlds, replayable(seed, []):
        world = worlds.enter_context(World(seed))
        dice = world.dice("members")
        lives = new_lives(known, dice, MEMBERS)
        watch_each_other(lives)
        for number in range(LIVES):
            here = world

            async def live(first: bool = number == 0, world: World = here) -> None:
                broker = await started(world, SETTINGS)
                if first:
                    await prepare(broker)
                async with client_of(broker) as client:
                    await check_commits(client, known, known.at_least())
                begin(lives, broker)
                await asyncio.sleep(dice.uniform(0.2, 1.5))

            world.run(live())
            world = worlds.enter_context(next_life(world))
        assert len(known.commits) > 10
        world.run(look(world, lives, known, known.at_least()))


@pytest.mark.parametrize("seed", seeds(20))
def test_after_a_power_loss_no_commit_is_lost_that_was_flushed(seed: int) -> None:
    known = Acknowledged()
    brokers: list[Broker] = []
    with doomed(World(seed)) as world, replayable(seed, []):
        dice = world.dice("members")
        lives = new_lives(known, dice, MEMBERS)

        async def live() -> None:
            broker = await started(world, SETTINGS)
            brokers.append(broker)
            await prepare(broker)
            async with client_of(broker) as client:
                await check_commits(client, known, {})
            world.disk.crash_after(dice.randrange(1, OPERATIONS_MAX))
            begin(lives, broker)
            await broker.failed

        disk, said = until_power_loss(world, live())
        flushed = [
            partition_of(brokers[0], OFFSETS_TOPIC, number).log.recovery_point
            for number in range(OFFSETS_PARTITIONS)
        ]
        with next_life(world, disk) as after, replayable(seed, [said]):
            after.run(look(after, lives, known, known.at_least(flushed)))
