"""Backoff between retries."""

from random import Random

from barnabas.client.deadline import Backoff


def test_waits_double_up_to_the_maximum_with_a_fifth_of_jitter() -> None:
    backoff = Backoff(first_ms=100, max_ms=1000, rng=Random(1))

    for failures, usual_ms in [(1, 100), (2, 200), (4, 800), (5, 1000), (10_000, 1000)]:
        waits = [backoff.wait_ms(failures) for _ in range(200)]
        assert 0.8 * usual_ms <= min(waits) < 0.9 * usual_ms
        assert 1.1 * usual_ms < max(waits) <= 1.2 * usual_ms


def test_a_first_wait_above_the_maximum_is_the_only_one() -> None:
    backoff = Backoff(first_ms=500, max_ms=100, rng=Random(1))

    assert 400 <= backoff.wait_ms(1) <= 600
    assert 400 <= backoff.wait_ms(9) <= 600
