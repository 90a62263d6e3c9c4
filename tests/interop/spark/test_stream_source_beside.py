"""spark.readStream with every option, Spark's own source and ours: the same rows in the same batches.

Runs end with what was there when they began, unless the story needs otherwise. A batch without rows is not
counted: ours begins with one if its start moves, and that is where the query begins then.
"""

import json
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Admin, Producer
from support.spark.beside import OURS, THEIRS, Options, Refused, Seen, StreamRun, options_of

FIRST_MS = 1_790_000_000_000
KEPT = {"retention.ms": "-1"}
_numbers = count()


class Topic:
    """The record at each offset is so many seconds after the first."""

    def __init__(self, address: str, *sizes: int) -> None:
        self.address = address
        self.name = f"clicks-{next(_numbers)}"
        self._next: dict[int, int] = {}
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic(self.name, partitions=len(sizes), settings=KEPT)
        self.send(*sizes)

    def send(self, *sizes: int) -> None:
        with Producer(bootstrap_servers=self.address) as producer:
            for partition, size in enumerate(sizes):
                for _ in range(size):
                    at = self._next.get(partition, 0)
                    self._next[partition] = at + 1
                    producer.send(
                        self.name, b"%d" % at, partition=partition, timestamp_ms=FIRST_MS + 1000 * at
                    )

    def delete_before(self, offset: int) -> None:
        with Admin(bootstrap_servers=self.address) as admin:
            admin.delete_records({TopicPartition(self.name, 0): offset})

    def remake(self, *sizes: int) -> None:
        with Admin(bootstrap_servers=self.address) as admin:
            admin.delete_topic(self.name)
            admin.create_topic(self.name, partitions=len(sizes), settings=KEPT)
        self._next = {}
        self.send(*sizes)


class Pair:
    """The same query with each, each with a checkpoint of its own."""

    def __init__(self, spark: SparkSession, topic: Topic, directory: Path, given: Options) -> None:
        options = options_of(topic.address, topic.name, given)
        self.ours = StreamRun(spark, OURS, options, directory / OURS)
        self.theirs = StreamRun(spark, THEIRS, options, directory / THEIRS)

    def run(self, **trigger: Any) -> list[list[Seen]]:
        """What both have read, batch by batch."""
        theirs, ours = self.theirs.run(**trigger), self.ours.run(**trigger)
        assert not isinstance(theirs, Refused), theirs
        assert ours == theirs
        return theirs

    def refuse(self) -> str:
        """Both do; what ours says."""
        theirs, ours = self.theirs.run(), self.ours.run()
        assert isinstance(theirs, Refused), f"theirs reads: {theirs}"
        assert isinstance(ours, Refused), f"ours reads: {ours}"
        return ours.why

    def allow(self, **given: str) -> None:
        for run in (self.ours, self.theirs):
            run.options.update(given)


Make = Callable[..., Pair]


@pytest.fixture
def pair(spark: SparkSession, tmp_path: Path) -> Make:
    def make(topic: Topic, **given: str) -> Pair:
        options = {name.replace("__", "."): text for name, text in given.items()}
        return Pair(spark, topic, tmp_path, options)

    return make


def sizes_of(batches: list[list[Seen]]) -> list[int]:
    return [len(batch) for batch in batches]


# How much at a time


@pytest.mark.parametrize(
    ("sizes", "most", "batches"),
    [
        ((60, 20), 30, [29, 29, 22]),
        # 0.29 of 100 is not quite 29 where it is counted.
        ((29, 71), 100, [99, 1]),
        ((200, 1, 1, 0), 10, None),
        ((3, 3, 3), 2, [3, 3, 3]),
        ((50,), 1000, [50]),
    ],
    ids=str,
)
def test_a_limit_is_distributed_identically(
    address: str, pair: Make, sizes: tuple[int, ...], most: int, batches: list[int] | None
) -> None:
    topic = Topic(address, *sizes)

    found = pair(topic, startingOffsets="earliest", maxOffsetsPerTrigger=str(most)).run()

    assert sum(sizes_of(found)) == sum(sizes)
    assert batches is None or sizes_of(found) == batches


