"""The clock interface. Code that needs the time gets a Clock; the simulator passes one that it controls.

Compiled, because every request reads the time several times.
"""

import time
from typing import Final, Protocol

_time_ns: Final = time.time_ns
_monotonic_ns: Final = time.monotonic_ns
_thread_time_ns: Final = time.thread_time_ns


class Clock(Protocol):
    """Wall-clock time, monotonic time, and CPU time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, for timestamps that are stored. It may jump."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start, for waiting and measuring. It never goes back."""

    def ticks_ns(self) -> int:
        """The same in nanoseconds, to measure microseconds."""

    def used_ns(self) -> int:
        """CPU time of this thread in nanoseconds."""


class SystemClock:
    """The system's clocks."""

    def now_ms(self) -> int:
        return _time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return _monotonic_ns() // 1_000_000

    def ticks_ns(self) -> int:
        return _monotonic_ns()

    def used_ns(self) -> int:
        return _thread_time_ns()
