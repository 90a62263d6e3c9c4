"""spark.readStream.format("barnabas") with a real Spark, broker and checkpoints."""

import json
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Admin, Producer
from barnabas.spark.options.source import stream_options
from barnabas.spark.options.values import Values
from barnabas.spark.source.stream import StreamReader

_numbers = count()


class Topic:
    """A topic whose values are numbers, in the order in which they were sent."""

    def __init__(self, address: str, partitions: int) -> None:
        self.name = f"clicks-{next(_numbers)}"
        self.address = address
        self._next = count()
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic(self.name, partitions=partitions)

    def send(self, records: int, partition: int | None = None) -> None:
        """Send to the partitions in turn, or all to one."""
        with Admin(bootstrap_servers=self.address) as admin:
            partitions = len(admin.describe_topic(self.name).partitions)
        with Producer(bootstrap_servers=self.address) as producer:
            for number in range(records):
                to = number % partitions if partition is None else partition
                producer.send(self.name, b"%d" % next(self._next), partition=to)


class Query:
    """A query whose runs continue from the checkpoint and end with the records that exist at their start."""

    def __init__(self, spark: SparkSession, topic: Topic, directory: Path, **options: str) -> None:
        self._spark, self._topic, self._directory = spark, topic, directory
        self.options = options
        self.batches: list[list[int]] = []

    def frame(self) -> DataFrame:
        reader = (
            self._spark.readStream.format("barnabas")
            .option("kafka.bootstrap.servers", self._topic.address)
            .option("subscribe", self._topic.name)
        )
        for name, value in self.options.items():
            reader = reader.option(name.replace("__", "."), value)
        return reader.load()

    def start(self, **trigger: Any) -> StreamingQuery:
        def take(frame: DataFrame, number: int) -> None:
            rows = frame.selectExpr("cast(cast(value as string) as int) as number").collect()
            self.batches.append(sorted(row["number"] for row in rows))

        return (
            self.frame()
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self._directory))
            .trigger(**(trigger or {"availableNow": True}))
            .start()
        )

    def run(self, **trigger: Any) -> list[list[int]]:
        """Run the query and return its batches."""
        before = len(self.batches)
        query = self.start(**trigger)
        try:
            assert query.awaitTermination(60), "it ends by itself"
        finally:
            query.stop()
        return self.batches[before:]

    def offsets(self) -> dict[str, dict[str, int]]:
        """Return the offsets of the last batch in the checkpoint."""
        log = self._directory / "offsets"
        last = max(int(path.name) for path in log.iterdir() if path.name.isdigit())
        found: dict[str, dict[str, int]] = json.loads((log / str(last)).read_text().splitlines()[-1])
        return found


def numbers(batches: list[list[int]]) -> list[int]:
    return sorted(number for batch in batches for number in batch)


@pytest.fixture
def query(spark: SparkSession, address: str, tmp_path: Path) -> Callable[..., tuple[Topic, Query]]:
    def make(partitions: int = 2, **options: str) -> tuple[Topic, Query]:
        topic = Topic(address, partitions)
        return topic, Query(spark, topic, tmp_path / "checkpoint", **options)

    return make


Make = Callable[..., tuple[Topic, Query]]


def test_each_record_is_read_once_over_several_runs(query: Make) -> None:
    topic, clicks = query(startingOffsets="earliest")
    topic.send(100)
    assert numbers(clicks.run()) == list(range(100))
    topic.send(50)
    assert numbers(clicks.run()) == list(range(100, 150))
    # No new records.
    assert clicks.run() == []
    assert clicks.offsets() == {topic.name: {"0": 75, "1": 75}}


def test_a_limit_is_shared_in_proportion_and_all_records_are_read(query: Make) -> None:
    topic, clicks = query(startingOffsets="earliest", maxOffsetsPerTrigger="30")
    topic.send(60, partition=0)
    topic.send(20, partition=1)

    batches = clicks.run()

    assert numbers(batches) == list(range(80))
    assert all(len(batch) <= 30 for batch in batches)
    # In proportion to the backlog: 22 of one partition and 7 of the other.
    assert (sum(number < 60 for number in batches[0]), sum(number >= 60 for number in batches[0])) == (22, 7)


