"""The lag of streaming queries as Prometheus metrics, served by the program that runs the queries.

    spark.streams.addListener(PrometheusLagListener(9464, bootstrap_servers="localhost:9092"))

The values are those of the last micro-batch of each running query; lag.py computes them. The server is the
broker's metrics server (base/metrics_server.py), on an event loop in its own thread.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeAlias

from pyspark.sql.streaming.listener import QueryIdleEvent, QueryTerminatedEvent

from barnabas.base.exposition import Dialect, Kind, Metric, Sample, end, labelled, render
from barnabas.base.http_request import HttpRequest
from barnabas.base.metrics_server import MetricsServer, Response, dialect_of
from barnabas.client.blocking.loop_thread import LoopThread
from barnabas.spark.lag import LagListener, QueryLag

LOOPBACK: Final = "127.0.0.1"
# With more running queries than this, only those that reported last are shown.
QUERIES_MAX: Final = 1_000

_QUERY: Final = ("query_id", "query")
_PARTITION: Final = (*_QUERY, "topic", "partition")


@dataclass(frozen=True)
class LastBatch:
    """The state of a query at its last event. `at_s` is the time of the event in seconds since 1970."""

    lag: QueryLag
    at_s: float


Read: TypeAlias = Callable[[Sequence[LastBatch]], Iterable[Sample]]


def _per_partition(value: Callable[[QueryLag], Mapping[tuple[str, int], float | None]]) -> Read:
    def read(batches: Sequence[LastBatch]) -> Iterator[Sample]:
        for one in batches:
            for (topic, partition), found in value(one.lag).items():
                if found is not None:
                    yield Sample(labelled(**_labels(one), topic=topic, partition=partition), found)

    return read


def _per_query(value: Callable[[LastBatch], float]) -> Read:
    return lambda batches: (Sample(labelled(**_labels(one)), value(one)) for one in batches)


def _labels(one: LastBatch) -> dict[str, object]:
    return {"query_id": one.lag.query_id, "query": one.lag.name or ""}


def _records(lag: QueryLag) -> dict[tuple[str, int], float | None]:
    return {tp: one.records for tp, one in lag.partitions.items()}


def _seconds(lag: QueryLag) -> dict[tuple[str, int], float | None]:
    return {tp: one.seconds if one.records else 0.0 for tp, one in lag.partitions.items()}


# docs/guides/spark.md lists the same names.
TABLE: Final[Sequence[tuple[Metric, Read]]] = [
    (
        Metric("barnabas_spark_queries", Kind.GAUGE, "Running queries that have finished a micro-batch."),
        lambda batches: [Sample("", len(batches))],
    ),
    (
        Metric(
            "barnabas_spark_lag_records",
            Kind.GAUGE,
            "Offsets between the query and the end of the partition, after its last micro-batch.",
            _PARTITION,
        ),
        _per_partition(_records),
    ),
    (
        Metric(
            "barnabas_spark_lag_seconds",
            Kind.GAUGE,
            "Age of the first record that the query has not read, at its last micro-batch; 0 at the end.",
            _PARTITION,
        ),
        _per_partition(_seconds),
    ),
    (
        Metric("barnabas_spark_batch_id", Kind.GAUGE, "Id of the last micro-batch of the query.", _QUERY),
        _per_query(lambda one: one.lag.batch),
    ),
    (
        Metric(
            "barnabas_spark_last_event_timestamp_seconds",
            Kind.GAUGE,
            "When Spark last reported a micro-batch of the query, or that it is idle.",
            _QUERY,
        ),
        _per_query(lambda one: one.at_s),
    ),
]


def exposition(batches: Sequence[LastBatch], dialect: Dialect) -> Iterator[bytes]:
    for metric, read in TABLE:
        yield from render(metric, read(batches), dialect)
    yield end(dialect)


class PrometheusLagListener(LagListener):
    """A LagListener that serves GET /metrics until close(). Port 0 means any free port.

    Raises OSError if the port is in use. Other arguments are those of LagListener. A query is shown from its
    first micro-batch until it ends.
    """

    def __init__(
        self,
        port: int,
        host: str = LOOPBACK,
        report: Callable[[QueryLag], object] | None = None,
        settings: Mapping[str, object] | None = None,
        **named: object,
    ) -> None:
        super().__init__(self._remember, settings, **named)
        self._then: Final = report
        self._lock: Final = threading.Lock()
        self._batches: dict[str, LastBatch] = {}
        self._server: Final = MetricsServer({"/metrics": self._metrics})
        self._thread: Final = LoopThread(type(self).__name__)
        try:
            self._thread.run(self._server.start(host, port))
        except BaseException:
            self._thread.close()
            raise
        self._thread.disconnects.append(self._server.close)
        self.address: Final = self._server.addresses[0]

    def close(self) -> None:
        """Stop the server and close broker connections. Remove the listener from Spark first."""
        if not self._thread.closed:
            self._thread.run(self._server.close())
            self._thread.close()
        super().close()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        with self._lock:
            batch = self._batches.get(str(event.id))
            if batch is not None:
                self._batches[str(event.id)] = LastBatch(batch.lag, time.time())

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        with self._lock:
            batch = self._batches.get(str(event.id))
            # The next run of the query may have reported before this event arrives.
            if batch is not None and batch.lag.run_id == str(event.runId):
                del self._batches[str(event.id)]

    def _remember(self, lag: QueryLag) -> None:
        with self._lock:
            self._batches.pop(lag.query_id, None)
            while len(self._batches) >= QUERIES_MAX:
                del self._batches[next(iter(self._batches))]
            self._batches[lag.query_id] = LastBatch(lag, time.time())
        if self._then is not None:
            self._then(lag)

    async def _metrics(self, request: HttpRequest) -> Response:
        dialect = dialect_of(request)
        with self._lock:
            batches = list(self._batches.values())
        return Response(HTTPStatus.OK, dialect.value, exposition(batches, dialect))
