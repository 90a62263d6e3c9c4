"""Throughput and latency of a producer: the lines of kafka-producer-perf-test.sh, per window and in total.

Pure: the caller passes the time in milliseconds. Latencies are whole milliseconds, and at most 500,000
samples are kept, both as in Kafka's tool, so that the figures are comparable.
"""

from array import array
from collections.abc import Callable
from typing import Any, Final

from barnabas.cli.perf.java_format import fixed, ratio

SAMPLES_MAX: Final = 500_000
PERCENTILES: Final = {"50th": 0.5, "95th": 0.95, "99th": 0.99, "99.9th": 0.999}
_MB: Final = 1024.0 * 1024.0


class Latencies:
    """Call record_many() once for records that were acknowledged together with equal latency."""

    def __init__(
        self,
        records: int,
        *,
        reporting_interval_ms: int,
        now_ms: float,
        steady_state: bool = False,
        on_window: Callable[[dict[str, Any], str], None],
    ) -> None:
        self._sampling = max(records // min(records, SAMPLES_MAX), 1)
        self._samples = array("i")
        self._reporting_interval_ms = reporting_interval_ms
        self._started_ms = now_ms
        self._steady_state = steady_state
        self._on_window = on_window
        self.silent = False
        self.count = 0
        self._bytes = 0
        self._total_ms = 0
        self._max_ms = 0
        self._window_started_ms = now_ms
        self._window_count = 0
        self._window_bytes = 0
        self._window_total_ms = 0
        self._window_max_ms = 0

    def record_many(self, count: int, latency_ms: int, size: int, now_ms: float) -> None:
        """Count records that were acknowledged after `latency_ms`; `size` is the sum of their bytes."""
        first = -self.count % self._sampling
        self._samples.extend([latency_ms] * len(range(first, count, self._sampling)))
        self.count += count
        self._bytes += size
        self._total_ms += latency_ms * count
        self._max_ms = max(self._max_ms, latency_ms)
        self._window_count += count
        self._window_bytes += size
        self._window_total_ms += latency_ms * count
        self._window_max_ms = max(self._window_max_ms, latency_ms)
        if now_ms - self._window_started_ms >= self._reporting_interval_ms:
            self._end_window(now_ms)

    def total(self, now_ms: float) -> tuple[dict[str, Any], str]:
        """Return the figures of the whole run, and the line that prints them."""
        elapsed_ms = int(now_ms - self._started_ms)
        per_second = ratio(1000.0 * self.count, elapsed_ms)
        mb_per_second = ratio(1000.0 * self._bytes, elapsed_ms) / _MB
        average_ms = ratio(self._total_ms, self.count)
        percentiles = self._percentiles()
        state = " steady state" if self._steady_state else ""
        line = (
            f"{self.count}{state} records sent, {fixed(per_second, 6)} records/sec "
            f"({fixed(mb_per_second, 2)} MB/sec), {fixed(average_ms, 2)} ms avg latency, "
            f"{fixed(float(self._max_ms), 2)} ms max latency, "
            + ", ".join(f"{value} ms {name}" for name, value in percentiles.items())
            + "."
        )
        figures = self._figures(self.count, per_second, mb_per_second, average_ms, self._max_ms)
        return {**figures, "steady_state": self._steady_state, "percentiles_ms": percentiles}, line

    def _percentiles(self) -> dict[str, int]:
        # Kafka's array has a zero after the last sample, which an index may reach.
        ordered = [*sorted(self._samples), 0]
        return {name: ordered[int(share * (len(ordered) - 1))] for name, share in PERCENTILES.items()}

    def _end_window(self, now_ms: float) -> None:
        elapsed_ms = int(now_ms - self._window_started_ms)
        if self._steady_state and self.count == self._window_count:
            self._on_window({"steady_state": True}, "In steady state.")
        if not self.silent:
            count = self._window_count
            per_second = ratio(1000.0 * count, elapsed_ms)
            mb_per_second = ratio(1000.0 * self._window_bytes, elapsed_ms) / _MB
            average_ms = ratio(self._window_total_ms, count)
            line = (
                f"{count} records sent, {fixed(per_second, 1)} records/sec "
                f"({fixed(mb_per_second, 2)} MB/sec), {fixed(average_ms, 1)} ms avg latency, "
                f"{fixed(float(self._window_max_ms), 1)} ms max latency."
            )
            figures = self._figures(count, per_second, mb_per_second, average_ms, self._window_max_ms)
            self._on_window(figures, line)
        self._new_window(now_ms)

    def _new_window(self, now_ms: float) -> None:
        self._window_started_ms = now_ms
        self._window_count = 0
        self._window_bytes = 0
        self._window_total_ms = 0
        self._window_max_ms = 0

    @staticmethod
    def _figures(
        count: int, per_second: float, mb_per_second: float, average_ms: float, max_ms: int
    ) -> dict[str, Any]:
        return {
            "records": count,
            "records_per_second": per_second,
            "mb_per_second": mb_per_second,
            "latency_avg_ms": average_ms,
            "latency_max_ms": max_ms,
        }
