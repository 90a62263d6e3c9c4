"""What the questions of bench/spark.py share: a broker, topics, one Spark with both connectors, timing."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from barnabas.client.blocking import Admin, Producer
from broker_rows import Answer, more_is_better
from support.process.our_broker import OurBroker

OURS, THEIRS = "barnabas", "kafka"
PEER = "spark-sql-kafka 4.2.0"
ROUNDS = 5
SETTINGS = {"log.segment.bytes": 1_000_000_000, "transaction.state.log.num.partitions": 2}
# Rows of a table that is sent at a time.
_ROWS = 100_000


@dataclass
class Scene:
    spark: SparkSession
    broker: OurBroker
    directory: Path
    quick: bool
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def rounds(self) -> int:
        return 1 if self.quick else ROUNDS

    def sized(self, records: int) -> int:
        return records // 20 if self.quick else records

    def new_topic(self, name: str, partitions: int = 1) -> str:
        unique = f"{name}-{next(self._numbers)}"
        with Admin(bootstrap_servers=self.broker.address) as admin:
            admin.create_topic(unique, partitions=partitions)
        return unique

    def filled(self, name: str, records: int, size: int) -> str:
        """A topic of one partition, with so many records of so many random bytes."""
        topic = self.new_topic(name)
        values = pa.array([os.urandom(size) for _ in range(_ROWS)], pa.binary())
        with Producer(bootstrap_servers=self.broker.address) as producer:
            for first in range(0, records, _ROWS):
                table = pa.table({"value": values.slice(0, min(_ROWS, records - first))})
                for delivery in producer.send_table(topic, table):
                    delivery.result()
        return topic

    def forget(self, *topics: str) -> None:
        with Admin(bootstrap_servers=self.broker.address) as admin:
            admin.delete_topics(topics)

    def read(self, kind: str, topic: str, **options: str) -> DataFrame:
        return self._reading(self.spark.read, kind, topic, options)

    def stream(self, kind: str, topic: str, **options: str) -> DataFrame:
        return self._reading(self.spark.readStream, kind, topic, {"startingOffsets": "earliest", **options})

    def _reading(self, reader: Any, kind: str, topic: str, options: dict[str, str]) -> DataFrame:
        reader = reader.format(kind).option("kafka.bootstrap.servers", self.broker.address)
        reader = reader.option("subscribe", topic).option("minPartitions", "2")
        found: DataFrame = reader.options(**options).load()
        return found

    def available_now(self, writer: Any) -> float:
        """Seconds within the triggers of a query that reads all there is."""
        checkpoint = tempfile.mkdtemp(dir=self.directory)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        took = sum(one["durationMs"]["triggerExecution"] for one in query.recentProgress) / 1000
        shutil.rmtree(checkpoint)
        return float(took)

    def compare(
        self, question: str, rows: int, run: Callable[[str], float], aim: float | None, unit: str = "M rows/s"
    ) -> Answer:
        """`run` takes the name of a format and tells the seconds; the first round does not count."""
        speeds: dict[str, list[float]] = {OURS: [], THEIRS: []}
        for number in range(self.rounds + 1):
            for kind in (THEIRS, OURS) if number % 2 else (OURS, THEIRS):
                took = run(kind)
                if number > 0:
                    speeds[kind].append(rows / took / 1e6)
        return peer_named(more_is_better(question, speeds[OURS], speeds[THEIRS], unit, aim), PEER)


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def peer_named(answer: Answer, peer: str) -> Answer:
    from dataclasses import replace

    return replace(answer, row=replace(answer.row, peer=peer))


def make_spark(jars: Sequence[Path], directory: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(directory))
        .config("spark.jars", ",".join(map(str, jars)))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
