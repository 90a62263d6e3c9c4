"""Blocking work goes somewhere else, and what it raises comes back."""

import asyncio
import threading

import pytest

from barnabas.base.clock import SystemClock
from barnabas.base.executor import InlineExecutor, ThreadExecutor


def test_threads_leave_the_loop_free() -> None:
    executor = ThreadExecutor(2)
    seen: list[str] = []

    async def story() -> None:
        may_end = threading.Event()
        work = asyncio.create_task(executor.run(lambda: (may_end.wait(60), threading.get_ident())[1]))
        await asyncio.sleep(0)
        seen.append("the loop goes on")
        may_end.set()
        assert await work != threading.get_ident()

    asyncio.run(story())
    executor.close()

    assert seen == ["the loop goes on"]


def fail() -> None:
    raise OSError(28, "full")


def test_an_exception_of_the_work_is_raised_to_the_caller() -> None:
    threads = ThreadExecutor(1)
    for executor in (threads, InlineExecutor()):
        with pytest.raises(OSError, match="full"):
            asyncio.run(executor.run(fail))
    threads.close()


def test_the_monotonic_clock_does_not_go_back_and_the_other_is_of_today() -> None:
    clock = SystemClock()

    before = clock.monotonic_ms()

    assert clock.monotonic_ms() >= before
    assert clock.now_ms() > 1_700_000_000_000


def test_all_threads_are_made_at_the_beginning() -> None:
    before = threading.active_count()

    executor = ThreadExecutor(5)

    assert threading.active_count() == before + 5
    assert executor.close()


def test_close_waits_up_to_its_timeout_and_drops_queued_work() -> None:
    executor = ThreadExecutor(1)
    may_end, done = threading.Event(), threading.Event()

    async def story() -> None:
        running = asyncio.ensure_future(executor.run(lambda: may_end.wait(60)))
        waiting = asyncio.ensure_future(executor.run(done.set))
        await asyncio.sleep(0.01)
        assert not executor.close(0.01)
        may_end.set()
        assert await running
        await asyncio.gather(waiting, return_exceptions=True)
        assert waiting.cancelled()

    asyncio.run(story())

    assert not done.is_set()