def test_once_takes_everything_at_once(address: str, pair: Make) -> None:
    topic = Topic(address, 20, 5)

    found = pair(topic, startingOffsets="earliest", maxOffsetsPerTrigger="10").run(once=True)

    assert sizes_of(found) == [25]


def test_too_few_are_waited_for(address: str, pair: Make) -> None:
    """The first batch does not wait, the second is large enough, the third has waited long enough."""
    found = {}
    for kind in ("ours", "theirs"):
        topic = Topic(address, 10)
        query: StreamRun = getattr(
            pair(topic, startingOffsets="earliest", minOffsetsPerTrigger="50", maxTriggerDelay="4s"), kind
        )
        running = query.start(processingTime="100 milliseconds")
        try:
            _until(lambda query=query: sizes_of(query.batches)[-1:] == [10])
            topic.send(20)
            time.sleep(1)
            topic.send(40)
            _until(lambda query=query: sum(sizes_of(query.batches)) == 70)
            topic.send(5)
            began = time.monotonic()
            _until(lambda query=query: sum(sizes_of(query.batches)) == 75)
            assert time.monotonic() - began > 1
        finally:
            running.stop()
        found[kind] = [size for size in sizes_of(query.batches) if size]

    assert found == {"ours": [10, 60, 5], "theirs": [10, 60, 5]}


def test_fewest_and_most_go_together(address: str, pair: Make) -> None:
    topic = Topic(address, 40, 10)

    found = pair(topic, startingOffsets="earliest", minOffsetsPerTrigger="5", maxOffsetsPerTrigger="20").run()

    assert sum(sizes_of(found)) == 50


# Where it starts


class Start(NamedTuple):
    """How many rows there are in the first run, of partitions of 30 and 3."""

    options: Options
    rows: int


BOTH_PARTITIONS = '{"TOPIC":{"0":%s,"1":%s}}'


