"""The lines and percentiles of producer-perf-test equal Kafka's."""

from typing import Any

from barnabas.cli.perf import latency
from barnabas.cli.perf.latency import Latencies


class Told:
    """Collects figures and lines in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.figures: list[dict[str, Any]] = []

    def __call__(self, figures: dict[str, Any], line: str) -> None:
        self.figures.append(figures)
        self.lines.append(line)


def test_the_total_names_rates_latencies_and_percentiles() -> None:
    measured = Latencies(100, reporting_interval_ms=5000, now_ms=0, on_window=Told())
    for latency_ms in reversed(range(100)):
        measured.record_many(1, latency_ms, 1024, 1000)

    figures, line = measured.total(2000)

    assert line == (
        "100 records sent, 50.000000 records/sec (0.05 MB/sec), 49.50 ms avg latency, 99.00 ms max latency, "
        "50 ms 50th, 95 ms 95th, 99 ms 99th, 99 ms 99.9th."
    )
    assert figures["percentiles_ms"] == {"50th": 50, "95th": 95, "99th": 99, "99.9th": 99}
    assert figures["records_per_second"] == 50.0


def test_a_window_is_reported_at_its_end_and_the_next_starts_at_zero() -> None:
    told = Told()
    measured = Latencies(10, reporting_interval_ms=1000, now_ms=0, on_window=told)

    measured.record_many(1, 3, 1_048_576, 500)
    measured.record_many(1, 4, 1_048_576, 1000)
    measured.record_many(1, 1, 0, 1500)
    measured.record_many(1, 2, 0, 2000)

    assert told.lines == [
        "2 records sent, 2.0 records/sec (2.00 MB/sec), 3.5 ms avg latency, 4.0 ms max latency.",
        "2 records sent, 2.0 records/sec (0.00 MB/sec), 1.5 ms avg latency, 2.0 ms max latency.",
    ]
    assert measured.total(2000)[0]["latency_max_ms"] == 4


def test_a_batch_counts_like_single_records(monkeypatch: Any) -> None:
    monkeypatch.setattr(latency, "SAMPLES_MAX", 10)
    one_by_one, told = Told(), Told()
    singles = Latencies(35, reporting_interval_ms=10, now_ms=0, on_window=one_by_one)
    batches = Latencies(35, reporting_interval_ms=10, now_ms=0, on_window=told)

    for count, latency_ms in ((4, 7), (1, 30), (13, 2), (17, 9)):
        for _ in range(count):
            singles.record_many(1, latency_ms, 10, 5)
        batches.record_many(count, latency_ms, 10 * count, 5)

    assert batches.total(100) == singles.total(100)


def test_the_steady_state_has_its_own_lines() -> None:
    told = Told()
    whole = Latencies(4, reporting_interval_ms=10, now_ms=0, on_window=told)
    steady = Latencies(2, reporting_interval_ms=10, now_ms=0, steady_state=True, on_window=told)
    whole.silent = True

    for measured in (whole, steady):
        measured.record_many(1, 1, 10, 20)

    assert told.lines[0] == "In steady state."
    assert told.lines[1].startswith("1 records sent, ")
    assert len(told.lines) == 2
    assert steady.total(20)[1].startswith("1 steady state records sent, 50.000000 records/sec")


def test_a_run_without_acknowledgements_is_reported() -> None:
    measured = Latencies(5, reporting_interval_ms=10, now_ms=0, on_window=Told())

    assert measured.total(1000)[1] == (
        "0 records sent, 0.000000 records/sec (0.00 MB/sec), NaN ms avg latency, 0.00 ms max latency, "
        "0 ms 50th, 0 ms 95th, 0 ms 99th, 0 ms 99.9th."
    )
