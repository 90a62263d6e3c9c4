"""spark-sql-kafka on Apache Kafka answers as the recording says that our source is compared with.

BARNABAS_WRITE_ANSWERS=1 writes the recording anew (`make answers`).
"""

import os
from collections.abc import Iterator, Mapping

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from barnabas.client.blocking import Admin
from differential.spark.answers import Recording, contents_of, load, save
from differential.spark.cases import CASES
from differential.spark.sink_cases import SINK_CASES, TOPIC, SinkCase, load_sink, save_sink
from differential.spark.through_spark import answer_through, refusal, rows_through
from differential.spark.topics import BILLS, BROKER_SETTINGS, TOPICS, topics
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.spark.beside import OURS, THEIRS, frame_of, options_of

SETTINGS = {
    **BROKER_SETTINGS,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = KafkaBroker(kafka_tools(), tmp_path_factory.mktemp("kafka"), settings=SETTINGS)
    broker.format()
    with broker.running() as address, topics(address):
        yield address


@pytest.mark.long
def test_sparks_own_source_answers_as_recorded(spark: SparkSession, kafka: str) -> None:
    everything = {
        "kafka.bootstrap.servers": kafka,
        "subscribe": ",".join(TOPICS),
        "includeHeaders": "true",
    }
    contents = contents_of(rows_through(spark, THEIRS, everything))
    # The broker's own, of which nothing is compared but how much of it is read.
    answers = {one.name: answer_through(spark, THEIRS, one, kafka, contents) for one in CASES}

    if os.environ.get("BARNABAS_WRITE_ANSWERS"):
        save(Recording(contents, answers))
    recorded = load()

    assert recorded.contents == contents
    found = {name: (recorded.answers.get(name), answer) for name, answer in answers.items()}
    different = [
        f"{name}: recorded {before}, found {answer}"
        for name, (before, answer) in found.items()
        if before is None or (before.outcome(), before.refused) != (answer.outcome(), answer.refused)
    ]
    assert not different, "\n".join(different)


def test_the_columns_are_the_same(spark: SparkSession, kafka: str) -> None:
    for options in ({}, {"includeHeaders": "true"}):
        given = options_of(kafka, "orders", options)

        assert frame_of(spark, OURS, given).schema == frame_of(spark, THEIRS, given).schema


def test_only_ours_takes_a_schema_of_the_user(spark: SparkSession, kafka: str) -> None:
    given = options_of(kafka, "orders-bills", {})

    def count(kind: str) -> int:
        return spark.read.format(kind).options(**given).schema("offset LONG").load().count()

    assert count(OURS) == BILLS
    with pytest.raises(AnalysisException, match="user-specified schema"):
        count(THEIRS)


def test_sparks_own_sink_answers_as_recorded(spark: SparkSession, kafka: str) -> None:
    with Admin(bootstrap_servers=kafka) as admin:
        admin.create_topic(TOPIC, partitions=1)
    answers = {one.name: _refusal_of_sink(spark, one, kafka) for one in SINK_CASES}

    if os.environ.get("BARNABAS_WRITE_ANSWERS"):
        save_sink(answers)

    assert _classes(load_sink()) == _classes(answers)


def _refusal_of_sink(spark: SparkSession, case: SinkCase, address: str) -> str | None:
    writer = spark.range(1).selectExpr(*case.sql()).write.format(THEIRS).mode("append")
    try:
        writer.options(**case.given(address)).save()
    except (PySparkException, Py4JError) as error:
        return str(refusal(error))
    return None


def _classes(answers: Mapping[str, str | None]) -> dict[str, str | None]:
    """Messages may name ports and offsets."""
    return {name: why and why.partition(":")[0] for name, why in answers.items()}
