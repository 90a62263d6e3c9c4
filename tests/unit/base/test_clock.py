"""The machine's clocks, in the units that they say."""

import time

import pytest

from barnabas.base.clock import SystemClock

pytestmark = pytest.mark.kernel


def test_cpu_time_counts_work_and_not_sleep() -> None:
    clock = SystemClock()
    begun_ns, used_ns = clock.ticks_ns(), clock.used_ns()
    time.sleep(0.2)
    slept_ns, used_asleep_ns = clock.ticks_ns() - begun_ns, clock.used_ns() - used_ns
    while clock.used_ns() - used_ns < used_asleep_ns + 50_000_000:
        pass

    assert slept_ns >= 200_000_000
    assert used_asleep_ns < 100_000_000
    assert clock.ticks_ns() - begun_ns >= slept_ns + 50_000_000
