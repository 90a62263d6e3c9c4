"""One disk, several lives of its broker: worlds that follow each other, and how each of them ends.

A life ends well (support.brokers.running stops the broker), by a kill (the process is gone, and what it wrote
is there, because the operating system has it), or with the power (what was not synced may be gone).
"""

from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from barnabas.server.broker import Broker
from barnabas.sim.disk import PowerLoss, SimDisk
from barnabas.sim.errors import SimulationError, SimulationFailed
from barnabas.sim.world import UNTIL_MS, World
from support.brokers import broker_settings, make_broker

_SEEDS_APART = 1_000_000


def next_life(world: World, disk: SimDisk | None = None) -> World:
    """The world after this one: the date goes on, and the disk is as a killed process leaves it."""
    after = World(world.seed + _SEEDS_APART)
    after.clock.jump(world.clock.now_ms() - after.clock.now_ms())
    after.disk = disk or world.disk.branch(after.dice("disk"))
    return after


async def started(world: World, settings: Mapping[str, object] | None = None) -> Broker:
    """A broker that nobody will stop."""
    broker = make_broker(world, broker_settings(settings))
    await broker.start()
    return broker


@contextmanager
def doomed(world: World) -> Iterator[World]:
    """A world whose power will go. What its broker says of that when the world ends is not looked at."""
    try:
        yield world
    finally:
        with suppress(SimulationError, PowerLoss, OSError):
            world.close()


def until_power_loss(
    world: World, story: Coroutine[Any, Any, object], *, until_ms: float = UNTIL_MS
) -> tuple[SimDisk, str]:
    """Run a story until the power goes, wherever that is; the disk that is left, and what it lacks."""
    try:
        world.run(story, until_ms=until_ms)
    except PowerLoss:
        pass
    except SimulationFailed as failure:
        if not isinstance(failure.__cause__, PowerLoss):
            raise
    said = world.disk.crash()
    return world.disk.branch(world.dice("next disk")), said
