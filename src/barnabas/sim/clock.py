"""The simulated loop's virtual time, as the clock that broker code is given."""

from typing import Final, Protocol

# Midnight of the first of January 2026 in UTC: a date that looks like one in messages and files.
START_MS: Final = 1_767_225_600_000


class VirtualTime(Protocol):
    """What has a virtual time: the loop."""

    def time_ns(self) -> int:
        """Nanoseconds since the start of the world."""


class SimClock:
    """One machine's clocks. The date can be set wrong; the other clock cannot."""

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
        """Nothing that is computed takes any of its time."""
        return 0

    def jump(self, by_ms: int) -> None:
        """Set the date forward or back, as an operator or NTP does."""
        self._start_ms += by_ms
