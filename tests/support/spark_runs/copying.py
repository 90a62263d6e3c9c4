"""A query from topic to topic with a given number of tasks, and how it is killed and started again."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.client.admin.transactions import TransactionState
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.consumer.message import EndOfPartition
from support.spark_runs.process import JobProcess

ROWS: Final = 3_000
PARTITIONS: Final = 2
# Rows that are so large that no buffer between Java and Python holds those of a task.
_WIDTH: Final = 200
# For each query of a job.
OPEN_TIMEOUT_S: Final = 60
_END_TIMEOUT_S: Final = 60
_numbers = count()


@dataclass(frozen=True)
class Plan:
    """How a query is run: what may be changed from one run to the next."""

    tasks: int
    options: dict[str, str] = field(default_factory=dict)

    @property
    def scope(self) -> str:
        return self.options.get("transactionScope", "task")

    @property
    def transactions(self) -> int:
        return self.tasks if self.scope == "task" else 1


@dataclass(frozen=True)
class CopyQuery:
    """`held`: the first micro-batch that does not end in a job that is killed."""

    source: str
    target: str
    checkpoint: str
    plan: Plan
    held: int = 0


def new_query(address: str, directory: Path, plan: Plan, *, held: int) -> CopyQuery:
    """With rows to copy: the numbers from 0 on."""
    number = next(_numbers)
    query = CopyQuery(
        f"held-in-{number}", f"held-out-{number}", str(directory / f"held-{number}"), plan, held
    )
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(query.source, partitions=PARTITIONS)
        admin.create_topic(query.target, partitions=PARTITIONS)
    with Producer(bootstrap_servers=address) as producer:
        for row in range(ROWS):
            producer.send(query.source, b"%0*d" % (_WIDTH, row), partition=row % PARTITIONS)
    return query


Held = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def start_copy(
    spark: SparkSession, address: str, told: dict[str, Any], *, held: Held | None = None
) -> StreamingQuery:
    """`told` is a CopyQuery as JSON has it. It ends when everything is copied."""
    plan = Plan(**told["plan"])
    # Otherwise Spark may run fewer tasks than repartition() asks for.
    spark.conf.set("spark.sql.adaptive.streaming.stateless.enabled", "false")
    reader = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", told["source"])
        .option("startingOffsets", "earliest")
    )
    if told["held"]:
        reader = reader.option("maxOffsetsPerTrigger", str(ROWS // 2))
    rows = reader.load().selectExpr("value", "partition")
    # A partition of the output must have one writer there.
    rows = rows.repartition(plan.tasks, "value" if plan.scope == "task" else "partition")
    if held is not None:
        rows = rows.mapInArrow(held, rows.schema)
    return (
        rows.writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", address)
        .option("topic", told["target"])
        .option("checkpointLocation", told["checkpoint"])
        .option("deliveryGuarantee", "exactly-once")
        .options(**plan.options)
        .trigger(availableNow=True)
        .start()
    )


def kill_when_open(address: str, queries: list[CopyQuery], output: Path) -> list[str]:
    """Run the queries in a job of their own, and kill all of it when all their transactions are open.

    Return the transactional ids of these.
    """
    orders = {"address": address, "queries": [asdict(each) for each in queries]}
    job = JobProcess(orders, output, module="held_job")
    wanted = sum(each.plan.transactions for each in queries)
    try:
        end = time.monotonic() + OPEN_TIMEOUT_S * len(queries)
        while len(open_ids(address, queries)) < wanted:
            assert job.process.poll() is None, f"the job has ended:\n{job.said()}"
            assert time.monotonic() < end, f"{open_ids(address, queries)} of {wanted}:\n{job.said()}"
            time.sleep(0.1)
    finally:
        job.end()
    return open_ids(address, queries)


def open_ids(address: str, queries: list[CopyQuery]) -> list[str]:
    """The transactional ids that have a transaction with rows of these queries open."""
    targets = {each.target for each in queries}
    with Admin(bootstrap_servers=address) as admin:
        listed = admin.list_transactions(states=[TransactionState.ONGOING])
        described = admin.describe_transactions(listed)
    return [name for name, each in described.items() if targets & {tp.topic for tp in each.partitions}]


def run_to_first_commit(spark: SparkSession, address: str, query: CopyQuery, plan: Plan) -> StreamingQuery:
    """Start the query again with this plan, until the micro-batch that was killed is committed."""
    running = start_copy(spark, address, asdict(replace(query, plan=plan)))
    end = time.monotonic() + _END_TIMEOUT_S
    while not (Path(query.checkpoint) / "commits" / str(query.held)).exists():
        if not running.isActive:
            running.awaitTermination(0)
        assert time.monotonic() < end, "the micro-batch is not committed"
        time.sleep(0.02)
    return running


def committed_rows(address: str, topic: str) -> list[int]:
    """What a reader of committed records sees now."""
    found: list[int] = []
    settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=address, enable_partition_eof=True, **settings) as consumer:
        left = set(consumer.assign_topic(topic))
        for message in consumer:
            if isinstance(message, EndOfPartition):
                left.discard(message.tp)
                if not left:
                    break
            else:
                found.append(int(message.value or b""))
    return sorted(found)


def check_restart(
    spark: SparkSession, address: str, query: CopyQuery, plan: Plan, *, within_s: float
) -> None:
    """Readers of committed records see every row once, so soon after the first commit."""
    running = run_to_first_commit(spark, address, query, plan)
    end = time.monotonic() + within_s
    try:
        while (seen := committed_rows(address, query.target)) != list(range(ROWS)):
            late = f"{len(seen)} rows, {len(set(seen))} different, open: {open_ids(address, [query])}"
            assert time.monotonic() < end, late
            time.sleep(0.1)
        assert running.awaitTermination(_END_TIMEOUT_S)
    finally:
        running.stop()
    assert committed_rows(address, query.target) == list(range(ROWS))
    assert open_ids(address, [query]) == []
