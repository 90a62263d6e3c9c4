"""Deadlines of groups: moved often, due once."""

from random import Random

import pytest

from barnabas.coordinators.decision.timers import TimerKey, Timers

pytestmark = pytest.mark.kernel

A: TimerKey = ("session", "group", "a")
B: TimerKey = ("session", "group", "b")


def test_a_timer_is_due_at_its_time_and_only_once() -> None:
    timers = Timers()
    timers.set(A, 100)

    assert timers.due(99) == []
    assert timers.due(100) == [A]
    assert timers.due(1_000) == []
    assert A not in timers


def test_a_timer_that_was_moved_back_is_not_due_at_its_old_time() -> None:
    timers = Timers()
    timers.set(A, 100)
    timers.set(A, 200)

    assert timers.due(150) == []
    assert timers.due(200) == [A]


def test_a_timer_that_was_moved_forward_is_due_at_its_new_time() -> None:
    timers = Timers()
    timers.set(A, 200)
    timers.set(A, 100)

    assert timers.next_ms() == 100
    assert timers.due(100) == [A]
    assert timers.due(300) == []


def test_a_cancelled_timer_is_never_due_and_may_be_set_again() -> None:
    timers = Timers()
    timers.set(A, 100)
    timers.cancel(A)
    assert timers.due(100) == []

    timers.set(A, 300)
    assert timers.get(A) == 300
    assert timers.due(300) == [A]


def test_timers_due_together_fire_in_the_order_of_their_times() -> None:
    timers = Timers()
    timers.set(B, 90)
    timers.set(A, 100)
    timers.set(B, 80)

    assert timers.due(1_000) == [B, A]


def test_there_is_no_next_time_without_timers() -> None:
    timers = Timers()
    assert timers.next_ms() is None

    timers.set(A, 100)
    assert timers.next_ms() == 100


def test_timers_behave_like_a_searched_dictionary() -> None:
    rng = Random(7)
    timers, model = Timers(), dict[TimerKey, int]()
    now = 0
    for _ in range(20_000):
        key: TimerKey = ("session", "group", str(rng.randrange(30)))
        match rng.randrange(4):
            case 0 | 1:
                timers.set(key, at := now + rng.randrange(50))
                model[key] = at
            case 2:
                timers.cancel(key)
                model.pop(key, None)
            case _:
                now += rng.randrange(10)
                expected = sorted((at, one) for one, at in model.items() if at <= now)
                assert timers.due(now) == [one for _, one in expected]
                for _, one in expected:
                    del model[one]
                left = timers.next_ms()
                assert left is None or left > now
        assert len(timers) == len(model)
        following = timers.next_ms()
        assert not model or (following is not None and following <= min(model.values()))


def test_a_deadline_that_is_moved_a_million_times_does_not_pile_up() -> None:
    timers = Timers()
    for at in range(100_000, 0, -1):
        timers.set(A, at)

    assert len(timers._heap) < 100


def test_a_limited_number_of_due_timers_fires_earliest_first() -> None:
    timers = Timers()
    keys: list[TimerKey] = [("session", "group", f"{number:02}") for number in range(10)]
    for number, key in enumerate(keys):
        timers.set(key, number)
    # Moved, among those that are due.
    timers.set(keys[0], 7)

    assert timers.due(100, 4) == keys[1:5]
    assert timers.next_ms() == 5
    assert timers.due(100, 4) == [keys[5], keys[6], keys[0], keys[7]]
    assert timers.due(100) == keys[8:]