@pytest.mark.parametrize(
    "start",
    [
        Start({}, 0),
        Start({"startingOffsets": "latest"}, 0),
        Start({"startingOffsets": "Earliest"}, 33),
        Start({"startingOffsets": BOTH_PARTITIONS % (20, -2)}, 13),
        Start({"startingOffsets": BOTH_PARTITIONS % (20, -1)}, 10),
        Start({"startingTimestamp": str(FIRST_MS + 2000)}, 28 + 1),
        Start({"startingTimestamp": "-1"}, 0),
        Start({"startingTimestamp": "-2"}, 33),
        Start({"startingOffsetsByTimestamp": BOTH_PARTITIONS % (-1, -2)}, 3),
        Start({"startingOffsetsByTimestamp": BOTH_PARTITIONS % (FIRST_MS + 25_000, FIRST_MS)}, 5 + 3),
        Start(
            {"startingTimestamp": str(FIRST_MS + 25_000), "startingOffsetsByTimestampStrategy": "latest"}, 5
        ),
        Start({"startingTimestamp": str(FIRST_MS + 2000), "startingOffsets": "earliest"}, 29),
        Start({"assign": '{"TOPIC":[1]}', "startingOffsets": "earliest"}, 3),
        Start({"subscribePattern": "TOPIC$", "startingOffsets": "earliest"}, 33),
        Start({"startingoffsets": "earliest", "INCLUDEHEADERS": "true", "GroupIdPrefix": "shop"}, 33),
        Start({"startingOffsets": "earliest", "kafka.group.id": "shop", "minPartitions": "5"}, 33),
        Start({"startingOffsets": "earliest", "maxRecordsPerPartition": "4"}, 33),
    ],
    ids=lambda start: str(start.options),
)
def test_a_query_starts_and_resumes_at_the_same_offsets(
    address: str, spark: SparkSession, tmp_path: Path, start: Start
) -> None:
    topic = Topic(address, 30, 3)
    query = Pair(spark, topic, tmp_path, start.options)

    assert sum(sizes_of(query.run())) == start.rows
    topic.send(4, 4)
    assert sum(sizes_of(query.run())) == (4 if "assign" in start.options else 8)
    assert offsets_of(tmp_path / OURS) == offsets_of(tmp_path / THEIRS)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"endingOffsets": "latest"}, "a stream has no end"),
        ({"endingOffsetsByTimestamp": BOTH_PARTITIONS % (1, 1)}, "a stream has no end"),
        ({"subscribe": "TOPIC", "assign": '{"TOPIC":[0]}'}, "exactly one of them"),
        ({"subscribe": "TOPIC,nowhere"}, "nowhere"),
        ({"startingOffsets": '{"TOPIC":{"0":0}}'}, "TOPIC-1 is missing"),
        ({"startingOffsets": '{"TOPIC":{"0":0,"1":0,"2":0}}'}, "TOPIC-2 is not one of"),
        ({"startingOffsets": BOTH_PARTITIONS % (0, 99)}, "TOPIC-1"),
        ({"startingTimestamp": str(FIRST_MS + 4000)}, "TOPIC-1 has no record at or after"),
        ({"startingOffsetsByTimestamp": '{"TOPIC":{"0":0}}'}, "TOPIC-1 is missing"),
        ({"minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "2"}, "exceeds maxOffsetsPerTrigger"),
        ({"maxOffsetsPerTrigger": "few"}, "is not an integer"),
        ({"maxTriggerDelay": "soon"}, "is not a duration"),
        ({"minPartitions": "0"}, "is out of range"),
        ({"kafka.auto.offset.reset": "earliest"}, "starts at startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "commits its own progress"),
        ({"kafka.interceptor.classes": "Spy"}, "interceptors"),
        ({"kafka.value.deserializer": "Bytes"}, "keys and values are bytes"),
    ],
    ids=str,
)
def test_both_refuse(
    address: str, spark: SparkSession, tmp_path: Path, options: dict[str, str], why: str
) -> None:
    topic = Topic(address, 5, 3)

    said = Pair(spark, topic, tmp_path, options).refuse()

    assert why.replace("TOPIC", topic.name) in said


def test_an_ending_time_is_refused_by_ours_alone(address: str, pair: Make) -> None:
    """Spark's own passes over it in a stream, and refuses the two other forms."""
    query = pair(Topic(address, 5), startingOffsets="earliest", endingTimestamp=str(FIRST_MS))

    theirs, ours = query.theirs.run(), query.ours.run()

    assert not isinstance(theirs, Refused)
    assert isinstance(ours, Refused)
    assert "a stream has no end" in ours.why


# What changes meanwhile


def test_new_partitions_are_read_from_their_beginning(address: str, pair: Make) -> None:
    topic = Topic(address, 10)
    query = pair(topic, startingOffsets="latest", maxOffsetsPerTrigger="8")
    query.run()
    with Admin(bootstrap_servers=address) as admin:
        admin.create_partitions(topic.name, 3)
    topic.send(2, 20, 0)

    found = query.run()

    assert sum(sizes_of(found)) == 22


def test_new_topics_of_a_pattern_are_read_from_their_beginning(address: str, pair: Make) -> None:
    topic = Topic(address, 10)
    query = pair(topic, startingOffsets="latest", subscribePattern="TOPIC(-more)?$")
    query.run()
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(f"{topic.name}-more", partitions=1)
    with Producer(bootstrap_servers=address) as producer:
        for number in range(7):
            producer.send(f"{topic.name}-more", b"%d" % number)

    assert sizes_of(query.run()) == [7]


def test_deleted_records_fail_both_queries_or_are_skipped(address: str, pair: Make) -> None:
    topic = Topic(address, 10)
    query = pair(topic, startingOffsets="earliest")
    query.run()
    topic.send(20)
    topic.delete_before(25)

    assert "15 offsets are lost" in query.refuse()
    query.allow(failOnDataLoss="false")
    assert sizes_of(query.run()) == [5]


def test_a_topic_that_is_gone_fails_both_or_is_left_out(address: str, pair: Make) -> None:
    topic, gone = Topic(address, 10), Topic(address, 10)
    query = pair(topic, startingOffsets="earliest", subscribePattern=f"^({topic.name}|{gone.name})$")
    query.run()
    with Admin(bootstrap_servers=address) as admin:
        admin.delete_topic(gone.name)
    topic.send(5)

    assert f"{gone.name}-0 no longer exists" in query.refuse()
    query.allow(failOnDataLoss="false")
    assert sizes_of(query.run()) == [5]


def test_a_topic_made_anew_fails_both_and_only_ours_reads_it_then(address: str, pair: Make) -> None:
    """Spark's own goes on at the new end: what was written until then is passed over."""
    topic = Topic(address, 10)
    query = pair(topic, startingOffsets="earliest")
    query.run()
    topic.remake(3)

    query.refuse()
    query.allow(failOnDataLoss="false")
    ours, theirs = query.ours.run(), query.theirs.run()
    assert not isinstance(ours, Refused)
    assert not isinstance(theirs, Refused)
    assert (sizes_of(ours), sizes_of(theirs)) == ([3], [])


# Transactions


@pytest.fixture
def payments(address: str) -> Iterator[Topic]:
    """Ten transactions of three records, every second one aborted; and one that is open."""
    topic = Topic(address, 0)
    with Producer(bootstrap_servers=address, transactional_id=f"{topic.name}-done") as producer:
        for number in range(10):
            producer.begin_transaction()
            for _ in range(3):
                producer.send(topic.name, b"%d" % number, partition=0)
            producer.flush()
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    with Producer(bootstrap_servers=address, transactional_id=f"{topic.name}-open") as producer:
        producer.begin_transaction()
        producer.send(topic.name, b"open", partition=0).result()
        yield topic
        producer.abort_transaction()


@pytest.mark.parametrize(("level", "rows"), [("read_committed", 15), ("read_uncommitted", 31)])
def test_transactions_are_read_identically(payments: Topic, pair: Make, level: str, rows: int) -> None:
    found = pair(
        payments, startingOffsets="earliest", kafka__isolation__level=level, maxOffsetsPerTrigger="7"
    ).run()

    assert sum(sizes_of(found)) == rows


# Checkpoints


def offsets_of(checkpoint: Path) -> Any:
    """Of the last batch."""
    log = checkpoint / "offsets"
    last = max(int(path.name) for path in log.iterdir() if path.name.isdigit())
    return json.loads((log / str(last)).read_text().splitlines()[-1])


@pytest.mark.parametrize("first", [THEIRS, OURS])
def test_a_checkpoint_goes_from_one_to_the_other_and_back(
    address: str, spark: SparkSession, tmp_path: Path, first: str
) -> None:
    topic = Topic(address, 30, 7)
    options = options_of(address, topic.name, {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "9"})
    query = StreamRun(spark, first, options, tmp_path / "checkpoint")
    found: list[Seen] = []

    for _ in range(4):
        batches = query.run()
        assert not isinstance(batches, Refused), batches
        assert batches
        found += [row for batch in batches for row in batch]
        query.kind = OURS if query.kind == THEIRS else THEIRS
        topic.send(3, 5)

    assert sorted((row[1], row[2]) for row in found) == sorted(
        [(0, at) for at in range(39)] + [(1, at) for at in range(22)]
    )


@pytest.mark.parametrize("first", [THEIRS, OURS])
def test_a_batch_that_one_has_begun_is_done_again_by_the_other(
    address: str, spark: SparkSession, tmp_path: Path, first: str
) -> None:
    topic = Topic(address, 30, 7)
    options = options_of(address, topic.name, {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "20"})
    query = StreamRun(spark, first, options, tmp_path / "checkpoint")
    before = query.run()
    assert not isinstance(before, Refused), before
    # As if the query had died before its last batch was done.
    commits = tmp_path / "checkpoint" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink()
    topic.send(3, 5)

    query.kind = OURS if first == THEIRS else THEIRS
    after = query.run()

    assert not isinstance(after, Refused), after
    assert after[0] == before[-1]
    assert sum(sizes_of(after[1:])) == 8


def _until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to be in time"
        time.sleep(0.05)
