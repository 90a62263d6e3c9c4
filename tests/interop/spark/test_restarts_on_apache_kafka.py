"""A query on Apache Kafka is killed with transactions open, and started again with another plan."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.spark.sink.replays import SlotsChanged
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.spark.sink_runs import ROWS, Query
from support.spark_runs.copying import Plan, check_restart, kill_when_open, new_query

SETTINGS = {
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
}
WITHIN_S = 10
BATCH = {"transactionScope": "batch"}
RESTARTS = {
    "fewer tasks": (Plan(3), Plan(2)),
    "more tasks": (Plan(2), Plan(3)),
    "scope batch": (Plan(3), Plan(2, BATCH)),
    "scope task": (Plan(2, BATCH), Plan(3)),
    "another prefix": (Plan(3), Plan(2, {"transactionalIdPrefix": "another"})),
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = KafkaBroker(kafka_tools(), tmp_path_factory.mktemp("kafka"), settings=SETTINGS)
    broker.format()
    with broker.running() as where:
        yield where


def test_readers_see_all_rows_soon_after_the_first_commit(
    spark: SparkSession, kafka: str, tmp_path: Path
) -> None:
    queries = {name: new_query(kafka, tmp_path, before, held=0) for name, (before, _) in RESTARTS.items()}
    ids = kill_when_open(kafka, list(queries.values()), tmp_path / "job.txt")
    assert len(ids) == sum(before.transactions for before, _ in RESTARTS.values())

    for name, (_, after) in RESTARTS.items():
        check_restart(spark, kafka, queries[name], after, within_s=WITHIN_S)


def test_a_batch_that_is_committed_in_part_is_completed_by_as_many_tasks(kafka: str) -> None:
    query = Query(kafka)
    first = query.run(3)
    first.commit_some(first.write(), [0])
    fewer, again = query.run(2), query.run(3)

    with pytest.raises(SlotsChanged, match="begun with 3 tasks"):
        fewer.commit(fewer.write())
    again.commit(again.write())
    fewer.commit(fewer.write(1), 1)
    assert (query.seen(), query.open_ids()) == (list(range(2 * ROWS)), [])
