"""Work that is done together ends together, and its error is seen as what it is."""

import asyncio
from itertools import pairwise
from random import Random

import pytest

from barnabas.base.tasks import RESTART_S, RESTART_S_MAX, Tasks, keep_running, together
from barnabas.sim.loop import SimLoop


def test_all_of_it_is_done() -> None:
    done: list[int] = []

    async def work(number: int) -> None:
        await asyncio.sleep(0)
        done.append(number)

    asyncio.run(together(work(1), work(2), work(3)))

    assert sorted(done) == [1, 2, 3]


def test_an_error_stops_the_others_and_keeps_its_type() -> None:
    stopped: list[bool] = []

    async def wait_forever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    async def fail() -> None:
        await asyncio.sleep(0)
        raise OSError(5, "the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        asyncio.run(together(wait_forever(), fail()))

    assert stopped == [True]


def test_work_that_fails_is_begun_again_after_longer_and_longer_pauses() -> None:
    loop = SimLoop(Random(1))
    begun: list[float] = []

    async def fail() -> None:
        begun.append(loop.time())
        raise AssertionError("this cannot be")

    async def story() -> None:
        task = asyncio.ensure_future(keep_running("test", fail))
        await asyncio.sleep(1_000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    loop.run_until_complete(story())
    loop.close()

    pauses = [round(after - before, 3) for before, after in pairwise(begun)]
    assert pauses[:7] == [RESTART_S * 2**number for number in range(6)] + [RESTART_S_MAX]
    assert set(pauses[7:]) == {RESTART_S_MAX}


def test_work_that_failed_after_long_is_begun_again_soon() -> None:
    loop = SimLoop(Random(1))
    begun: list[float] = []

    async def fail_later() -> None:
        begun.append(loop.time())
        await asyncio.sleep(RESTART_S_MAX + 1)
        raise AssertionError("this cannot be")

    async def story() -> None:
        task = asyncio.ensure_future(keep_running("test", fail_later))
        await asyncio.sleep(1_000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    loop.run_until_complete(story())
    loop.close()

    pauses = {round(after - before, 3) for before, after in pairwise(begun)}
    assert pauses == {RESTART_S_MAX + 1 + RESTART_S}


def test_a_failed_task_is_reported_and_others_continue() -> None:
    async def story() -> tuple[list[BaseException], list[str]]:
        crashes: list[BaseException] = []
        done: list[str] = []
        tasks = Tasks(crashes.append)

        async def fail() -> None:
            raise AssertionError("this cannot be")

        async def work() -> None:
            await asyncio.sleep(0)
            done.append("work")

        tasks.start(fail())
        tasks.start(work())
        await tasks.finish()
        return crashes, done

    crashes, done = asyncio.run(story())

    assert [str(crash) for crash in crashes] == ["this cannot be"]
    assert done == ["work"]
