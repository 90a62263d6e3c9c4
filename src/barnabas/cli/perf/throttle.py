"""Limit a producer to a rate, as Kafka's ThroughputThrottler does. Pure.

Records are due at fixed intervals. A sender that is early waits until the next record is due; a late one does
not wait. Waits too short for a timer are accumulated.
"""

from typing import Final

WAIT_MS_MIN: Final = 2.0


class Throttle:
    """`rate` in records per second; negative: no limit."""

    def __init__(self, rate: float, *, now_ms: float) -> None:
        self._started_ms = now_ms
        self._rate = rate

    def wait_ms(self, sent: int, now_ms: float) -> float:
        """Return the wait before the next record after `sent` records; 0 if it may be sent at once."""
        if self._rate < 0:
            return 0.0
        early_ms = self._started_ms + 1000.0 * sent / self._rate - now_ms
        return early_ms if early_ms >= WAIT_MS_MIN else 0.0
