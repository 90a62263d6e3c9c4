"""The senders that are called at the end of a loop iteration."""

import asyncio
import time
from collections.abc import Callable

import pytest

from barnabas.server.network.turn import BEGUN_AT_ONCE_MAX, BEGUN_TOGETHER_MAX, Turn
from barnabas.server.network.vigil import REST_MIN, Vigil

pytestmark = pytest.mark.kernel


class Caller:
    """A sender that runs a given function."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.send_now = act


class Ticks:
    """A clock that advances by a microsecond at every read."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.looks = 0

    def __call__(self) -> int:
        self.looks += 1
        self.now_ns += 1_000
        return self.now_ns


def asleep() -> Turn:
    return Turn(Vigil(time.monotonic_ns, time.thread_time_ns, 0))


def send_nothing() -> None:
    pass


def test_senders_are_called_once_in_order_at_the_end_of_the_iteration() -> None:
    async def story() -> None:
        turn, called = asleep(), list[str]()
        for name in ("first", "second", "third"):
            turn.add(Caller(lambda name=name: called.append(name)))  # type: ignore[misc]

        assert called == []
        await asyncio.sleep(0)
        assert called == ["first", "second", "third"]
        await asyncio.sleep(0)
        assert called == ["first", "second", "third"]

    asyncio.run(story())


def test_a_sender_added_at_the_end_belongs_to_the_next_iteration() -> None:
    async def story() -> None:
        turn, calls = asleep(), 0

        def call_again() -> None:
            nonlocal calls
            calls += 1
            turn.add(again)

        again = Caller(call_again)
        turn.add(again)

        for ended in range(3):
            assert calls == ended
            await asyncio.sleep(0)

    asyncio.run(story())


def test_a_failing_sender_does_not_prevent_the_others() -> None:
    def fail() -> None:
        raise ValueError("a mistake")

    async def story() -> None:
        turn, called, seen = asleep(), list[str](), list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context["exception"]))
        turn.add(Caller(fail))
        turn.add(Caller(lambda: called.append("other")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert called == ["other"]
        with pytest.raises(ValueError, match="a mistake"):
            raise seen[0]  # type: ignore[misc]

    asyncio.run(story())


def test_it_polls_for_the_configured_time() -> None:
    async def story() -> None:
        ticks = Ticks()
        turn = Turn(Vigil(ticks, time.thread_time_ns, awake_ns=20_000))
        turn.add(Caller(send_nothing))
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

        turn = Turn(Vigil(ticks, time.thread_time_ns, awake_ns=20_000))
        for asked in range(1, 51):
            turn.add(Caller(answer))
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
        turn = Turn(Vigil(ticks, time.thread_time_ns, awake_ns=20_000))
        for _ in range(20):
            # One who asks again at once, and two who do not.
            turn.add(Caller(send_nothing))
            await asyncio.sleep(0)
            for _ in range(2):
                turn.add(Caller(send_nothing))
                for _ in range(60):
                    await asyncio.sleep(0)
        looks = ticks.looks
        turn.add(Caller(send_nothing))
        for _ in range(60):
            await asyncio.sleep(0)

        # It is not tired of it.
        assert ticks.looks > looks

    asyncio.run(story())


def test_it_polls_for_a_sender_that_waits_for_its_socket() -> None:
    async def story() -> None:
        ticks = Ticks()
        turn = Turn(Vigil(ticks, time.thread_time_ns, awake_ns=20_000))
        # It sleeps, and is woken by the socket.
        turn.goes_on()
        for _ in range(10):
            await asyncio.sleep(0)
        assert ticks.looks >= 5
        # More is taken while it is awake: it begins anew, again and again.
        for _ in range(10):
            turn.goes_on()
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
        turn = Turn(Vigil(ticks, time.thread_time_ns, awake_ns=20_000))
        for _ in range(20):
            # One that takes more at once, and two that do not.
            turn.goes_on()
            await asyncio.sleep(0)
            for _ in range(2):
                turn.goes_on()
                for _ in range(60):
                    await asyncio.sleep(0)
        looks = ticks.looks
        turn.goes_on()
        for _ in range(60):
            await asyncio.sleep(0)

        assert ticks.looks > looks

    asyncio.run(story())


def test_without_new_requests_polling_ends() -> None:
    async def story() -> None:
        ticks = Ticks()
        turn = Turn(Vigil(ticks, time.thread_time_ns, awake_ns=20_000))
        for _ in range(1_000):
            turn.add(Caller(send_nothing))
            for _ in range(30):
                await asyncio.sleep(0)

        # Awake after each of them, it would have looked 21,000 times.
        assert 9 * 21 <= ticks.looks <= 21 * (9 + 1_000 // REST_MIN) // 2

    asyncio.run(story())


@pytest.mark.parametrize("backlogs", [0, 1, 8, 9, 100, 512, 513, 20_000])
def test_connections_with_a_backlog_share_an_iteration(backlogs: int) -> None:
    turn = asleep()
    turn.backlogs = backlogs

    assert 1 <= turn.share() <= BEGUN_AT_ONCE_MAX
    assert turn.share() == 1 or backlogs * turn.share() <= BEGUN_TOGETHER_MAX
    assert (turn.share() == BEGUN_AT_ONCE_MAX) == (backlogs <= BEGUN_TOGETHER_MAX // BEGUN_AT_ONCE_MAX)
