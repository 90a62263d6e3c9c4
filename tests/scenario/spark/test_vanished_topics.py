"""A topic that is deleted or recreated after a query was planned and before all its tasks have started."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from barnabas.client.blocking import Admin, Producer

# Two tasks run at once, so the third starts after the topic was deleted.
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
    fill(address, name)
    return name


def fill(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address) as producer:
        for number in range(ROWS):
            producer.send(topic, b"%d" % number)


def deleting(address: str, topic: str, directory: Path, *, comes_back: bool) -> Rows:
    """Pass rows through; delete the topic when the first two tasks have read their records."""

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
                    if comes_back:
                        admin.create_topic(topic, partitions=1)
                        fill(address, topic)
                (directory / "deleted").touch()
            wait_for("deleted")
        yield from found

    return rows


def read(
    spark: SparkSession, address: str, topic: str, directory: Path, *, fails: bool, comes_back: bool
) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": address,
        "subscribe": topic,
        "minPartitions": str(TASKS),
        "kafkaConsumer.pollTimeoutMs": "2000",
        "failOnDataLoss": str(fails).lower(),
    }
    frame = spark.read.format("barnabas").schema("offset long").options(**options).load()
    return frame.mapInArrow(deleting(address, topic, directory, comes_back=comes_back), "offset long")


@pytest.mark.parametrize("comes_back", [False, True])
def test_the_query_fails_and_names_the_deleted_topic(
    spark: SparkSession, address: str, topic: str, tmp_path: Path, comes_back: bool
) -> None:
    frame = read(spark, address, topic, tmp_path, fails=True, comes_back=comes_back)

    with pytest.raises(PySparkException, match=f"{topic}-0 is gone from offset 200 in the range 200 to 300"):
        frame.collect()


@pytest.mark.parametrize("comes_back", [False, True])
def test_with_fail_on_data_loss_false_the_query_returns_read_rows(
    spark: SparkSession, address: str, topic: str, tmp_path: Path, comes_back: bool
) -> None:
    frame = read(spark, address, topic, tmp_path, fails=False, comes_back=comes_back)

    assert sorted(row["offset"] for row in frame.collect()) == list(range(200))
