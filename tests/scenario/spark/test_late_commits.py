"""Commit requests that arrive late: after the driver was replaced, or after the transaction's timeout.

Uses writers without Spark for exact timing. The driver that sent the request stays alive and gets the
response. test_killed_drivers.py does the same with Spark and killed processes.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import Final, NamedTuple

import pyarrow as pa
import pytest

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition
from barnabas.client.admin.features import FeatureUpdate, UpgradeType
from barnabas.client.admin.records import IsolationLevel, OffsetSpec
from barnabas.client.blocking import Admin, Consumer
from barnabas.client.consumer.message import EndOfPartition
from barnabas.client.producer.transaction_errors import ProducerFenced
from barnabas.protocol.api_keys import ApiKey
from barnabas.spark.options.sink import SinkOptions, sink_options
from barnabas.spark.options.values import Values
from barnabas.spark.sink.slots import commit_slots, write_slot
from barnabas.spark.sink.whole_batch import commit_parts, open_batch, write_part
from barnabas.testing.waiting import wait_until
from support.process.our_broker import OurBroker
from support.scale import scaled
from support.wire.holding_proxy import Hold, HoldingProxy

TASKS: Final = 2
ROWS: Final = 40
WAIT_S_MAX: Final = 30
TIMEOUT_MS: Final = 600
# Around the timeout, and well before and after it.
RACES: Final = scaled("BARNABAS_SPARK_RACES", short=10, soak=200)
FENCED: Final = (ProducerFenced,)
_numbers = count()

SETTINGS: Final = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 20,
    "transaction.state.log.num.partitions": 2,
    "offsets.topic.num.partitions": 2,
}


class Late(NamedTuple):
    """A broker and the proxy in front of it."""

    address: str
    proxy: HoldingProxy


@pytest.fixture(scope="module", params=[1, 2], ids=["version1", "version2"])
def late(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Late]:
    with HoldingProxy() as proxy:
        broker = OurBroker(tmp_path_factory.mktemp("broker"), settings={**SETTINGS, **proxy.settings})
        proxy.broker_port = broker.port
        with broker.running(), Admin(bootstrap_servers=proxy.address) as admin:
            if request.param == 1:
                first = FeatureUpdate(level=1, type=UpgradeType.SAFE_DOWNGRADE)
                admin.update_features({"transaction.version": first})
            assert admin.describe_features().finalized["transaction.version"].last == request.param
            yield Late(proxy.address, proxy)


Between = Callable[[], object]


def _nothing() -> None:
    pass


class Query:
    """A micro-batch of two tasks, each with a partition of the output; drivers write and commit it."""

    def __init__(self, late: Late, scope: str, **given: str) -> None:
        # No id may be a prefix of another, because the proxy searches requests for it.
        self.id = f"query-{next(_numbers)}-"
        self.scope = scope
        self._late = late
        with Admin(bootstrap_servers=late.address) as admin:
            admin.create_topic(self.id, partitions=TASKS)
        known = {
            "kafka.bootstrap.servers": late.address,
            "topic": self.id,
            "deliveryGuarantee": "exactly-once",
            "transactionScope": scope,
            "transactionalIdPrefix": self.id,
            **given,
        }
        self._options: SinkOptions = sink_options(Values(known), overwrite=False, directory="/")

    def hold_commits(self, count: int, *, skip: int = 0, response: bool = False) -> Hold:
        # With scope batch each task first commits a claim in its own transaction.
        skip += TASKS if self.scope == "batch" else 0
        naming = self.id.encode()
        return self._late.proxy.hold(ApiKey.END_TXN, naming=naming, skip=skip, count=count, response=response)

    def write(self, between: Between = _nothing) -> Callable[[], None]:
        """Run the tasks, calling `between` when the last has written some rows; return the commit."""
        if self.scope == "task":
            slots = [
                write_slot(self._options, self._rows(task, between), self.id, 0, task)
                for task in range(TASKS)
            ]
            return lambda: commit_slots(self._options, slots, 0)
        opened = open_batch(self._options, f"{self.id}-there")
        parts = [
            write_part(self._options, self._rows(task, between), opened, self.id, 0, task)
            for task in range(TASKS)
        ]
        return lambda: commit_parts(self._options, parts, 0)

    @staticmethod
    def _rows(task: int, between: Between) -> Iterator[pa.RecordBatch]:
        numbers = [number for number in range(ROWS) if number % TASKS == task]
        half = len(numbers) // 2
        yield _batch(numbers[:half], task)
        if task == TASKS - 1:
            between()
        yield _batch(numbers[half:], task)

    def seen(self, isolation: IsolationLevel = "read_committed") -> Counter[int]:
        found: Counter[int] = Counter()
        settings = {"isolation_level": isolation, "auto_offset_reset": "earliest"}
        with Consumer(
            bootstrap_servers=self._late.address, enable_partition_eof=True, **settings
        ) as consumer:
            left = set(consumer.assign_topic(self.id))
            while left:
                messages = consumer.batch(1000, timeout_ms=WAIT_S_MAX * 1000)
                assert messages, f"the ends of {left} are not reached"
                for message in messages:
                    if isinstance(message, EndOfPartition):
                        left.discard(message.tp)
                    else:
                        found[int(message.value or b"")] += 1
        return found

    def open_partitions(self) -> int:
        """Return the number of partitions with records of an open transaction."""
        wanted = {TopicPartition(self.id, task): int(OffsetSpec.LATEST) for task in range(TASKS)}
        with Admin(bootstrap_servers=self._late.address) as admin:
            stable = admin.list_offsets(wanted, isolation="read_committed")
            return sum(stable[tp] != end for tp, end in admin.list_offsets(wanted).items())

    def check(self, *, aborted: int) -> None:
        """Assert that every row is visible once, and this many only to read_uncommitted readers."""
        assert self.seen() == Counter(range(ROWS))
        assert self.seen("read_uncommitted").total() - ROWS == aborted


def _batch(numbers: list[int], partition: int) -> pa.RecordBatch:
    partitions = pa.array([partition] * len(numbers), pa.int32())
    return pa.record_batch({"value": [str(number) for number in numbers], "partition": partitions})


@pytest.fixture
def threads(late: Late) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool
        late.proxy.drop()


each_scope = pytest.mark.parametrize("scope", ["task", "batch"])


@each_scope
@pytest.mark.parametrize("moment", ["writing", "written", "committed"])
def test_a_late_commit_of_a_superseded_driver_is_rejected(
    late: Late, threads: ThreadPoolExecutor, scope: str, moment: str
) -> None:
    query = Query(late, scope)
    held = query.hold_commits(commits := TASKS if scope == "task" else 1)
    zombie = threads.submit(query.write())
    held.wait(commits)

    def arrive() -> None:
        held.release()
        with pytest.raises(FENCED):
            zombie.result(WAIT_S_MAX)

    commit = query.write(between=arrive if moment == "writing" else _nothing)
    if moment == "written":
        arrive()
    commit()
    if moment == "committed":
        arrive()

    query.check(aborted=ROWS)


@each_scope
def test_a_replay_finds_a_commit_that_arrived_before_it(
    late: Late, threads: ThreadPoolExecutor, scope: str
) -> None:
    query = Query(late, scope)
    held = query.hold_commits(commits := TASKS if scope == "task" else 1)
    first = threads.submit(query.write())
    held.wait(commits)
    assert query.open_partitions() == TASKS
    held.release()
    first.result(WAIT_S_MAX)

    query.write()()

    query.check(aborted=0)


def test_only_a_task_with_a_late_commit_is_written_again(late: Late, threads: ThreadPoolExecutor) -> None:
    query = Query(late, "task")
    # The first goes through.
    held = query.hold_commits(1, skip=1)
    zombie = threads.submit(query.write())
    held.wait()
    wait_until(lambda: query.open_partitions() == TASKS - 1, timeout_s=WAIT_S_MAX)

    commit = query.write()
    held.release()
    with pytest.raises(FENCED):
        zombie.result(WAIT_S_MAX)
    commit()

    query.check(aborted=ROWS // TASKS)


@each_scope
def test_a_commit_whose_response_is_lost_is_retried(
    late: Late, threads: ThreadPoolExecutor, scope: str
) -> None:
    query = Query(late, scope)
    held = query.hold_commits(1, response=True)
    driver = threads.submit(query.write())
    held.wait()
    held.drop()

    driver.result(WAIT_S_MAX)

    query.check(aborted=0)


@pytest.mark.scaled
@each_scope
def test_a_commit_that_races_with_the_timeout_succeeds_or_fails_as_a_whole(
    late: Late, threads: ThreadPoolExecutor, scope: str
) -> None:
    def race(number: int) -> bool:
        """Return whether the commit succeeded."""
        query = Query(late, scope, **{"kafka.transaction.timeout.ms": str(TIMEOUT_MS)})
        held = query.hold_commits(commits := TASKS if scope == "task" else 1)
        commit = query.write()
        written_at = time.monotonic()
        driver: Future[None] = racers.submit(commit)
        held.wait(commits)
        # From the first to the last: long before its time is over, and long after.
        later_s = TIMEOUT_MS / 1000 * 2 * number / (RACES - 1)
        time.sleep(max(0.0, written_at + later_s - time.monotonic()))
        held.release()
        try:
            driver.result(WAIT_S_MAX)
        except BarnabasError:
            wait_until(lambda: query.open_partitions() == 0, timeout_s=WAIT_S_MAX)
            # One of two tasks may be committed.
            aborted = ROWS - query.seen().total()
            assert aborted in ((0, ROWS // TASKS, ROWS) if scope == "task" else (0, ROWS))
            query.write()()
            query.check(aborted=aborted)
            return False
        query.check(aborted=0)
        return True

    with ThreadPoolExecutor(16) as racers:
        done = list(threads.map(race, range(RACES)))

    assert done[0], "a commit long before the time is over is done"
    assert not done[-1], "a commit long after the time is over is refused"
