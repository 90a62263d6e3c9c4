"""Lag over HTTP: which queries are shown, for how long, and to whom. Uses Spark's events without Spark."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from barnabas.spark import prometheus
from barnabas.spark.lag import QueryLag
from barnabas.spark.prometheus import TABLE, PrometheusLagListener
from support.prometheus_text import Family, read_exposition
from support.spark.events import QUERY, RUN, idle, progressed, terminated

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "spark.md"
OTHER_QUERY, OTHER_RUN = QUERY[:-1] + "2", RUN[:-1] + "b"
AT, LATEST = {"clicks": {"0": 23, "1": 5}}, {"clicks": {"0": 30, "1": 5}}
ANSWER_S_MAX = 10
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture
def listener() -> Iterator[PrometheusLagListener]:
    found = PrometheusLagListener(0)
    yield found
    found.close()


def scrape(listener: PrometheusLagListener, accept: str = "*/*") -> dict[str, Family]:
    host, port = listener.address
    asked = Request(f"http://{host}:{port}/metrics", headers={"Accept": accept})
    with urlopen(asked, timeout=ANSWER_S_MAX) as answer:
        return read_exposition(answer.read(), open_metrics=accept == OPEN_METRICS)


def queries(listener: PrometheusLagListener) -> list[str]:
    family = scrape(listener).get("barnabas_spark_batch_id")
    return [] if family is None else [dict(labels)["query_id"] for _, labels in family.samples]


@pytest.mark.parametrize("accept", ["*/*", OPEN_METRICS])
def test_the_lag_of_each_partition_is_served(listener: PrometheusLagListener, accept: str) -> None:
    listener.onQueryProgress(progressed(AT, LATEST))

    found = scrape(listener, accept)
    records = found["barnabas_spark_lag_records"].samples
    assert {dict(labels)["partition"]: value for (_, labels), value in records.items()} == {"0": 7, "1": 0}
    [(_, labels), _] = records
    assert dict(labels) == {"query_id": QUERY, "query": "counts", "topic": "clicks", "partition": "0"}
    # Without settings the age of the record at 23 is unknown; partition 1 has no lag.
    seconds = found["barnabas_spark_lag_seconds"].samples
    assert [(dict(labels)["partition"], value) for (_, labels), value in seconds.items()] == [("1", 0)]
    assert list(found["barnabas_spark_batch_id"].samples.values()) == [4]


def test_the_server_listens_on_loopback(listener: PrometheusLagListener) -> None:
    assert listener.address[0] == "127.0.0.1"


def test_a_query_is_shown_until_it_ends(listener: PrometheusLagListener) -> None:
    listener.onQueryProgress(progressed(AT, LATEST))
    listener.onQueryProgress(progressed(AT, LATEST, query=OTHER_QUERY, run=OTHER_RUN))
    assert queries(listener) == [QUERY, OTHER_QUERY]

    listener.onQueryTerminated(terminated())
    assert queries(listener) == [OTHER_QUERY]


def test_the_end_of_an_earlier_run_does_not_hide_the_next(listener: PrometheusLagListener) -> None:
    listener.onQueryProgress(progressed(AT, LATEST, run=OTHER_RUN))

    listener.onQueryTerminated(terminated(run=RUN))

    assert queries(listener) == [QUERY]


def test_an_idle_query_updates_its_timestamp(listener: PrometheusLagListener) -> None:
    def seen_at() -> float:
        [at] = scrape(listener)["barnabas_spark_last_event_timestamp_seconds"].samples.values()
        return at

    listener.onQueryProgress(progressed(AT, LATEST))
    first = seen_at()
    listener.onQueryIdle(idle(OTHER_QUERY))
    assert seen_at() == first

    listener.onQueryIdle(idle())
    assert seen_at() > first


def test_the_queries_that_reported_last_are_kept(
    listener: PrometheusLagListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "QUERIES_MAX", 2)
    third = QUERY[:-1] + "3"
    for query in (QUERY, OTHER_QUERY, QUERY, third):
        listener.onQueryProgress(progressed(AT, LATEST, query=query))

    assert queries(listener) == [QUERY, third]


def test_the_report_function_is_called_too() -> None:
    told: list[QueryLag] = []
    listener = PrometheusLagListener(0, report=told.append)
    try:
        listener.onQueryProgress(progressed(AT, LATEST))
    finally:
        listener.close()

    assert [lag.records for lag in told] == [7]


def test_close_frees_the_port() -> None:
    first = PrometheusLagListener(0)
    port = first.address[1]
    with pytest.raises(OSError, match="address already in use"):
        PrometheusLagListener(port)

    first.close()
    first.close()

    with socket.socket() as sock, pytest.raises(ConnectionRefusedError):
        sock.connect(("127.0.0.1", port))
    PrometheusLagListener(port).close()


def test_the_guide_has_every_metric() -> None:
    told = set(re.findall(r"`(barnabas_spark_\w+)`", GUIDE.read_text()))

    assert told == {metric.name for metric, _ in TABLE}
