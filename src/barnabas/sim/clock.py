"""Clocks on the simulated loop's virtual time, to inject into broker code.

Every machine has its own: it can run fast or slow, stand still while the machine is suspended, and its date
can be wrong. Its monotonic time never goes back.
"""

from typing import Final, Protocol

# Midnight of the first of January 2026 in UTC: a realistic date for messages and files.
START_MS: Final = 1_767_225_600_000
_MILLION: Final = 1_000_000


class VirtualTime(Protocol):
    """A source of virtual time: the loop."""

    def time_ns(self) -> int:
        """Nanoseconds since the start of the world."""


class SimClock:
    """One machine's clocks."""

    def __init__(self, loop: VirtualTime, *, start_ms: int = START_MS, drift_ppm: int = 0) -> None:
        self._loop = loop
        self._start_ms = start_ms
        # The monotonic clock showed `_shown_ns` at the true time `_since_ns`, and has run at this rate since.
        self._since_ns = self._shown_ns = 0
        self._rate_ppm = _MILLION + drift_ppm
        self._stands_still = False

    def now_ms(self) -> int:
        return self._start_ms + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return self.ticks_ns() // _MILLION

    def ticks_ns(self) -> int:
        passed_ns = 0 if self._stands_still else self._loop.time_ns() - self._since_ns
        return self._shown_ns + passed_ns * self._rate_ppm // _MILLION

    def used_ns(self) -> int:
        """Computation takes no virtual time."""
        return 0

    def true_ns(self, ticks_ns: int) -> int:
        """The first true time at which the monotonic clock shows at least `ticks_ns`."""
        ahead_ns = ticks_ns - self._shown_ns
        return self._since_ns - (-ahead_ns * _MILLION // self._rate_ppm)

    def jump(self, by_ms: int) -> None:
        """Set the date forward or back, as an operator or NTP does."""
        self._start_ms += by_ms

    def drift(self, ppm: int) -> None:
        """From now on, run faster by `ppm` millionths than true time, or slower if it is negative."""
        if ppm <= -_MILLION:
            raise ValueError(f"drift of {ppm} ppm stops the clock, expected more than -{_MILLION}")
        self._rebase()
        self._rate_ppm = _MILLION + ppm

    def suspend(self) -> None:
        """Stop the monotonic clock, as when a virtual machine is suspended."""
        self._rebase()
        self._stands_still = True

    def resume(self) -> None:
        """Go on. The date, unlike the monotonic clock, includes the time of the suspension."""
        if self._stands_still:
            self._stands_still = False
            self._start_ms += (self._loop.time_ns() - self._since_ns) // _MILLION
            self._since_ns = self._loop.time_ns()

    def _rebase(self) -> None:
        self._shown_ns, self._since_ns = self.ticks_ns(), self._loop.time_ns()
