"""A sender that is early waits until its record is due."""

from barnabas.cli.perf.producing import Throttle


def test_an_early_sender_waits_until_the_record_is_due() -> None:
    throttle = Throttle(100, now_ms=1000)

    assert throttle.wait_ms(10, 1000) == 100
    assert throttle.wait_ms(10, 1090) == 10


def test_a_late_sender_does_not_wait() -> None:
    assert Throttle(100, now_ms=0).wait_ms(10, 500) == 0


def test_short_waits_are_accumulated() -> None:
    throttle = Throttle(1000, now_ms=0)

    assert throttle.wait_ms(1, 0) == 0
    assert throttle.wait_ms(2, 0) == 2


def test_without_a_rate_there_is_no_wait() -> None:
    assert Throttle(-1, now_ms=0).wait_ms(1_000_000, 0) == 0
