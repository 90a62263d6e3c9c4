"""A job from topic to topic, disturbed: what was killed, and what is in the output in the end."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.records import OffsetSpec
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.consumer.message import EndOfPartition
from support.process.our_broker import OurBroker
from support.spark_runs.process import JobProcess

RECORDS: Final = 400_000
PARTITIONS: Final = 2
SETTINGS: Final = {"transaction.state.log.num.partitions": 2, "offsets.topic.num.partitions": 2}
# Small ones while it is disturbed, so that there are many; large ones to end with.
LIMIT, LAST_LIMIT = "500", "100000"
END_TIMEOUT_S: Final = 180
# However slow the machine is.
BLOWS_LEAST: Final = 3
# Longer than the other driver needs to fail, start again and plan the same micro-batch.
PAUSE_S_MAX: Final = 20.0
FENCED_LEAST: Final = 1


@dataclass
class SparkRun:
    """`doubled` and `missing` are numbers of records."""

    seed: int
    blows: Counter[str] = field(default_factory=Counter)
    fenced: int = 0
    batches: int = 0
    doubled: int = 0
    missing: int = 0
    aborted: int = 0

    def story(self) -> str:
        return (
            f"seed={self.seed} blows={dict(self.blows)} fenced={self.fenced} batches={self.batches} "
            f"aborted={self.aborted}"
        )


def seed() -> int:
    return int(os.environ.get("BARNABAS_SEED") or time.time_ns() % 1_000_000)


def disturbed(directory: Path, options: dict[str, str], seconds: float) -> SparkRun:
    """The job is run, disturbed for so long, then left alone until nothing is left; and looked at."""
    with _running(directory, options) as (run, broker, jobs, start):
        rng, end = Random(run.seed), time.monotonic() + seconds
        while time.monotonic() < end or run.blows.total() < BLOWS_LEAST:
            jobs[-1].wait_for_progress()
            time.sleep(rng.uniform(0, 1.5))
            # A driver takes long to come back: the others are hit more often meanwhile.
            match rng.choice(["driver", "worker", "worker", "worker", "broker", "broker"]):
                case "driver":
                    jobs[-1].kill_driver()
                    start()
                    run.blows["driver"] += 1
                case "worker":
                    run.blows["worker"] += jobs[-1].kill_worker(rng)
                case _:
                    broker.kill()
                    time.sleep(rng.uniform(0, 1))
                    broker.start()
                    run.blows["broker"] += 1
        _finish(run, broker, jobs, start)
    return run


def rivalled(directory: Path, options: dict[str, str], seconds: float) -> SparkRun:
    """Two drivers run the job at once, and one of them is paused now and then; then one alone, to the end."""
    with _running(directory, options) as (run, broker, jobs, start):
        start()
        jobs[-1].wait_for_progress()
        rng, end = Random(run.seed), time.monotonic() + seconds
        while time.monotonic() < end or run.fenced < FENCED_LEAST:
            assert time.monotonic() < end + END_TIMEOUT_S, f"they do not fence each other: {run.story()}"
            time.sleep(rng.uniform(0, 2))
            # As a machine that is suspended: what it had open is the other one's by the time it goes on.
            paused = rng.choice(jobs)
            paused.pause()
            time.sleep(rng.uniform(0, PAUSE_S_MAX))
            paused.resume()
            run.blows["pause"] += 1
            run.fenced = jobs[-1].fenced
            for job in list(jobs):
                if job.process.poll() is not None:
                    job.end()
                    jobs.remove(job)
                    start()
        _finish(run, broker, jobs, start)
    return run


def _finish(run: SparkRun, broker: OurBroker, jobs: list[JobProcess], start: "Start") -> None:
    """Leave one job alone until nothing is left, and look at the output."""
    for job in jobs:
        job.end()
    last = start(limit=LAST_LIMIT, ends=True)
    assert last.process.wait(END_TIMEOUT_S) == 0, last.said()
    run.batches = last.batches
    _look(run, broker.address)
    broker.stop()


def killed_until_doubled(directory: Path, options: dict[str, str], blows_max: int) -> SparkRun:
    """The driver is killed as soon as something was written, until something is in the output twice."""
    with _running(directory, options) as (run, broker, jobs, start):
        while run.doubled == 0 and run.blows["driver"] < blows_max:
            jobs[-1].wait_for_progress()
            _wait_for_rows(broker.address)
            jobs[-1].kill_driver()
            run.blows["driver"] += 1
            # What was planned when it died is done again first.
            start().wait_for_progress()
            _look(run, broker.address)
    return run


def _wait_for_rows(address: str) -> None:
    tps = {TopicPartition("out", number): int(OffsetSpec.LATEST) for number in range(PARTITIONS)}
    with Admin(bootstrap_servers=address) as admin:
        before, end = admin.list_offsets(tps), time.monotonic() + END_TIMEOUT_S
        while admin.list_offsets(tps) == before:
            assert time.monotonic() < end, "nothing is written"
            time.sleep(0.005)


class Start(Protocol):
    """Starts the job, once more; with other orders if they are given."""

    def __call__(self, **changed: Any) -> JobProcess: ...


@contextmanager
def _running(
    directory: Path, options: dict[str, str]
) -> Iterator[tuple[SparkRun, OurBroker, list[JobProcess], Start]]:
    """The job runs; whatever was started has ended afterwards."""
    run = SparkRun(seed())
    broker = OurBroker(directory / "broker", settings=SETTINGS)
    broker.start()
    output = directory / "job.txt"
    jobs: list[JobProcess] = []
    orders: dict[str, Any] = {
        "address": broker.address,
        "source": "in",
        "target": "out",
        "checkpoint": str(directory / "checkpoint"),
        "limit": LIMIT,
        "options": options,
        "ends": False,
    }

    def start(**changed: Any) -> JobProcess:
        jobs.append(JobProcess({**orders, **changed}, output))
        return jobs[-1]

    try:
        fill(broker.address)
        start()
        yield run, broker, jobs, start
    finally:
        for job in jobs:
            job.end()
        broker.kill()


def fill(address: str) -> None:
    """Record n is the text n."""
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic("in", partitions=PARTITIONS)
        admin.create_topic("out", partitions=PARTITIONS)
    numbers = pa.array(range(RECORDS), pa.int32())
    table = pa.table(
        {"value": numbers.cast(pa.string()), "partition": pc.bit_wise_and(numbers, PARTITIONS - 1)}
    )
    with Producer(bootstrap_servers=address) as producer:
        for delivery in producer.send_table("in", table):
            delivery.result()


def _look(run: SparkRun, address: str) -> None:
    values = _values(address, "read_committed")
    different = pc.unique(values)
    assert pc.all(pc.less(different, RECORDS)).as_py(), "something is there that nobody wrote"
    run.doubled = len(values) - len(different)
    run.missing = RECORDS - len(different)
    run.aborted = len(_values(address, "read_uncommitted")) - len(values)


def _values(address: str, isolation: str) -> pa.ChunkedArray:
    """All numbers in the output that readers of this isolation level see."""
    found: list[pa.ChunkedArray] = []
    settings = {
        "isolation_level": isolation,
        "auto_offset_reset": "earliest",
        "enable_partition_eof": True,
    }
    with Consumer(bootstrap_servers=address, **settings) as consumer:
        left = set(consumer.assign_topic("out"))
        for table in consumer.arrow(timeout_ms=30_000):
            if isinstance(table, EndOfPartition):
                left.discard(table.tp)
                if not left:
                    break
            else:
                found.append(table["value"].cast(pa.string()).cast(pa.int32()))
    return pa.chunked_array([chunk for column in found for chunk in column.chunks], pa.int32())