def test_latest_resolves_when_the_query_first_starts(query: Make) -> None:
    topic, clicks = query()
    topic.send(10)
    assert clicks.run() == [[]]
    topic.send(5)
    assert numbers(clicks.run()) == list(range(10, 15))


def test_a_replayed_batch_0_has_the_same_start(query: Make) -> None:
    topic, clicks = query()
    topic.send(10)
    assert clicks.run() == [[]]
    topic.send(5)
    # As if the query had died before the batch completed.
    for name in ("0", ".0.crc"):
        (clicks._directory / "commits" / name).unlink()

    assert numbers(clicks.run()) == list(range(10, 15))


def test_new_partitions_are_read_from_their_beginning(query: Make) -> None:
    topic, clicks = query(partitions=1, startingOffsets="earliest")
    topic.send(10)
    clicks.run()
    with Admin(bootstrap_servers=topic.address) as admin:
        admin.create_partitions(topic.name, 2)
    topic.send(10, partition=1)

    assert numbers(clicks.run()) == list(range(10, 20))


def test_progress_is_committed_to_the_group_of_the_query(query: Make) -> None:
    topic, clicks = query(startingOffsets="earliest", groupIdPrefix="clicks-query")
    topic.send(100)
    clicks.run()

    identity = json.loads((clicks._directory / "metadata").read_text())["id"]
    with Admin(bootstrap_servers=topic.address) as admin:
        committed = admin.list_group_offsets(f"clicks-query-{identity}")
    assert {tp: None if one is None else one.offset for tp, one in committed.items()} == {
        TopicPartition(topic.name, 0): 50,
        TopicPartition(topic.name, 1): 50,
    }


def test_another_query_starts_from_a_named_group(query: Make, tmp_path: Path) -> None:
    topic, clicks = query(startingOffsets="group", kafka__group__id=f"shop-{next(_numbers)}")
    topic.send(20)
    assert numbers(clicks.run()) == list(range(20))
    topic.send(10)

    another = Query(clicks._spark, topic, tmp_path / "another", **clicks.options)

    assert numbers(another.run()) == list(range(20, 30))


def test_commit_progress_false_commits_nothing(query: Make) -> None:
    group = f"shop-{next(_numbers)}"
    topic, clicks = query(startingOffsets="earliest", kafka__group__id=group, commitProgress="false")
    topic.send(20)
    clicks.run()

    with Admin(bootstrap_servers=topic.address) as admin:
        assert group not in admin.list_groups()


def test_deleted_offsets_fail_the_query_or_are_skipped(query: Make) -> None:
    topic, clicks = query(partitions=1, startingOffsets="earliest")
    topic.send(10)
    clicks.run()
    topic.send(20)
    with Admin(bootstrap_servers=topic.address) as admin:
        admin.delete_records({TopicPartition(topic.name, 0): 25})

    with pytest.raises(StreamingQueryException) as lost:
        clicks.run()
    assert f"{topic.name}-0 was read up to offset 10, but now begins at 25: 15 offsets are lost" in str(
        lost.value
    )
    clicks.options["failOnDataLoss"] = "false"
    assert numbers(clicks.run()) == list(range(25, 30))


def test_a_recreated_topic_is_data_loss_or_read_from_its_beginning(query: Make) -> None:
    topic, clicks = query(partitions=1, startingOffsets="earliest")
    topic.send(10)
    clicks.run()
    with Admin(bootstrap_servers=topic.address) as admin:
        admin.delete_topic(topic.name)
        admin.create_topic(topic.name, partitions=1)
    topic.send(3)

    with pytest.raises(StreamingQueryException) as lost:
        clicks.run()
    assert f"{topic.name}-0 was read up to offset 10, but now ends at 3" in str(lost.value)
    clicks.options["failOnDataLoss"] = "false"
    assert numbers(clicks.run()) == [10, 11, 12]


