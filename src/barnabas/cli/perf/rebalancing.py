"""How long a member of a group waited for partitions. Pure; the time is handed in.

That is what kafka-consumer-perf-test.sh calls the time of rebalancing: from the beginning, or from when the
last partition went, until there are some again. What changes beside that holds nobody up.
"""

from collections.abc import Iterable

from barnabas.base.ids import TopicPartition


class Rebalancing:
    def __init__(self, *, started_ms: int) -> None:
        self._owned: set[TopicPartition] = set()
        self._waits_since_ms = started_ms
        self.total_ms = 0
        # Of which the lines of intervals have not told yet.
        self.untold_ms = 0

    def assigned(self, tps: Iterable[TopicPartition], now_ms: int) -> None:
        """Also of none at all: then there are more members than partitions, and the wait goes on."""
        if not self._owned:
            waited_ms = now_ms - self._waits_since_ms
            self.total_ms += waited_ms
            self.untold_ms += waited_ms
            self._waits_since_ms = now_ms
        self._owned.update(tps)

    def revoked(self, tps: Iterable[TopicPartition], now_ms: int) -> None:
        """Given back or lost."""
        self._owned.difference_update(tps)
        if not self._owned:
            self._waits_since_ms = now_ms
