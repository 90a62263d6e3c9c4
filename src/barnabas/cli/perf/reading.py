"""Throughput of a consumer: the lines of kafka-consumer-perf-test.sh. Pure; the caller passes the time.

Time not spent rebalancing counts as fetch time. Each rate is given over the whole time and over fetch time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.cli.perf.java_format import DateFormat, fixed, ratio

_MB: Final = 1024.0 * 1024.0
_COLUMNS: Final = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
# Kafka's tool once had several threads, and still prints this column.
_THREAD: Final = 0


def header(*, detailed: bool) -> str:
    return ("time, threadId, " if detailed else "start.time, end.time, ") + _COLUMNS


class Rebalancing:
    """Measures how long a group member has no partitions.

    kafka-consumer-perf-test.sh calls this the rebalance time: from the start, or from the loss of the last
    partition, to the next assignment. Other changes of the assignment do not stop fetching and are not
    counted.
    """

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


@value(kw_only=True)
class _Rates:
    """Rates over the whole time, and over the fetch time."""

    mb: float
    records: float
    rebalance_ms: int
    fetch_ms: int
    fetch_mb: float
    fetch_records: float


class Reading:
    """Counts records and bytes from `started_ms` on (milliseconds since 1970)."""

    def __init__(self, dates: DateFormat, *, started_ms: int, reporting_interval_ms: int) -> None:
        self._dates = dates
        self._started_ms = started_ms
        self._reporting_interval_ms = reporting_interval_ms
        self.rebalancing = Rebalancing(started_ms=started_ms)
        self.records = 0
        self.bytes = 0
        self._reported_ms = started_ms
        self._reported_records = 0
        self._reported_bytes = 0

    def add(self, records: int, size: int, now_ms: int) -> Iterator[tuple[dict[str, Any], str]]:
        """Count records; yield the figures and the line of an interval that has ended."""
        self.records += records
        self.bytes += size
        if now_ms - self._reported_ms < self._reporting_interval_ms:
            return
        yield self._interval(now_ms)
        self._reported_ms = now_ms
        self._reported_records, self._reported_bytes = self.records, self.bytes
        self.rebalancing.unreported_ms = 0

    def _interval(self, now_ms: int) -> tuple[dict[str, Any], str]:
        mb = (self.bytes - self._reported_bytes) / _MB
        records = self.records - self._reported_records
        rates = _rates(mb, records, now_ms - self._reported_ms, self.rebalancing.unreported_ms)
        if rates.fetch_ms <= 0:
            # The total divides by zero instead, as in Kafka's tool.
            rates = replace(rates, fetch_mb=0.0, fetch_records=0.0)
        figures, columns = self._columns(rates)
        return {"time_ms": now_ms, **figures}, f"{self._dates.format(now_ms)}, {_THREAD}, {columns}"

    def total(self, now_ms: int) -> tuple[dict[str, Any], str]:
        elapsed_ms = now_ms - self._started_ms
        rates = _rates(self.bytes / _MB, self.records, elapsed_ms, self.rebalancing.total_ms)
        figures, columns = self._columns(rates)
        times = f"{self._dates.format(self._started_ms)}, {self._dates.format(now_ms)}"
        return {"start_ms": self._started_ms, "end_ms": now_ms, **figures}, f"{times}, {columns}"

    def _columns(self, rates: _Rates) -> tuple[dict[str, Any], str]:
        mb = self.bytes / _MB
        line = (
            f"{fixed(mb, 4)}, {fixed(rates.mb, 4)}, {self.records}, {fixed(rates.records, 4)}, "
            f"{rates.rebalance_ms}, {rates.fetch_ms}, {fixed(rates.fetch_mb, 4)}, "
            f"{fixed(rates.fetch_records, 4)}"
        )
        figures = {
            "mb": mb,
            "mb_per_second": rates.mb,
            "records": self.records,
            "records_per_second": rates.records,
            "rebalance_ms": rates.rebalance_ms,
            "fetch_ms": rates.fetch_ms,
            "fetch_mb_per_second": rates.fetch_mb,
            "fetch_records_per_second": rates.fetch_records,
        }
        return figures, line


def _rates(mb: float, records: int, elapsed_ms: int, rebalance_ms: int) -> _Rates:
    fetch_ms = elapsed_ms - rebalance_ms
    return _Rates(
        mb=ratio(1000.0 * mb, elapsed_ms),
        records=ratio(1000.0 * records, elapsed_ms),
        rebalance_ms=rebalance_ms,
        fetch_ms=fetch_ms,
        fetch_mb=ratio(1000.0 * mb, fetch_ms),
        fetch_records=ratio(1000.0 * records, fetch_ms),
    )
