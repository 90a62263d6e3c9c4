"""A stream in Spark with failOnDataLoss=false, one of whose topics is deleted and recreated."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.client.blocking import Admin, Producer
from support.scale import is_soak

WAIT_S = 60.0
GAPS_S = [1.0, 3.0, 10.0] if is_soak() else [3.0]
# Two tasks run at once, so the third starts after the topic was deleted.
TASKS = 3
_numbers = count()

Rows = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Reading:
    """Records that a query has read of its topics `-lasting` and `-leaving`."""

    def __init__(self, spark: SparkSession, address: str, directory: Path, **options: str) -> None:
        name = f"came-again-{next(_numbers)}"
        self.lasting, self.leaving = f"{name}-lasting", f"{name}-leaving"
        self.found: list[tuple[str, int]] = []
        self._spark, self._address, self._directory, self._options = spark, address, directory, options

    def make(self, topic: str, partitions: int) -> None:
        with Admin(bootstrap_servers=self._address) as admin:
            admin.create_topic(topic, partitions=partitions)

    def delete(self, topic: str) -> None:
        with Admin(bootstrap_servers=self._address) as admin:
            admin.delete_topic(topic)

    def send(self, topic: str, *values: int) -> None:
        with Producer(bootstrap_servers=self._address) as producer:
            for value in values:
                producer.send(topic, b"%d" % value)

    def start(self, change: Rows | None = None) -> StreamingQuery:
        def take(frame: DataFrame, _: int) -> None:
            self.found += [(row["topic"], int(row["value"])) for row in frame.collect()]

        options = {
            "kafka.bootstrap.servers": self._address,
            "subscribe": f"{self.lasting},{self.leaving}",
            "startingOffsets": "earliest",
            "failOnDataLoss": "false",
            **self._options,
        }
        frame = self._spark.readStream.format("barnabas").schema("topic string, value binary")
        rows = frame.options(**options).load()
        rows = rows if change is None else rows.mapInArrow(change, rows.schema)
        checkpoint = str(self._directory / "checkpoint")
        return rows.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint).start()

    def wait_for(self, query: StreamingQuery, topic: str, values: Iterable[int]) -> None:
        until = time.monotonic() + WAIT_S
        wanted = {(topic, value) for value in values}
        while not wanted <= set(self.found):
            if (failed := query.exception()) is not None:
                raise AssertionError("the query has ended") from failed
            assert time.monotonic() < until, f"not read: {sorted(wanted - set(self.found))[:10]}"
            time.sleep(0.05)

    def of(self, topic: str) -> list[int]:
        return sorted(value for name, value in self.found if name == topic)


@pytest.mark.scaled
@pytest.mark.parametrize("gap_s", GAPS_S)
def test_a_query_continues_without_a_deleted_topic_until_it_is_recreated(
    spark: SparkSession, address: str, tmp_path: Path, gap_s: float
) -> None:
    reading = Reading(spark, address, tmp_path)
    reading.make(reading.lasting, 1)
    reading.make(reading.leaving, 3)
    reading.send(reading.lasting, *range(10))
    reading.send(reading.leaving, *range(30))
    query = reading.start()
    try:
        reading.wait_for(query, reading.lasting, range(10))
        reading.wait_for(query, reading.leaving, range(30))
        deleted = time.monotonic()
        reading.delete(reading.leaving)
        reading.send(reading.lasting, *range(10, 20))
        reading.wait_for(query, reading.lasting, range(20))
        time.sleep(max(0.0, deleted + gap_s - time.monotonic()))
        reading.make(reading.leaving, 1)
        reading.send(reading.leaving, *range(100, 105))
        reading.send(reading.lasting, *range(20, 30))

        reading.wait_for(query, reading.leaving, range(100, 105))
        reading.wait_for(query, reading.lasting, range(30))
    finally:
        query.stop()
    assert reading.of(reading.lasting) == list(range(30))
    assert reading.of(reading.leaving) == [*range(30), *range(100, 105)]


def deleting(address: str, topic: str, directory: Path) -> Rows:
    """Pass rows through; the first two tasks delete the topic, and end when it no longer exists."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = list(batches)
        if found and found[0]["topic"][0].as_py() == topic and not (directory / "gone").exists():
            try:
                (directory / "deleting").touch(exist_ok=False)
            except FileExistsError:
                until = time.monotonic() + WAIT_S
                while not (directory / "gone").exists():
                    assert time.monotonic() < until, "waited for the other task"
                    time.sleep(0.05)
            else:
                # Both tasks have read their records.
                time.sleep(1)
                with Admin(bootstrap_servers=address) as admin:
                    admin.delete_topic(topic)
                (directory / "gone").touch()
        yield from found

    return rows


def test_a_query_continues_when_a_topic_is_deleted_while_its_tasks_run(
    spark: SparkSession, address: str, tmp_path: Path
) -> None:
    options = {"minPartitions": str(TASKS + 1), "kafkaConsumer.pollTimeoutMs": "2000"}
    reading = Reading(spark, address, tmp_path, **options)
    reading.make(reading.lasting, 1)
    reading.make(reading.leaving, 1)
    reading.send(reading.leaving, *range(30))
    query = reading.start(deleting(address, reading.leaving, tmp_path))
    try:
        reading.wait_for(query, reading.leaving, range(1))
        assert (tmp_path / "gone").exists()
        reading.make(reading.leaving, 2)
        reading.send(reading.leaving, *range(100, 105))
        reading.send(reading.lasting, *range(10))

        reading.wait_for(query, reading.leaving, range(100, 105))
        reading.wait_for(query, reading.lasting, range(10))
    finally:
        query.stop()
    assert len(set(reading.found)) == len(reading.found)
    assert not set(range(20, 30)) <= set(reading.of(reading.leaving)), "the last task came too late"
