"""A topic that is deleted after a query was planned, before all of its tasks have begun: real Spark."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from barnabas.client.blocking import Admin, Producer

# Two run at once, so the third begins when the topic is gone.
TASKS = 3
ROWS = 300
WAIT_S = 60.0
_numbers = count()

Rows = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@pytest.fixture
def topic(address: str) -> str:
    name = f"short-lived-{next(_numbers)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=1)
    with Producer(bootstrap_servers=address) as producer:
        for number in range(ROWS):
            producer.send(name, b"%d" % number)
    return name


def deleting(address: str, topic: str, directory: Path) -> Rows:
    """Rows as they are; but when the first two tasks have read theirs the topic is deleted."""

    def wait_for(*names: str) -> None:
        until = time.monotonic() + WAIT_S
        while not all((directory / name).exists() for name in names):
            assert time.monotonic() < until, f"waited for {names}"
            time.sleep(0.05)

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = list(batches)
        if found:
            first = found[0]["offset"][0].as_py()
            (directory / f"read-{first}").touch()
            if first == 0:
                wait_for("read-0", f"read-{ROWS // TASKS}")
                with Admin(bootstrap_servers=address) as admin:
                    admin.delete_topic(topic)
                (directory / "deleted").touch()
            wait_for("deleted")
        yield from found

    return rows


def read(spark: SparkSession, address: str, topic: str, directory: Path, *, fails: bool) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": address,
        "subscribe": topic,
        "minPartitions": str(TASKS),
        "kafkaConsumer.pollTimeoutMs": "2000",
        "failOnDataLoss": str(fails).lower(),
    }
    frame = spark.read.format("barnabas").schema("offset long").options(**options).load()
    return frame.mapInArrow(deleting(address, topic, directory), "offset long")


def test_the_query_fails_and_says_what_is_gone(
    spark: SparkSession, address: str, topic: str, tmp_path: Path
) -> None:
    frame = read(spark, address, topic, tmp_path, fails=True)

    with pytest.raises(
        PySparkException, match=f"{topic}-0 is gone, from offset 200 on, in the range 200 to 300"
    ):
        frame.collect()


def test_the_query_ends_with_what_was_there_if_it_is_asked_to(
    spark: SparkSession, address: str, topic: str, tmp_path: Path
) -> None:
    frame = read(spark, address, topic, tmp_path, fails=False)

    assert sorted(row["offset"] for row in frame.collect()) == list(range(200))
