"""The free space of log directories is measured in the executor, with a timeout."""

import asyncio
from typing import Any

import pytest

from barnabas.base.executor import InlineExecutor
from barnabas.base.tasks import Tasks
from barnabas.server.disk_space import WAIT_MAX_S, DiskSpace
from barnabas.sim.world import run_sim
from support.hosted import one_topic
from support.log.logs import PausedExecutor
from support.log.managers import A, B, on_a_loop


@on_a_loop
async def test_the_space_of_every_online_directory_is_measured() -> None:
    broker = await one_topic()
    broker.disk.capacity = 1_000_000
    space = DiskSpace(broker.logs, InlineExecutor(), broker.services.tasks)

    both = await space.measure()
    broker.logs.fail_directory(broker.logs.directories[0], OSError("gone"))
    one = await space.measure()

    assert sorted(both) == [A, B]
    assert both[A].total_bytes == 1_000_000
    assert both[A].free_bytes == 1_000_000 - broker.disk.used
    assert sorted(one) == [B]


def test_a_hanging_disk_blocks_no_caller_and_is_measured_once() -> None:
    async def story(world: Any) -> None:
        broker = await one_topic()
        stuck = PausedExecutor()
        crashes: list[BaseException] = []
        space = DiskSpace(broker.logs, stuck, Tasks(crashes.append))
        began = world.loop.time()

        assert await space.measure() == {}
        assert await space.measure() == {}

        assert world.loop.time() - began == pytest.approx(2 * WAIT_MAX_S)
        assert stuck.waiting == 2, "one for each directory"
        stuck.gate.set()
        await asyncio.sleep(0)
        assert sorted(await space.measure()) == [A, B]

        stuck.gate.clear()
        assert await space.measure() == {}, "what it was before is not what it is"
        stuck.gate.set()
        await asyncio.sleep(0)
        assert crashes == []

    run_sim(story)


@on_a_loop
async def test_a_disk_that_answers_with_an_error_is_left_out() -> None:
    broker = await one_topic()
    space = DiskSpace(broker.logs, InlineExecutor(), broker.services.tasks)
    broker.disk.remove(f"{B}/.lock")
    for path in [path for path in broker.disk.tree() if path.startswith(B)]:
        broker.disk.remove(path)
    broker.disk.rename(B, "/mnt/elsewhere")

    assert sorted(await space.measure()) == [A]
    assert broker.crashes == []
