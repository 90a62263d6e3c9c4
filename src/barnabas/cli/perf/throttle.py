"""How long a producer that is held to a rate waits: Kafka's ThroughputThrottler, by other means.

Pure. A record is due a fixed time after the one before it; a sender that is early waits until it is due, and
one that is late does not wait. Waits shorter than a timer can keep are saved up.
"""

from typing import Final

WAIT_MS_MIN: Final = 2.0


class Throttle:
    """`rate` in records a second; below zero there is none."""

    def __init__(self, rate: float, *, now_ms: float) -> None:
        self._started_ms = now_ms
        self._rate = rate

    def wait_ms(self, sent: int, now_ms: float) -> float:
        """How long to wait before the next record when `sent` are on their way; 0 if it may go at once."""
        if self._rate < 0:
            return 0.0
        early_ms = self._started_ms + 1000.0 * sent / self._rate - now_ms
        return early_ms if early_ms >= WAIT_MS_MIN else 0.0
