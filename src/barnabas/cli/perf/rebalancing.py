"""Measure how long a group member has no partitions. Pure; the caller passes the time.

kafka-consumer-perf-test.sh calls this the rebalance time: from the start, or from the loss of the last
partition, to the next assignment. Other changes of the assignment do not stop fetching and are not counted.
"""

from collections.abc import Iterable

from barnabas.base.ids import TopicPartition


class Rebalancing:
    def __init__(self, *, started_ms: int) -> None:
        self._owned: set[TopicPartition] = set()
        self._waits_since_ms = started_ms
        self.total_ms = 0
        # The part of total_ms that no interval has reported yet.
        self.unreported_ms = 0

    def assigned(self, tps: Iterable[TopicPartition], now_ms: int) -> None:
        """Add partitions. `tps` may be empty (more members than partitions); then the wait continues."""
        if not self._owned:
            waited_ms = now_ms - self._waits_since_ms
            self.total_ms += waited_ms
            self.unreported_ms += waited_ms
            self._waits_since_ms = now_ms
        self._owned.update(tps)

    def revoked(self, tps: Iterable[TopicPartition], now_ms: int) -> None:
        """Remove partitions that were revoked or lost."""
        self._owned.difference_update(tps)
        if not self._owned:
            self._waits_since_ms = now_ms
