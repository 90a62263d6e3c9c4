"""What a consumer measured: the lines of kafka-consumer-perf-test.sh. Pure; the time is handed in.

Partitions are assigned, so there is no rebalancing and all of the time is fetching.
"""

from collections.abc import Iterator
from typing import Any, Final

from barnabas.cli.perf.java_format import DateFormat, fixed, ratio

_MB: Final = 1024.0 * 1024.0
_COLUMNS: Final = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
REBALANCE_MS: Final = 0
# Kafka's tool could have several threads once.
_THREAD: Final = 0


def header(*, detailed: bool) -> str:
    return ("time, threadId, " if detailed else "start.time, end.time, ") + _COLUMNS


class Reading:
    """Counts what was read, from `started_ms` on (milliseconds since 1970)."""

    def __init__(self, dates: DateFormat, *, started_ms: int, reporting_interval_ms: int) -> None:
        self._dates = dates
        self._started_ms = started_ms
        self._reporting_interval_ms = reporting_interval_ms
        self.records = 0
        self.bytes = 0
        self._reported_ms = started_ms
        self._reported_records = 0
        self._reported_bytes = 0

    def add(self, records: int, size: int, now_ms: int) -> Iterator[tuple[dict[str, Any], str]]:
        """Count them; the figures and the line of an interval that is over."""
        self.records += records
        self.bytes += size
        if now_ms - self._reported_ms < self._reporting_interval_ms:
            return
        yield self._interval(now_ms)
        self._reported_ms = now_ms
        self._reported_records, self._reported_bytes = self.records, self.bytes

    def _interval(self, now_ms: int) -> tuple[dict[str, Any], str]:
        elapsed_ms = now_ms - self._reported_ms
        mb_per_second = ratio(1000.0 * (self.bytes - self._reported_bytes) / _MB, elapsed_ms)
        per_second = ratio(1000.0 * (self.records - self._reported_records), elapsed_ms)
        figures, columns = self._columns(elapsed_ms, mb_per_second, per_second)
        return {"time_ms": now_ms, **figures}, f"{self._dates.format(now_ms)}, {_THREAD}, {columns}"

    def total(self, now_ms: int) -> tuple[dict[str, Any], str]:
        elapsed_ms = now_ms - self._started_ms
        mb_per_second = ratio(1000.0 * self.bytes / _MB, elapsed_ms)
        per_second = ratio(1000.0 * self.records, elapsed_ms)
        figures, columns = self._columns(elapsed_ms, mb_per_second, per_second)
        times = f"{self._dates.format(self._started_ms)}, {self._dates.format(now_ms)}"
        return {"start_ms": self._started_ms, "end_ms": now_ms, **figures}, f"{times}, {columns}"

    def _columns(
        self, elapsed_ms: int, mb_per_second: float, per_second: float
    ) -> tuple[dict[str, Any], str]:
        mb = self.bytes / _MB
        line = (
            f"{fixed(mb, 4)}, {fixed(mb_per_second, 4)}, {self.records}, {fixed(per_second, 4)}, "
            f"{REBALANCE_MS}, {elapsed_ms}, {fixed(mb_per_second, 4)}, {fixed(per_second, 4)}"
        )
        figures = {
            "mb": mb,
            "mb_per_second": mb_per_second,
            "records": self.records,
            "records_per_second": per_second,
            "rebalance_ms": REBALANCE_MS,
            "fetch_ms": elapsed_ms,
        }
        return figures, line
