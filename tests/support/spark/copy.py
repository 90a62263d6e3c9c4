"""A query from topic to topic that is run repeatedly, and the rows that it has written."""

from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.consumer.message import EndOfPartition

TASK = {"deliveryGuarantee": "exactly-once"}
BATCH = {"deliveryGuarantee": "exactly-once", "transactionScope": "batch"}
# How often the rows of a replayed batch are in the output.
each_promise = pytest.mark.parametrize(
    ("options", "times"), [({}, 2), (TASK, 1), (BATCH, 1)], ids=["at-least-once", "task", "batch"]
)
_numbers = count()


class Copy:
    """A query from one topic of two partitions to another, run until nothing is left."""

    def __init__(self, spark: SparkSession, address: str, directory: Path, options: dict[str, str]) -> None:
        number = next(_numbers)
        self.source, self.target = f"in-{number}", f"out-{number}"
        self.spark, self.address, self.directory = spark, address, directory
        self.options = options
        # The spelling of the directory in the checkpoint option.
        self.checkpoint = str(directory)
        self._next = count()
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic(self.source, partitions=2)
            admin.create_topic(self.target, partitions=2)

    def send(self, records: int) -> None:
        with Producer(bootstrap_servers=self.address) as producer:
            for number in range(records):
                producer.send(self.source, b"%d" % next(self._next), partition=number % 2)

    def run(self, tasks: int | None = None, **source: str) -> None:
        reader = (
            self.spark.readStream.format("barnabas")
            .option("kafka.bootstrap.servers", self.address)
            .option("subscribe", self.source)
            .option("startingOffsets", "earliest")
            .options(**source)
        )
        rows = reader.load().select("value", "partition")
        query = (
            (rows if tasks is None else rows.repartition(tasks, "partition"))
            .writeStream.format("barnabas")
            .option("kafka.bootstrap.servers", self.address)
            .option("topic", self.target)
            .option("checkpointLocation", self.checkpoint)
            .options(**self.options)
            .queryName(self.target)
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(60), "it ends by itself"
        finally:
            query.stop()

    def forget_last_batch(self) -> None:
        """As if the query had died after its rows were committed, and before Spark's own commit."""
        commits = self.directory / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        for name in (f"{last}", f".{last}.crc"):
            (commits / name).unlink()

    def written(self) -> list[int]:
        found: list[int] = []
        settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
        with Consumer(bootstrap_servers=self.address, enable_partition_eof=True, **settings) as consumer:
            left = set(consumer.assign_topic(self.target))
            for message in consumer:
                if isinstance(message, EndOfPartition):
                    left.discard(message.tp)
                    if not left:
                        break
                else:
                    found.append(int(message.value or b""))
        return sorted(found)


def check_a_batch_that_comes_again(clicks: Copy, times: int) -> None:
    """Assert that the batch is in the output so often, and later rows once."""
    clicks.send(100)
    clicks.run()
    assert clicks.written() == list(range(100))
    clicks.forget_last_batch()
    clicks.send(20)
    clicks.run()

    assert clicks.written() == sorted([*range(100)] * times + [*range(100, 120)])
