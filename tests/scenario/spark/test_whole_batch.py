"""One transaction per micro-batch: rare situations of Spark's scheduler, with writers without Spark."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier

import pyarrow as pa
import pytest

from barnabas.client.blocking import Admin, Consumer
from barnabas.client.consumer.message import EndOfPartition
from barnabas.spark.options.sink import SinkOptions, sink_options
from barnabas.spark.options.values import Values
from barnabas.spark.sink.claims import NotOneWriter, claim_task
from barnabas.spark.sink.markers import Mark, set_mark
from barnabas.spark.sink.whole_batch import PartWritten, commit_parts, open_batch, write_part
from barnabas.testing import Broker

ROWS = 100
WAIT_MAX_S = 30
# A claim takes about ten milliseconds.
ROUNDS, MOMENTS, MOMENT_S = 120, 40, 0.0005
TRIED_AGAIN = "another attempt of task 0 writes to the same transaction: restart the query"
_numbers = count()


class Query:
    """A query that writes to its own topic of two partitions."""

    def __init__(self, broker: Broker, *, has_topic: bool = True) -> None:
        self.id = f"query-{next(_numbers)}"
        self.topic = f"{self.id}-out"
        self._broker = broker
        if has_topic:
            broker.create_topic(self.topic, partitions=2)
        self.options = self._options()
        self.name = f"{self.options.id_prefix}-{self.id}-there"
        self.opened = open_batch(self.options, self.name)

    def _options(self) -> SinkOptions:
        given = {
            "kafka.bootstrap.servers": self._broker.bootstrap,
            "topic": self.topic,
            "deliveryGuarantee": "exactly-once",
            "transactionScope": "batch",
        }
        return sink_options(Values(given), overwrite=False, directory="/")

    def write(self, word: str, *, task: int = 0, partition: int = 0, batch: int = 0) -> PartWritten:
        values = [f"{word} {number}" for number in range(ROWS)]
        rows = pa.record_batch(
            {"value": values, "partition": pa.array([partition] * ROWS, pa.int32())},
        )
        return write_part(self.options, iter([rows]), self.opened, self.id, batch, task)

    def commit(self, *parts: PartWritten, batch: int = 0) -> None:
        commit_parts(self.options, list(parts), batch)

    def seen(self) -> dict[str, int]:
        """Count rows by writer."""
        found: Counter[str] = Counter()
        settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
        with Consumer(
            bootstrap_servers=self._broker.bootstrap, enable_partition_eof=True, **settings
        ) as consumer:
            left = set(consumer.assign_topic(self.topic))
            while left:
                messages = consumer.batch(1000, timeout_ms=WAIT_MAX_S * 1000)
                assert messages, f"the ends of {left} are not reached"
                for message in messages:
                    if isinstance(message, EndOfPartition):
                        left.discard(message.tp)
                    else:
                        found[(message.value or b"").decode().split()[0]] += 1
        return found


@pytest.fixture
def query(broker: Broker) -> Query:
    return Query(broker)


def test_a_task_of_a_retried_stage_is_rejected(query: Query) -> None:
    # Both are the first attempt of their stage's attempt. Rows may come in another order by then, so the
    # second one's are not a repetition, although its batches look like it to a broker.
    first = query.write("first")

    with pytest.raises(NotOneWriter, match=TRIED_AGAIN):
        query.write("second")

    query.commit(first)
    assert query.seen() == {"first": ROWS}


def test_a_retried_task_that_writes_elsewhere_is_rejected(query: Query) -> None:
    query.write("first", partition=0)

    with pytest.raises(NotOneWriter, match=TRIED_AGAIN):
        query.write("second", partition=1)


def test_only_one_of_two_concurrent_attempts_writes(query: Query) -> None:
    together = Barrier(2)

    def write(word: str) -> PartWritten | NotOneWriter:
        together.wait(WAIT_MAX_S)
        try:
            return query.write(word)
        except NotOneWriter as refused:
            return refused

    with ThreadPoolExecutor(2) as threads:
        ends = dict(zip(("one", "other"), threads.map(write, ("one", "other")), strict=True))

    written = {word: end for word, end in ends.items() if isinstance(end, PartWritten)}
    assert len(written) == 1, ends
    query.commit(*written.values())
    assert query.seen() == dict.fromkeys(written, ROWS)


def test_only_one_of_two_attempts_claims_the_task_at_any_interleaving(query: Query) -> None:
    """Also if the first attempt's transaction was aborted and its id has no new owner."""
    together = Barrier(2)

    def claim(task: int, later_s: float) -> bool:
        together.wait(WAIT_MAX_S)
        time.sleep(later_s)
        try:
            claim_task(query.options, query.opened.transaction, task, query.topic, query.id)
        except NotOneWriter:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        for task in range(ROUNDS):
            later_s = task % MOMENTS * MOMENT_S
            has_it = list(threads.map(claim, (task, task), (0.0, later_s)))
            assert has_it.count(True) == 1, (task, has_it)


def test_other_tasks_and_the_next_batch_can_claim(query: Query) -> None:
    query.commit(query.write("first"), query.write("second", task=1, partition=1))
    query.opened = open_batch(query.options, query.name)
    query.commit(query.write("third", batch=1), batch=1)

    assert query.seen() == {"first": ROWS, "second": ROWS, "third": ROWS}


def test_a_failed_batch_can_be_written_again(query: Query) -> None:
    query.write("first")
    query.opened = open_batch(query.options, query.name)
    query.commit(query.write("second"))

    assert query.seen() == {"second": ROWS}


def test_a_mark_of_an_earlier_release_is_found(query: Query, broker: Broker) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        set_mark(admin, query.name, Mark(3, query.id, query.topic))

    assert query.write("again", batch=3).written == frozenset()
    assert query.write("new", batch=4).written != frozenset()


def test_a_topic_that_brokers_create_on_demand_is_written_to(broker: Broker) -> None:
    query = Query(broker, has_topic=False)
    query.commit(query.write("first"))

    assert query.seen() == {"first": ROWS}
