"""The lag of streaming queries, in records and in seconds, for logs, dashboards and alerts.

    spark.streams.addListener(LagListener(bootstrap_servers="localhost:9092"))

The listener runs in the user's program. Offsets come from the progress that Spark reports after every
micro-batch; seconds are the age of the first unread record, whose timestamp is requested from the brokers.
prometheus.py serves the same values over HTTP.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking.admin import Admin
from barnabas.client.errors import ClientError
from barnabas.spark.offsets import BadOffsets, Offsets, from_json

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PartitionLag:
    records: int
    # None if there is no unread record, it has no timestamp, or no broker could be asked.
    seconds: float | None = None


@dataclass(frozen=True)
class QueryLag:
    """The lag of a query in all of its topics after a micro-batch."""

    query_id: str
    name: str | None
    batch: int
    partitions: Mapping[TopicPartition, PartitionLag] = field(default_factory=dict)
    run_id: str = ""

    @property
    def records(self) -> int:
        return sum(one.records for one in self.partitions.values())

    @property
    def seconds(self) -> float:
        """The largest lag in seconds of any partition."""
        return max((one.seconds or 0.0 for one in self.partitions.values()), default=0.0)

    @property
    def metrics(self) -> dict[str, str]:
        """The metrics that spark-sql-kafka reports in lastProgress.sources[].metrics, also as text."""
        return {
            "minOffsetsBehindLatest": str(min(self._counts)),
            "maxOffsetsBehindLatest": str(max(self._counts)),
            "avgOffsetsBehindLatest": str(self._average),
        }

    @property
    def _counts(self) -> list[int]:
        return [one.records for one in self.partitions.values()] or [0]

    @property
    def _average(self) -> float:
        return sum(self._counts) / len(self._counts)

    def __str__(self) -> str:
        counts = self._counts
        return (
            f"lag query={self.name or self.query_id} batch={self.batch} records={self.records} "
            f"seconds={self.seconds:.1f} min={min(counts)} max={max(counts)} avg={self._average:.1f}"
        )


class LagListener(StreamingQueryListener):
    """Calls `report` with a QueryLag after every micro-batch, or logs it if there is no `report`.

    Settings are those of our client, as keywords or by Kafka's names. Without settings, the lag in seconds
    is not available.
    """

    def __init__(
        self,
        report: Callable[[QueryLag], object] | None = None,
        settings: Mapping[str, object] | None = None,
        **named: object,
    ) -> None:
        self._report = report or (lambda lag: logger.info("%s", lag))
        self._settings = {
            **(settings or {}),
            **{name.replace("_", "."): each for name, each in named.items()},
        }
        self._admin: Admin | None = None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        lag = lag_of(event.progress)
        if lag is None:
            return
        at = _positions(event.progress)
        times = self._times({tp: at[tp] for tp, one in lag.partitions.items() if one.records > 0})
        now_ms = time.time() * 1000
        partitions = {
            tp: replace(one, seconds=max(0.0, now_ms - times[tp]) / 1000) if tp in times else one
            for tp, one in lag.partitions.items()
        }
        self._report(replace(lag, partitions=partitions))

    def _times(self, wanted: Offsets) -> dict[TopicPartition, int]:
        """Return the timestamp of the first unread record of each partition, where there is one."""
        if not wanted or not self._settings:
            return {}
        try:
            if self._admin is None:
                self._admin = Admin(self._settings)
            found = self._admin.first_record_times(wanted)
        except ClientError as error:
            logger.warning("lag in seconds unavailable error=%s", error)
            return {}
        return {tp: time_ms for tp, time_ms in found.items() if time_ms is not None and time_ms >= 0}

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None


def lag_of(progress: StreamingQueryProgress | None) -> QueryLag | None:
    """Return the lag in records, as in lag_of(query.lastProgress). None if the query reads no topic."""
    if progress is None:
        return None
    partitions: dict[TopicPartition, PartitionLag] = {}
    for source in progress.sources:
        found = offsets_of(source)
        if found is not None:
            partitions.update({tp: PartitionLag(records) for tp, records in lag_between(*found).items()})
    if not partitions:
        return None
    return QueryLag(str(progress.id), progress.name, progress.batchId, partitions, run_id=str(progress.runId))


def _positions(progress: StreamingQueryProgress) -> dict[TopicPartition, int]:
    """Return the query's offsets in all of its topics."""
    found = filter(None, map(offsets_of, progress.sources))
    return {tp: offset for at, _ in found for tp, offset in at.items()}


def offsets_of(source: SourceProgress) -> tuple[Offsets, Offsets] | None:
    """Return the position and the end offsets of a source; None if it does not read topics."""
    try:
        return _parsed(source.endOffset), _parsed(source.latestOffset)
    except BadOffsets:
        return None


def lag_between(at: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    return {tp: max(0, latest[tp] - at[tp]) for tp in _both(at, latest)}


def _both(at: Offsets, latest: Offsets) -> Iterable[TopicPartition]:
    return sorted(at.keys() & latest.keys())


def _parsed(told: object) -> Offsets:
    return from_json(told if isinstance(told, str) else json.dumps(told))
