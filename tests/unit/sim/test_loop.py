"""The simulated loop: virtual time, deterministic order, and no run that hangs or fails silently."""

import asyncio
import gc
import threading
from collections.abc import Coroutine
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from barnabas.sim.errors import SimulationFailed, SimulationStuck, SimulationTooLong
from barnabas.sim.loop import SimLoop
from barnabas.sim.world import World, run_sim

DAY_S = 86_400


def run(story: Coroutine[Any, Any, Any], seed: int = 0, until_ms: float = 600_000) -> Any:
    with World(seed) as world:
        return world.run(story, until_ms=until_ms)


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_long_sleep_takes_exactly_its_virtual_time() -> None:
    async def story() -> tuple[float, float]:
        begun = now()
        await asyncio.sleep(30 * DAY_S)
        return begun, now()

    assert run(story(), until_ms=31 * DAY_S * 1000) == (0.0, 30 * DAY_S)


def test_the_clock_never_says_that_a_wait_was_shorter_than_it_was_to_be() -> None:
    async def story(world: World) -> None:
        for ms in range(1, 2000):
            before = world.clock.monotonic_ms()
            await asyncio.sleep(ms / 1000)
            assert world.clock.monotonic_ms() == before + ms

    with World() as world:
        world.run(story(world), until_ms=1e9)


def test_callbacks_keep_their_order_and_timers_that_of_their_times() -> None:
    async def story() -> list[str]:
        seen: list[str] = []
        loop = asyncio.get_running_loop()
        loop.call_later(0.2, seen.append, "late")
        loop.call_later(0.1, seen.append, "early")
        for number in range(3):
            loop.call_soon(seen.append, f"soon {number}")
        await asyncio.sleep(1)
        return seen

    assert run(story()) == ["soon 0", "soon 1", "soon 2", "early", "late"]


def test_asyncios_own_tools_work() -> None:
    async def story() -> list[object]:
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)
        event = asyncio.Event()
        seen: list[object] = []

        async def produce() -> None:
            for number in range(5):
                await queue.put(number)
            event.set()

        async def consume() -> None:
            while len(seen) < 5:
                await asyncio.sleep(1)
                seen.append(await queue.get())

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            group.create_task(consume())
        await event.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(2.5):
                await asyncio.Event().wait()
        seen.append(now())
        return seen

    assert run(story()) == [0, 1, 2, 3, 4, 7.5]


def test_a_deadlock_is_an_error_with_the_waiting_tasks() -> None:
    async def waits_for_godot() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        await asyncio.create_task(waits_for_godot(), name="vladimir")

    with pytest.raises(SimulationStuck) as caught:
        run(story())

    text = str(caught.value)
    assert "vladimir: waits_for_godot (sim/test_loop.py:" in text
    assert "> wait (asyncio/locks.py:" in text


def test_a_story_has_a_limit_of_virtual_time() -> None:
    async def story() -> None:
        while True:
            await asyncio.sleep(1)

    with pytest.raises(SimulationTooLong, match=r"limit of 10.0 s exceeded(.|\n)*story \(sim/test_loop"):
        run(story(), until_ms=10_000)


def test_a_story_has_a_limit_of_loop_iterations() -> None:
    async def story() -> None:
        while True:
            await asyncio.sleep(0)

    with World() as world:
        world.loop.turns_max = 1000
        with pytest.raises(
            SimulationTooLong, match=r"1000 loop iterations exceeded(.|\n)*story \(sim/test_loop"
        ):
            world.run(story())


async def fails() -> None:
    raise OSError("nobody looks at me")


def test_the_error_of_a_forgotten_task_ends_the_run() -> None:
    async def story() -> None:
        task = asyncio.create_task(fails())
        await asyncio.sleep(1)
        del task
        await asyncio.sleep(DAY_S)

    with pytest.raises(SimulationFailed, match="nobody looks at me") as caught:
        run(story(), until_ms=2 * DAY_S * 1000)

    assert isinstance(caught.value.__cause__, OSError)


