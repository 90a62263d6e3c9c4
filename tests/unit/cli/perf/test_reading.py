"""The lines of consumer-perf-test equal Kafka's."""

import time
from collections.abc import Iterator

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.cli.perf.java_format import DateFormat
from barnabas.cli.perf.reading import Reading, header

NOON_MS = 1794744205032
MB = 1024 * 1024
READ_0 = TopicPartition("read", 0)


@pytest.fixture(autouse=True)
def _in_london(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def reading(interval_ms: int = 5000) -> Reading:
    dates = DateFormat("yyyy-MM-dd HH:mm:ss:SSS")
    return Reading(dates, started_ms=NOON_MS, reporting_interval_ms=interval_ms)


def test_the_columns_have_kafkas_names() -> None:
    rest = (
        "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, "
        "fetch.MB.sec, fetch.nMsg.sec"
    )

    assert header(detailed=False) == f"start.time, end.time, {rest}"
    assert header(detailed=True) == f"time, threadId, {rest}"


def test_the_total_covers_the_whole_time() -> None:
    measured = reading()
    assert list(measured.add(1000, 2 * MB, NOON_MS + 100)) == []

    figures, line = measured.total(NOON_MS + 4000)

    assert line == (
        "2026-11-15 12:03:25:032, 2026-11-15 12:03:29:032, 2.0000, 0.5000, 1000, 250.0000, 0, 4000, "
        "0.5000, 250.0000"
    )
    assert figures["records_per_second"] == 250.0


def test_an_interval_has_the_sum_so_far_and_rates_of_its_own() -> None:
    measured = reading(interval_ms=1000)
    list(measured.add(100, MB, NOON_MS + 500))

    (_, first), *_ = measured.add(100, MB, NOON_MS + 1000)
    (_, second), *_ = measured.add(50, MB // 2, NOON_MS + 2000)

    assert first == "2026-11-15 12:03:26:032, 0, 2.0000, 2.0000, 200, 200.0000, 0, 1000, 2.0000, 200.0000"
    assert second == "2026-11-15 12:03:27:032, 0, 2.5000, 0.5000, 250, 50.0000, 0, 1000, 0.5000, 50.0000"


def test_the_wait_for_the_group_is_not_fetching() -> None:
    measured = reading()
    measured.rebalancing.assigned([READ_0], NOON_MS + 3000)
    list(measured.add(1000, 2 * MB, NOON_MS + 3100))

    figures, line = measured.total(NOON_MS + 4000)

    assert line.endswith("2.0000, 0.5000, 1000, 250.0000, 3000, 1000, 2.0000, 1000.0000")
    assert (figures["rebalance_ms"], figures["fetch_ms"]) == (3000, 1000)
    assert (figures["mb_per_second"], figures["fetch_mb_per_second"]) == (0.5, 2.0)
    assert (figures["records_per_second"], figures["fetch_records_per_second"]) == (250.0, 1000.0)


def test_an_interval_reports_its_rebalance_time_once() -> None:
    measured = reading(interval_ms=1000)
    measured.rebalancing.assigned([READ_0], NOON_MS + 600)

    (_, first), *_ = measured.add(100, MB, NOON_MS + 1000)
    (_, second), *_ = measured.add(100, MB, NOON_MS + 2000)

    assert first.endswith("0, 1.0000, 1.0000, 100, 100.0000, 600, 400, 2.5000, 250.0000")
    assert second.endswith("0, 2.0000, 1.0000, 200, 100.0000, 0, 1000, 1.0000, 100.0000")
    assert measured.total(NOON_MS + 2000)[0]["rebalance_ms"] == 600


def test_an_interval_without_fetch_time_has_a_fetch_rate_of_zero() -> None:
    measured = reading(interval_ms=1000)
    measured.rebalancing.assigned([READ_0], NOON_MS + 1000)

    (_, line), *_ = measured.add(100, MB, NOON_MS + 1000)

    assert line.endswith("0, 1.0000, 1.0000, 100, 100.0000, 1000, 0, 0.0000, 0.0000")


def test_a_total_over_no_time_is_not_an_error() -> None:
    assert reading().total(NOON_MS)[1].endswith("0.0000, NaN, 0, NaN, 0, 0, NaN, NaN")
