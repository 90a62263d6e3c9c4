"""Waiting for a condition: it ends as soon as the condition is true; a timeout reports the last check."""

from collections.abc import Iterator

import pytest

from barnabas.sim.world import World
from barnabas.testing import WaitTimedOut, wait_until, wait_until_async
from barnabas.testing.waiting import PAUSE_MAX_S


class Time:
    """A clock that advances only during pauses."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now(self) -> float:
        return self.now_s

    def pause(self, seconds: float) -> None:
        self.now_s += seconds


def numbers(*values: int) -> Iterator[int]:
    yield from values
    while True:
        yield values[-1]


def test_a_true_condition_is_not_waited_for() -> None:
    time = Time()

    assert wait_until(lambda: "yes", now=time.now, pause=time.pause) == "yes"
    assert time.now_s == 0


def test_the_wait_ends_soon_after_the_condition_becomes_true() -> None:
    time = Time()

    wait_until(lambda: time.now_s >= 3, timeout_s=10, now=time.now, pause=time.pause)

    assert 3 <= time.now_s < 3 + PAUSE_MAX_S


def test_a_timeout_reports_the_condition_and_the_last_value() -> None:
    time = Time()
    seen = numbers(0, 0, 0)

    with pytest.raises(WaitTimedOut, match=r"^waited 2 s for an order; last value: 0$") as caught:
        wait_until(lambda: next(seen), timeout_s=2, what="an order", now=time.now, pause=time.pause)

    assert isinstance(caught.value, AssertionError)
    assert time.now_s == pytest.approx(2)


def test_a_failed_assertion_counts_as_false_and_is_reported() -> None:
    time = Time()
    seen = numbers(1, 2, 3)

    def three() -> bool:
        found = next(seen)
        assert found == 3, f"only {found}"
        return True

    assert wait_until(three, now=time.now, pause=time.pause)

    def never() -> bool:
        raise AssertionError("not today")

    with pytest.raises(WaitTimedOut, match="for never; last failed assertion: not today"):
        wait_until(never, timeout_s=1, now=time.now, pause=time.pause)


def test_another_error_is_raised_at_once() -> None:
    time = Time()

    with pytest.raises(ZeroDivisionError):
        wait_until(lambda: 1 / 0, now=time.now, pause=time.pause)

    assert time.now_s == 0


def test_the_last_check_is_at_the_deadline() -> None:
    time = Time()

    assert wait_until(lambda: time.now_s >= 1, timeout_s=1, now=time.now, pause=time.pause)


def test_a_coroutine_uses_the_clock_of_its_loop() -> None:
    async def story() -> str:
        with pytest.raises(WaitTimedOut, match="waited 100 s for the end of days; last value: False"):
            await wait_until_async(lambda: False, timeout_s=100, what="the end of days")

        async def later() -> str:
            return "there"

        return await wait_until_async(later)

    with World(seed=1) as world:
        assert world.run(story()) == "there"