def test_the_error_of_a_task_in_a_cycle_of_garbage_is_seen_too() -> None:
    async def story() -> None:
        cycle: list[Any] = [asyncio.create_task(fails())]
        cycle.append(cycle)
        await asyncio.sleep(1)

    with pytest.raises(SimulationFailed, match="nobody looks at me"):
        run(story())


def test_the_error_of_a_callback_ends_the_run_there_and_then() -> None:
    async def story() -> None:
        asyncio.get_running_loop().call_later(1, lambda: 1 // 0)
        await asyncio.sleep(2)

    with World() as world:
        with pytest.raises(SimulationFailed, match="by zero"):
            world.run(story())
        assert world.loop.time() == 1


def test_an_unretrieved_error_does_not_hide_the_error_of_the_story() -> None:
    async def story() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        raise KeyError("the story's own")

    with pytest.raises(KeyError, match="the story's own") as caught:
        run(story())

    assert any("by zero" in note for note in caught.value.__notes__)


def test_tasks_that_are_left_are_cancelled_at_the_end() -> None:
    ends: list[str] = []

    async def lingers() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            ends.append("cleaned up")

    async def story() -> None:
        asyncio.get_running_loop().kept = asyncio.create_task(lingers())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    run(story())

    assert ends == ["cleaned up"]


def test_a_task_that_fails_while_it_is_cancelled_makes_the_end_fail() -> None:
    async def stumbles() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("at the end")

    async def story() -> None:
        asyncio.get_running_loop().kept = asyncio.create_task(stumbles())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    with pytest.raises(SimulationFailed, match="at the end"):
        run(story())


def test_tasks_continue_in_the_next_run() -> None:
    async def ticks(seen: list[float]) -> None:
        while True:
            await asyncio.sleep(1)
            seen.append(now())

    seen: list[float] = []
    with World() as world:
        task = world.loop.create_task(ticks(seen))
        world.run(asyncio.sleep(2.5))
        world.run(asyncio.sleep(2))
        task.cancel()

    assert seen == [1.0, 2.0, 3.0, 4.0]


def test_a_group_cancels_its_tasks_in_the_same_order_every_time() -> None:
    async def story() -> list[int]:
        ends: list[int] = []

        async def waits(number: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ends.append(number)

        with suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                for number in range(20):
                    group.create_task(waits(number))
                await asyncio.sleep(0)
                raise OSError
        return ends

    # Allocate objects in between, so that addresses are not equal by chance.
    kept = []
    orders = []
    for size in range(5):
        orders.append(run(story()))
        kept.append([object() for _ in range(size * 1000)])

    assert all(order == orders[0] for order in orders)


def test_the_collector_is_as_before_after_a_run() -> None:
    frozen = gc.get_freeze_count()

    run(asyncio.sleep(1))

    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen


def test_threads_are_refused() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        refused: list[str] = []

        def call_in() -> None:
            try:
                loop.call_soon_threadsafe(print)
            except RuntimeError as error:
                refused.append(str(error))

        thread = threading.Thread(target=call_in)
        thread.start()
        thread.join()
        assert refused == ["called from another thread, which the simulated world does not support"]
        assert await asyncio.to_thread(threading.get_ident) == threading.get_ident()

    run(story())


def test_a_loop_can_be_used_without_a_world() -> None:
    loop = SimLoop(Random(1))

    loop.run_until_complete(asyncio.sleep(5))

    assert loop.time() == 5.0
    loop.close()


def test_a_failed_run_has_its_seed_and_replay_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/sim/test_x.py::test_y[7] (call)")
    monkeypatch.setenv("PYTHONHASHSEED", "0")

    async def story(world: World) -> None:
        raise AssertionError("wrong")

    with pytest.raises(AssertionError) as caught:
        run_sim(story, seed=7)

    [note] = caught.value.__notes__
    assert note.startswith("seed 7: PYTHONHASHSEED=0 ")
    assert note.endswith("-m pytest 'tests/sim/test_x.py::test_y[7]'")


def test_an_assertion_after_the_run_says_the_seed_too() -> None:
    def check() -> None:
        with World(9) as world:
            world.run(asyncio.sleep(1))
            assert world.loop.time() == 2

    with pytest.raises(AssertionError) as caught:
        check()

    assert caught.value.__notes__[0].startswith("seed 9: ")
