"""What time it is, for code that must not ask the machine.

Whoever needs the time is handed a Clock. The simulator hands in one that it moves itself. Compiled, because
every request asks a few times.
"""

import time
from typing import Final, Protocol

_time_ns: Final = time.time_ns
_monotonic_ns: Final = time.monotonic_ns
_thread_time_ns: Final = time.thread_time_ns


class Clock(Protocol):
    """What time it is, and how time goes by."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, for what is written down. It may jump."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some start, for waiting and measuring. It never goes back."""

    def ticks_ns(self) -> int:
        """The same in nanoseconds, for measuring what takes microseconds."""

    def used_ns(self) -> int:
        """For how much of the time this thread had the processor."""


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return _time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return _monotonic_ns() // 1_000_000

    def ticks_ns(self) -> int:
        return _monotonic_ns()

    def used_ns(self) -> int:
        return _thread_time_ns()
