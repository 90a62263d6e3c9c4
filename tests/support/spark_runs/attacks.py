"""Attacks on exactly-once queries, with our broker or Apache Kafka.

The proxy in front of the broker ensures that each attack starts with open transactions. Afterwards the test's
Spark runs the query to its end. Queries of both scopes are attacked at once.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from support.spark_runs.attacked import BATCH, PARTITIONS, SCOPES, TASK, AttackedQuery, failure
from support.spark_runs.process import COMMITTER, TASK_WORKER, DriverProcess, kill_workers_below
from support.wire.holding_proxy import WAIT_S_MAX, Hold, HoldingProxy

SETTINGS: Final = {
    "transaction.state.log.num.partitions": 2,
    "offsets.topic.num.partitions": 2,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}
# A micro-batch that takes longer fails: the limit is long enough for a busy machine.
TIMEOUT_MS: Final = 15_000
# Two values of the column that two shuffle partitions share out.
ONE_EACH: Final = "partition + 1"
ADAPTIVE: Final = "spark.sql.adaptive.streaming.stateless.enabled"
Kill: TypeAlias = Callable[[DriverProcess], object]
_numbers = count()


class AnyBroker(Protocol):
    port: int

    def start(self) -> None: ...
    def kill(self) -> None: ...


@dataclass
class Scene:
    """A broker behind a proxy, the Spark of the test, and a driver process beside it while one is needed."""

    spark: SparkSession
    broker: AnyBroker
    proxy: HoldingProxy
    directory: Path
    _drivers: list[DriverProcess] = field(default_factory=list)

    def query(self, options: dict[str, str], **how: Any) -> AttackedQuery:
        return AttackedQuery(self.proxy.address, self.directory, options, **how)

    def both_scopes(self) -> list[AttackedQuery]:
        return [self.query(TASK), self.query(BATCH)]

    @property
    def driver(self) -> DriverProcess:
        """The last driver, or a new one if it is dead."""
        if not self._drivers or not self._drivers[-1].is_alive:
            self._drivers.append(DriverProcess(self.directory / f"driver-{next(_numbers)}.txt"))
        return self._drivers[-1]

    def forget(self) -> None:
        """Drop held requests, so that surviving drivers do not wait for them."""
        self.proxy.drop()

    def end(self) -> None:
        for driver in self._drivers:
            driver.end()


@contextmanager
def scene(spark: SparkSession, broker: AnyBroker, proxy: HoldingProxy, directory: Path) -> Iterator[Scene]:
    """Run the broker in the block, and kill it at the end."""
    proxy.broker_port = broker.port
    made = Scene(spark, broker, proxy, directory)
    broker.start()
    try:
        yield made
    finally:
        made.end()
        broker.kill()


def start_in(driver: DriverProcess, queries: Sequence[AttackedQuery]) -> None:
    for query in queries:
        driver.start(query.orders)


def held_open(driver: DriverProcess, proxy: HoldingProxy, queries: Sequence[AttackedQuery]) -> list[Hold]:
    """Run the queries until the commits of the second micro-batch are held: all rows are written and open."""
    holds = [query.hold_commits(proxy) for query in queries]
    start_in(driver, queries)
    for query, hold in zip(queries, holds, strict=True):
        hold.wait(query.commits)
        query.wait_for_open_rows()
    return holds


@contextmanager
def successors_held_open(on: Scene, queries: Sequence[AttackedQuery]) -> Iterator[None]:
    """The Spark of the test has written the second micro-batch again, and commits it after the block."""
    # The first to be committed from now on is the one that comes again.
    holds = [query.hold_commits(on.proxy, batches=0) for query in queries]
    running = [query.start(on.spark) for query in queries]
    for query, hold in zip(queries, holds, strict=True):
        hold.wait(query.commits)
    yield
    for query, hold, run in zip(queries, holds, running, strict=True):
        hold.release()
        assert run.awaitTermination(int(WAIT_S_MAX)), run.status
        query.check()


def two_live_drivers(on: Scene) -> None:
    """A second driver takes over; the first continues after the second has written but not committed."""
    queries = on.both_scopes()
    zombies = held_open(on.driver, on.proxy, queries)
    with successors_held_open(on, queries):
        for query, zombie in zip(queries, zombies, strict=True):
            zombie.release()
            told = on.driver.wait_for(f"failed {query.orders['name']}")
            assert "fenced" in told.lower(), told
            query.wait_for_open_rows()


def killed_between_two_commits(on: Scene, kill: Kill) -> None:
    """The driver dies after committing one of two tasks, or nothing of a whole micro-batch."""
    queries = on.both_scopes()
    holds = [query.hold_commits(on.proxy, 1, skip=query.commits - 1) for query in queries]
    driver = on.driver
    start_in(driver, queries)
    for query, hold in zip(queries, holds, strict=True):
        hold.wait()
        query.wait_for_open_rows(1 if query.commits > 1 else PARTITIONS)
    kill(driver)
    # One whose connection breaks would ask again, and commit.
    driver.wait_for_orphans()
    on.forget()
    for query in queries:
        query.finish(on.spark)
        query.check()


def killed_and_heard_of_later(on: Scene, kill: Kill) -> None:
    """A dead driver's requests arrive after its successor has written but not committed."""
    queries = on.both_scopes()
    driver = on.driver
    dead = held_open(driver, on.proxy, queries)
    kill(driver)
    with successors_held_open(on, queries):
        for query, late in zip(queries, dead, strict=True):
            late.release()
            query.wait_for_open_rows()


