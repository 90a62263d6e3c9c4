"""The outlets that are flushed at the end of a loop iteration."""

import asyncio
import time
from collections.abc import Callable

import pytest

from barnabas.server.network.outlet import REST_MIN, BusyPoll, FlushQueue

pytestmark = pytest.mark.kernel


class Caller:
    """A outlet that runs a given function."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.flush = act


class Ticks:
    """A clock that advances by a microsecond at every read."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.looks = 0

    def __call__(self) -> int:
        self.looks += 1
        self.now_ns += 1_000
        return self.now_ns


def without_polling() -> FlushQueue:
    return FlushQueue(BusyPoll(time.monotonic_ns, time.thread_time_ns, 0))


def send_nothing() -> None:
    pass


def test_outlets_are_called_once_in_order_at_the_end_of_the_iteration() -> None:
    async def story() -> None:
        queue, called = without_polling(), list[str]()
        for name in ("first", "second", "third"):
            queue.add(Caller(lambda name=name: called.append(name)))  # type: ignore[misc]

        assert called == []
        await asyncio.sleep(0)
        assert called == ["first", "second", "third"]
        await asyncio.sleep(0)
        assert called == ["first", "second", "third"]

    asyncio.run(story())


def test_a_outlet_added_at_the_end_belongs_to_the_next_iteration() -> None:
    async def story() -> None:
        queue, calls = without_polling(), 0

        def call_again() -> None:
            nonlocal calls
            calls += 1
            queue.add(again)

        again = Caller(call_again)
        queue.add(again)

        for ended in range(3):
            assert calls == ended
            await asyncio.sleep(0)

    asyncio.run(story())


def test_a_failing_outlet_does_not_prevent_the_others() -> None:
    def fail() -> None:
        raise ValueError("a mistake")

    async def story() -> None:
        queue, called, seen = without_polling(), list[str](), list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context["exception"]))
        queue.add(Caller(fail))
        queue.add(Caller(lambda: called.append("other")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert called == ["other"]
        with pytest.raises(ValueError, match="a mistake"):
            raise seen[0]  # type: ignore[misc]

    asyncio.run(story())


def test_it_polls_for_the_configured_time() -> None:
    async def story() -> None:
        ticks = Ticks()
        queue = FlushQueue(BusyPoll(ticks, time.thread_time_ns, poll_ns=20_000))
        queue.add(Caller(send_nothing))
        for _ in range(10):
            await asyncio.sleep(0)
        assert 5 <= ticks.looks <= 15
        for _ in range(90):
            await asyncio.sleep(0)

        # The first look begins it, the last one ends it.
        assert ticks.looks == 21

    asyncio.run(story())


def test_a_request_during_polling_is_answered_and_extends_polling() -> None:
    async def story() -> None:
        ticks, answered = Ticks(), 0

        def answer() -> None:
            nonlocal answered
            answered += 1

        queue = FlushQueue(BusyPoll(ticks, time.thread_time_ns, poll_ns=20_000))
        for asked in range(1, 51):
            queue.add(Caller(answer))
            await asyncio.sleep(0)
            assert answered == asked
            await asyncio.sleep(0)
        looks = ticks.looks
        for _ in range(100):
            await asyncio.sleep(0)

        assert looks >= 50
        assert 15 <= ticks.looks - looks <= 21

    asyncio.run(story())


def test_requests_during_polling_count_as_successes() -> None:
    async def story() -> None:
        ticks = Ticks()
        queue = FlushQueue(BusyPoll(ticks, time.thread_time_ns, poll_ns=20_000))
        for _ in range(20):
            # One who asks again at once, and two who do not.
            queue.add(Caller(send_nothing))
            await asyncio.sleep(0)
            for _ in range(2):
                queue.add(Caller(send_nothing))
                for _ in range(60):
                    await asyncio.sleep(0)
        looks = ticks.looks
        queue.add(Caller(send_nothing))
        for _ in range(60):
            await asyncio.sleep(0)

        # It is not tired of it.
        assert ticks.looks > looks

    asyncio.run(story())


def test_it_polls_for_a_outlet_that_waits_for_its_socket() -> None:
    async def story() -> None:
        ticks = Ticks()
        queue = FlushQueue(BusyPoll(ticks, time.thread_time_ns, poll_ns=20_000))
        # It sleeps, and is woken by the socket.
        queue.sent_more()
        for _ in range(10):
            await asyncio.sleep(0)
        assert ticks.looks >= 5
        # More is taken while it is awake: it begins anew, again and again.
        for _ in range(10):
            queue.sent_more()
            for _ in range(10):
                await asyncio.sleep(0)
        assert ticks.looks >= 80
        looks = ticks.looks
        for _ in range(100):
            await asyncio.sleep(0)

        assert 5 <= ticks.looks - looks <= 21

    asyncio.run(story())


def test_sockets_that_become_writable_during_polling_count_as_successes() -> None:
    async def story() -> None:
        ticks = Ticks()
        queue = FlushQueue(BusyPoll(ticks, time.thread_time_ns, poll_ns=20_000))
        for _ in range(20):
            # One that takes more at once, and two that do not.
            queue.sent_more()
            await asyncio.sleep(0)
            for _ in range(2):
                queue.sent_more()
                for _ in range(60):
                    await asyncio.sleep(0)
        looks = ticks.looks
        queue.sent_more()
        for _ in range(60):
            await asyncio.sleep(0)

        assert ticks.looks > looks

    asyncio.run(story())


def test_without_new_requests_polling_ends() -> None:
    async def story() -> None:
        ticks = Ticks()
        queue = FlushQueue(BusyPoll(ticks, time.thread_time_ns, poll_ns=20_000))
        for _ in range(1_000):
            queue.add(Caller(send_nothing))
            for _ in range(30):
                await asyncio.sleep(0)

        # Awake after each of them, it would have looked 21,000 times.
        assert 9 * 21 <= ticks.looks <= 21 * (9 + 1_000 // REST_MIN) // 2

    asyncio.run(story())
