"""The whole node goes down under load, and what comes up again has lost nothing that it must not lose.

After a kill everything that was acknowledged is there. After a power loss the logs are whole up to some
record, which is not before what was flushed; and topics and settings that were acknowledged are always there.

BARNABAS_SEEDS=1000 pytest tests/simulation/test_crashes.py     tries more of them
"""

import asyncio
from contextlib import ExitStack

import pytest

from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import running
from support.lives import doomed, next_life, started, until_power_loss
from support.load import (
    Known,
    begin,
    check_ids,
    check_it_goes_on,
    check_metadata,
    check_records,
    flushed,
    prepare,
)
from support.log.fault_world import replayable
from support.scale import seeds
from support.stories import client_of, say_goodbye

# A life of this many changes of the disk is long enough for finished segments, checkpoints and elections.
OPERATIONS_MAX = 800
# Short lives with much in them: checkpoints, snapshots of the metadata, and a metadata log that is cut.
SETTINGS = {
    "log.dirs": "/a,/b",
    "log.flush.offset.checkpoint.interval.ms": 50,
    "log.initial.task.delay.ms": 20,
    "metadata.log.max.record.bytes.between.snapshots": 1_000,
    "metadata.max.retention.bytes": 2_000,
    "metadata.log.segment.ms": 30,
}
# Two more lives after the first: a recovery must leave nothing that the next one trips over.
LIVES_AFTER = 2


async def look(world: World, known: Known, at_least: dict[tuple[str, int], int]) -> None:
    async with running(world, SETTINGS) as broker, client_of(broker) as client:
        await check_metadata(client, known)
        await check_records(client, known, at_least)
        await check_it_goes_on(client)
        await check_ids(client, known)


def test_the_lives_that_are_cut_short_are_worth_it() -> None:
    """There is something in them that a crash could break."""
    known = Known()
    with World(0) as world:
        dice = world.dice("load")

        async def live() -> None:
            broker = await started(world, SETTINGS)
            await prepare(broker, known)
            begin(broker, known, dice)
            await asyncio.sleep(0.15)
            assert broker.controller.quorum.log_start_offset > 0, "the metadata log was cut"

        world.run(live())

        files = list(world.disk.tree())
        assert [path for path in files if "__cluster_metadata" in path and path.endswith(".checkpoint")]
        assert len([path for path in files if "ushed-" in path and path.endswith(".log")]) > len(known.sent)
        assert world.disk.read("/a/recovery-point-offset-checkpoint").count(b"\n") > 2
        assert all([known.deleted, known.retention_ms, known.producer_ids])
        assert min(known.written.values()) > 30


@pytest.mark.parametrize("seed", seeds(30))
def test_after_a_kill_nothing_is_missing_that_was_acknowledged(seed: int) -> None:
    known = Known()
    with World(seed) as world, replayable(seed, []):
        dice = world.dice("load")

        async def live() -> None:
            broker = await started(world, SETTINGS)
            await prepare(broker, known)
            begin(broker, known, dice)
            await asyncio.sleep(dice.uniform(0.01, 0.15))

        world.run(live())
        at_least = dict(known.written)
        with next_life(world) as after:
            after.run(look(after, known, at_least))


@pytest.mark.parametrize("seed", seeds(30))
def test_a_power_loss_keeps_logs_intact_and_acknowledged_metadata(seed: int) -> None:
    known = Known()
    brokers: list[Broker] = []
    with doomed(World(seed)) as world, replayable(seed, []):
        dice = world.dice("load")
        # Answers that do not wait for a slow disk are away long before it.
        world.network.delay_all((0.01, 0.1))
        world.executor.delay_ms = (0.01, dice.choice([1, 20]))

        async def live() -> None:
            broker = await started(world, SETTINGS)
            brokers.append(broker)
            await prepare(broker, known)
            world.disk.crash_after(dice.randrange(1, OPERATIONS_MAX))
            begin(broker, known, dice)
            await broker.failed

        disk, said = until_power_loss(world, live())
        at_least = flushed(brokers[0])
        with next_life(world, disk) as after, replayable(seed, [said]):
            after.run(look(after, known, at_least))


@pytest.mark.parametrize("seed", seeds(30))
def test_a_power_loss_during_start_keeps_flushed_data(seed: int) -> None:
    """The recovery of a crash is itself cut short, again and again, and the last one finds everything."""
    known = Known()
    with ExitStack() as worlds, replayable(seed, []):
        world = worlds.enter_context(World(seed))
        dice = world.dice("load")

        async def live() -> None:
            async with running(world, SETTINGS) as broker:
                await prepare(broker, known)
                load = begin(broker, known, dice)
                await asyncio.sleep(0.05)
                for task in load:
                    task.cancel()
                say_goodbye(broker)

        world.run(live())
        at_least = dict(known.written)
        disk, said = world.disk, [world.disk.crash()]
        for _ in range(LIVES_AFTER):
            world = worlds.enter_context(doomed(next_life(world, disk)))
            disk.crash_after(world.dice("crash").randrange(1, 80))
            disk, lost = until_power_loss(world, started_only(world))
            said.append(lost)
        with next_life(world, disk) as after, replayable(seed, said):
            after.run(look(after, known, at_least))


@pytest.mark.parametrize("seed", seeds(30))
def test_a_power_loss_during_stop_keeps_flushed_data(seed: int) -> None:
    known = Known()
    at_least: dict[tuple[str, int], int] = {}
    with doomed(World(seed)) as world, replayable(seed, []):
        dice = world.dice("load")

        async def live() -> None:
            broker = await started(world, SETTINGS)
            await prepare(broker, known)
            load = begin(broker, known, dice)
            await asyncio.sleep(0.05)
            for task in load:
                task.cancel()
            at_least.update(flushed(broker))
            world.disk.crash_after(dice.randrange(1, 60))
            await broker.stop()

        disk, said = until_power_loss(world, live())
        with next_life(world, disk) as after, replayable(seed, [said]):
            after.run(look(after, known, at_least))


async def started_only(world: World) -> None:
    broker = await started(world, SETTINGS)
    await broker.failed