def workers_killed(on: Scene) -> None:
    """While they wait for the response to what they have written."""
    queries = on.both_scopes()
    holds = [query.hold_rows(on.proxy) for query in queries]
    driver = on.driver
    start_in(driver, queries)
    for query, hold in zip(queries, holds, strict=True):
        hold.wait()
        query.wait_for_open_rows(1)
    assert driver.kill_workers(TASK_WORKER) >= len(queries)
    on.forget()
    by_task, by_batch = queries
    # A task is tried again in its own transaction; in that of the whole micro-batch it cannot be.
    driver.wait_for(f"ended {by_task.orders['name']}")
    by_task.check()
    told = driver.wait_for(f"failed {by_batch.orders['name']}")
    assert "another attempt" in told, told
    by_batch.finish(on.spark)
    by_batch.check()


def broker_killed(on: Scene) -> None:
    """While commits are on their way to it: the same driver asks again when it is back."""
    queries = on.both_scopes()
    holds = held_open(on.driver, on.proxy, queries)
    on.broker.kill()
    on.broker.start()
    for hold in holds:
        hold.drop()
    for query in queries:
        query.wait_for_open_rows()
    for query in queries:
        on.driver.wait_for(f"ended {query.orders['name']}")
        # Nothing was written twice: the transactions are still there.
        query.check(aborted=False)


def all_killed(on: Scene) -> None:
    """The driver with all its processes, and the broker."""
    queries = on.both_scopes()
    driver = on.driver
    held_open(driver, on.proxy, queries)
    on.broker.kill()
    driver.end()
    driver.wait_for_orphans()
    on.forget()
    on.broker.start()
    for query in queries:
        query.wait_for_open_rows()
        query.finish(on.spark)
        query.check()


def two_queries_with_one_prefix(on: Scene, options: dict[str, str]) -> None:
    """One would commit while the other runs to its end; then the process that commits it is killed."""
    first = on.query(options)
    second = on.query(options, prefix=first.prefix)
    hold = first.hold_commits(on.proxy)
    query = first.start(on.spark)
    hold.wait(first.commits)
    first.wait_for_open_rows()
    second.finish(on.spark)
    second.check(aborted=False)
    first.wait_for_open_rows()
    assert kill_workers_below(COMMITTER) > 0
    failure(query)
    on.forget()
    first.finish(on.spark)
    first.check()


def commits_after_the_timeout(on: Scene) -> None:
    """The coordinator aborts while the commits are on their way."""
    queries = [
        on.query({**options, "kafka.transaction.timeout.ms": str(TIMEOUT_MS)}) for options in SCOPES.values()
    ]
    holds = [query.hold_commits(on.proxy) for query in queries]
    running = [query.start(on.spark) for query in queries]
    for query, hold, run in zip(queries, holds, running, strict=True):
        hold.wait(query.commits)
        query.wait_for_stable_end()
        hold.release()
        assert "longer than kafka.transaction.timeout.ms" in failure(run)
        query.finish(on.spark)
        query.check()


def tasks_changed(on: Scene, options: dict[str, str]) -> str | None:
    """Spark plans a micro-batch with fewer tasks than before it died: why it fails then, if it does."""
    query = on.query(options, shuffle_by=ONE_EACH)
    on.spark.conf.set(ADAPTIVE, "false")
    try:
        hold = query.hold_commits(on.proxy, 1, skip=query.commits - 1)
        run = query.start(on.spark)
        hold.wait()
        query.wait_for_open_rows(1)
        assert kill_workers_below(COMMITTER) > 0
        failure(run)
        on.forget()
        on.spark.conf.set(ADAPTIVE, "true")
        again = query.start(on.spark)
        try:
            assert again.awaitTermination(int(WAIT_S_MAX)), again.status
            refused = None
        except StreamingQueryException as error:
            refused = str(error)
            on.spark.conf.set(ADAPTIVE, "false")
            query.finish(on.spark)
        query.check()
        return refused
    finally:
        on.spark.conf.unset(ADAPTIVE)
