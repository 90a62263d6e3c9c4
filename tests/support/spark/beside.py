"""Runs the same query with Spark's own Kafka connector and with ours on one broker."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

OURS, THEIRS = "barnabas", "kafka"
# Spark's own source makes three attempts, a second apart, after any error.
QUICK = {"fetchOffset.retryIntervalMs": "1"}
RUN_TIMEOUT_S = 120

Options: TypeAlias = Mapping[str, str]
# Topic, partition, offset, key, value, timestamp, timestamp type, headers.
Seen: TypeAlias = tuple[str, int, int, bytes | None, bytes | None, datetime, int, Any]


@dataclass(frozen=True)
class Refused:
    why: str


def options_of(address: str, topic: str, given: Options) -> dict[str, str]:
    """Return the options of a case with TOPIC replaced; subscribes to the topic by default."""
    told = {name: text.replace("TOPIC", topic) for name, text in given.items()}
    chosen = any(name.lower() in ("assign", "subscribe", "subscribepattern") for name in told)
    return {
        "kafka.bootstrap.servers": address,
        **QUICK,
        **({} if chosen else {"subscribe": topic}),
        **told,
    }


def seen(row: Row) -> Seen:
    headers = None
    if "headers" in row and row["headers"] is not None:
        headers = [(one["key"], one["value"]) for one in row["headers"]]
    return (
        row["topic"],
        row["partition"],
        row["offset"],
        row["key"],
        row["value"],
        row["timestamp"].astimezone(UTC),
        row["timestampType"],
        headers,
    )


def frame_of(spark: SparkSession, kind: str, options: Options) -> DataFrame:
    return spark.read.format(kind).options(**options).load()


def refused_or(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (PySparkException, Py4JError) as error:
        return Refused(str(error))


def batch_rows(spark: SparkSession, kind: str, options: Options) -> list[Seen] | Refused:
    """Sort rows by topic, partition and offset, because tasks finish in any order."""

    def rows() -> list[Seen]:
        return sorted(map(seen, frame_of(spark, kind, options).collect()))

    found: list[Seen] | Refused = refused_or(rows)
    return found


class StreamRun:
    """A query of either source; runs continue where the last one ended, with either source."""

    def __init__(self, spark: SparkSession, kind: str, options: Options, checkpoint: Path) -> None:
        self._spark, self._checkpoint = spark, checkpoint
        self.kind = kind
        self.options = dict(options)
        self.batches: list[list[Seen]] = []

    def start(self, **trigger: Any) -> StreamingQuery:
        def take(frame: DataFrame, number: int) -> None:
            self.batches.append(sorted(map(seen, frame.collect())))

        frame = self._spark.readStream.format(self.kind).options(**self.options).load()
        writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(self._checkpoint))
        return writer.trigger(**(trigger or {"availableNow": True})).start()

    def run(self, **trigger: Any) -> list[list[Seen]] | Refused:
        """Return the non-empty batches of this run: an empty one may only fix the start offsets."""
        before = len(self.batches)

        def to_the_end() -> list[list[Seen]]:
            query = self.start(**trigger)
            try:
                assert query.awaitTermination(RUN_TIMEOUT_S), "it ends by itself"
            finally:
                query.stop()
            return [batch for batch in self.batches[before:] if batch]

        found: list[list[Seen]] | Refused = refused_or(to_the_end)
        return found
