"""A clock on the simulated loop's virtual time, to inject into broker code."""

from typing import Final, Protocol

# Midnight of the first of January 2026 in UTC: a realistic date for messages and files.
START_MS: Final = 1_767_225_600_000


class VirtualTime(Protocol):
    """A source of virtual time: the loop."""

    def time_ns(self) -> int:
        """Nanoseconds since the start of the world."""


class SimClock:
    """One machine's clocks. Tests can set the wall clock wrong, but not the monotonic one."""

    def __init__(self, loop: VirtualTime, *, start_ms: int = START_MS) -> None:
        self._loop = loop
        self._start_ms = start_ms

    def now_ms(self) -> int:
        return self._start_ms + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return self._loop.time_ns() // 1_000_000

    def ticks_ns(self) -> int:
        return self._loop.time_ns()

    def used_ns(self) -> int:
        """Computation takes no virtual time."""
        return 0

    def jump(self, by_ms: int) -> None:
        """Set the date forward or back, as an operator or NTP does."""
        self._start_ms += by_ms