def test_a_checkpoint_of_another_topic_is_refused(query: Make, spark: SparkSession, address: str) -> None:
    topic, clicks = query(partitions=1, startingOffsets="earliest")
    topic.send(10)
    clicks.run()

    others = Query(spark, Topic(address, 1), clicks._directory, **clicks.options)

    with pytest.raises(
        StreamingQueryException, match=f"{topic.name}-0 no longer exists; the query was at offset 10"
    ):
        others.run()


def test_the_wait_for_enough_records_is_limited(query: Make) -> None:
    topic, clicks = query(startingOffsets="earliest", minOffsetsPerTrigger="50", maxTriggerDelay="3s")
    topic.send(10)
    running = clicks.start(processingTime="100 milliseconds")
    try:
        _until(lambda: len(clicks.batches) == 1)
        before = time.monotonic()
        topic.send(60)
        _until(lambda: len(clicks.batches) == 2)
        topic.send(5)
        _until(lambda: len(clicks.batches) == 3)
    finally:
        running.stop()

    assert [len(batch) for batch in clicks.batches] == [10, 60, 5]
    # Time between the second batch and the third.
    assert time.monotonic() - before >= 3


def test_once_reads_everything_in_one_batch(query: Make) -> None:
    topic, clicks = query(startingOffsets="earliest", maxOffsetsPerTrigger="10")
    topic.send(40)

    assert [len(batch) for batch in clicks.run(once=True)] == [40]


def test_a_query_continues_from_a_checkpoint_of_sparks_own_source(query: Make) -> None:
    topic, clicks = query(startingOffsets="earliest")
    topic.send(20)
    clicks.run()
    log = clicks._directory / "offsets" / "0"
    # Compact JSON, as format("kafka") writes it.
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:-1], json.dumps(json.loads(lines[-1]), separators=(",", ":"))]))
    for crc in (clicks._directory / "offsets").glob(".*.crc"):
        crc.unlink()
    topic.send(10)

    assert numbers(clicks.run()) == list(range(20, 30))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"endingOffsets": "latest"}, "option endingOffsets: a stream has no end"),
        ({"startingOffsets": "group"}, "group requires kafka.group.id"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "exceeds maxOffsetsPerTrigger"),
        ({"startingTimestamp": "99999999999999"}, "option startingTimestamp: "),
    ],
)
def test_invalid_stream_options_are_rejected_with_the_reason(
    query: Make, options: dict[str, str], why: str
) -> None:
    topic, clicks = query(**options)
    topic.send(3)

    with pytest.raises(Exception, match=why):
        clicks.run()


def _until(holds: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to be in time"
        time.sleep(0.05)


@pytest.mark.parametrize(
    "given", [{}, {"startingTimestamp": "-1"}, {"startingOffsetsByTimestamp": '{"TOPIC":{"0":-1}}'}], ids=str
)
def test_an_empty_batch_0_fixes_a_moving_start(address: str, given: dict[str, str]) -> None:
    """Make the calls of Spark for a batch that fails while records arrive, on the reader for exact timing."""
    topic = Topic(address, 1)
    topic.send(10)
    start_at = {name: text.replace("TOPIC", topic.name) for name, text in given.items()}
    options = {"kafka.bootstrap.servers": address, "subscribe": topic.name, **start_at}
    reader = StreamReader(stream_options(Values(options)), ("value",))
    again = StreamReader(stream_options(Values(options)), ("value",))
    try:
        start = reader.initialOffset()
        topic.send(5)
        anchor = reader.latestOffset(start, ReadAllAvailable())
        assert (reader.initialOffset(), anchor, reader.partitions(start, anchor)) == (start, start, [])
        later = reader.latestOffset(anchor, ReadAllAvailable())
        assert later == {topic.name: {"0": 15}}
        # Another process after the first batch failed: it starts later, but loses and repeats no record.
        moved = again.initialOffset()
        assert (moved, again.partitions(moved, anchor)) == (later, [])
        assert [one.value for one in again.partitions(anchor, later)] == [((topic.name, 0), 10, 15)]
    finally:
        reader.stop()
        again.stop()
