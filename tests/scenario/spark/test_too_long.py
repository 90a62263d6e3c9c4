"""A batch that exceeds its transaction's timeout: the error of task or driver names the option."""

import time
from collections.abc import Iterator
from itertools import count

import pyarrow as pa
import pytest

from barnabas.client.blocking import Admin
from barnabas.spark.options.sink import SinkOptions, sink_options
from barnabas.spark.options.values import Values
from barnabas.spark.sink.slots import commit_slots, write_slot
from barnabas.spark.sink.transactions import TookTooLong
from barnabas.spark.sink.whole_batch import commit_parts, open_batch, write_part
from barnabas.testing import Broker

TIMEOUT_MS = 500
WAIT_MAX_S = 30
TOLD = r"took \d+\.\d s, longer than kafka\.transaction\.timeout\.ms \(500\): increase it or write less"
_numbers = count()


class Slow:
    """A query that continues only after its transactions have timed out."""

    def __init__(self, broker: Broker) -> None:
        self.id = f"query-{next(_numbers)}"
        self._broker = broker
        broker.create_topic(self.id)
        given = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "topic": self.id,
            "deliveryGuarantee": "exactly-once",
            "kafka.transaction.timeout.ms": str(TIMEOUT_MS),
        }
        self.options: SinkOptions = sink_options(Values(given), overwrite=False, directory="/")

    @property
    def slot(self) -> str:
        """The transactional.id of the first slot, also used for a whole batch."""
        return f"{self.options.id_prefix}-{self.id}-0"

    def rows(self) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": ["one", "two"]})

    def slow_rows(self) -> Iterator[pa.RecordBatch]:
        """Yield further rows after the first were written and their transaction was aborted."""
        yield from self.rows()
        self.wait_until_aborted()
        yield from self.rows()

    def wait_until_aborted(self) -> None:
        end = time.monotonic() + WAIT_MAX_S
        with Admin(bootstrap_servers=self._broker.bootstrap) as admin:
            while (state := admin.describe_transactions([self.slot])[self.slot].state) != "CompleteAbort":
                assert time.monotonic() < end, state
                time.sleep(0.02)


@pytest.fixture
def query(broker: Broker) -> Slow:
    return Slow(broker)


def test_a_task_that_exceeds_the_timeout_says_so(query: Slow) -> None:
    with pytest.raises(TookTooLong, match=TOLD):
        write_slot(query.options, query.slow_rows(), query.id, 0, 0)


def test_a_driver_that_commits_tasks_too_late_says_so(query: Slow) -> None:
    written = write_slot(query.options, query.rows(), query.id, 0, 0)
    query.wait_until_aborted()

    with pytest.raises(TookTooLong, match=TOLD):
        commit_slots(query.options, [written], 0)


def test_a_task_of_a_whole_batch_that_exceeds_the_timeout_says_so(query: Slow) -> None:
    opened = open_batch(query.options, query.slot)

    with pytest.raises(TookTooLong, match=TOLD):
        write_part(query.options, query.slow_rows(), opened, query.id, 0, 0)


def test_a_driver_that_commits_a_whole_batch_too_late_says_so(query: Slow) -> None:
    opened = open_batch(query.options, query.slot)
    written = write_part(query.options, query.rows(), opened, query.id, 0, 0)
    query.wait_until_aborted()

    with pytest.raises(TookTooLong, match=TOLD):
        commit_parts(query.options, [written], 0)
