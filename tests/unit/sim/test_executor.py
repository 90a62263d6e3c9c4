"""The simulated executor behaves like threads, with a speed that the test sets."""

import asyncio

import pytest

from barnabas.sim.disk import PowerLoss
from barnabas.sim.executor import DELAY_MS_MAX, THREADS, SimExecutor
from barnabas.sim.world import World, run_sim


def test_work_takes_virtual_time_within_its_bounds() -> None:
    async def story(world: World) -> None:
        world.executor.delay_ms = (20, 30)
        took = []
        for _ in range(50):
            before = world.loop.time()
            assert await world.executor.run(lambda: 5) == 5
            took.append(world.loop.time() - before)
        assert 0.02 <= min(took) < 0.022
        assert 0.028 < max(took) <= 0.03

    run_sim(story)


def test_an_exception_of_the_work_is_raised_to_its_waiter() -> None:
    def loses_power() -> None:
        raise PowerLoss

    async def story(world: World) -> None:
        with pytest.raises(ZeroDivisionError):
            await world.executor.run(lambda: 1 // 0)
        with pytest.raises(PowerLoss):
            await world.executor.run(loses_power)

    run_sim(story)


def test_no_more_is_done_at_once_than_there_are_threads() -> None:
    async def story(world: World) -> None:
        world.executor.delay_ms = (10, 10)
        await asyncio.gather(*(world.executor.run(lambda: None) for _ in range(3 * THREADS)))
        assert world.loop.time() == pytest.approx(0.03)

    run_sim(story)


def test_jobs_overtake_each_other() -> None:
    async def story(world: World) -> list[int]:
        done: list[int] = []
        await asyncio.gather(*(world.executor.run(lambda n=n: done.append(n)) for n in range(THREADS)))
        return done

    orders = {tuple(run_sim(story, seed)) for seed in range(20)}

    assert len(orders) > 5


def test_effects_are_there_before_the_result() -> None:
    async def story(world: World) -> float:
        done_at: list[float] = []
        await world.executor.run(lambda: done_at.append(world.loop.time()))
        return world.loop.time() - done_at[0]

    assert all(run_sim(story, seed) > 0 for seed in range(5))


def test_work_that_has_started_continues_when_its_waiter_is_cancelled() -> None:
    async def story(world: World) -> None:
        world.executor.delay_ms = (10, 10)
        done: list[str] = []
        begun = [
            asyncio.create_task(world.executor.run(lambda: done.append("begun"))) for _ in range(THREADS)
        ]
        in_line = asyncio.create_task(world.executor.run(lambda: done.append("in line")))
        await asyncio.sleep(0)
        for task in [*begun, in_line]:
            task.cancel()
        await asyncio.sleep(1)
        assert done == ["begun"] * THREADS
        assert await world.executor.run(lambda: "and the threads are free again")

    run_sim(story)


def test_a_disk_that_hangs_does_nothing_until_it_is_released() -> None:
    async def story(world: World) -> None:
        world.executor.hold()
        work = asyncio.create_task(world.executor.run(lambda: "done"))
        await asyncio.sleep(100)
        assert not work.done()
        assert world.executor.in_line == 1
        world.executor.release()
        assert await work == "done"

    run_sim(story)


@pytest.mark.parametrize("bounds", [(-1, 5), (5, 1), (0, DELAY_MS_MAX + 1)])
def test_delays_that_cannot_be_are_refused(bounds: tuple[float, float]) -> None:
    with World() as world, pytest.raises(ValueError, match="invalid delays"):
        world.executor.delay_ms = bounds


def test_the_executor_is_the_one_of_the_loop() -> None:
    async def story(world: World) -> None:
        world.executor.hold()
        work = world.loop.run_in_executor(None, pow, 2, 5)
        await asyncio.sleep(1)
        assert world.executor.in_line == 1
        world.executor.release()
        assert await work == 32

    run_sim(story)


def test_the_date_jumps_and_the_other_clock_does_not() -> None:
    with World() as world:
        date, monotonic, ticks = world.clock.now_ms(), world.clock.monotonic_ms(), world.clock.ticks_ns()

        world.clock.jump(-3_600_000)

        assert world.clock.now_ms() == date - 3_600_000
        assert world.clock.monotonic_ms() == monotonic
        assert world.clock.ticks_ns() == ticks


def test_another_executor_may_have_other_threads() -> None:
    async def story(world: World) -> None:
        one = SimExecutor(world.loop, world.dice("one thread"), threads=1)
        one.delay_ms = (10, 10)
        await asyncio.gather(*(one.run(lambda: None) for _ in range(5)))
        assert world.loop.time() == pytest.approx(0.05)

    run_sim(story)
