"""The connector on Apache Kafka itself: what it reads and promises does not depend on the broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Admin, Producer
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.spark.beside import OURS, THEIRS, batch_rows, options_of
from support.spark.copy import Copy, check_a_batch_that_comes_again, each_promise
from support.spark.planning import Topics, stream

SETTINGS = {
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
}
ROWS = 2_000


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = KafkaBroker(kafka_tools(), tmp_path_factory.mktemp("kafka"), settings=SETTINGS)
    broker.format()
    with broker.running() as where:
        yield where


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"minPartitions": "5"},
        {"kafka.isolation.level": "read_committed"},
        # An option of ours, and answers so small that it matters.
        {"fetchesInFlight": "3", "kafka.max.partition.fetch.bytes": "1000"},
    ],
    ids=str,
)
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_same_rows_are_read(spark: SparkSession, kafka: str, codec: str, given: dict[str, str]) -> None:
    topic = f"orders-{codec}-{len(given)}-{''.join(given)}"
    with (
        Admin(bootstrap_servers=kafka) as admin,
        Producer(bootstrap_servers=kafka, compression_type=codec) as producer,
    ):
        admin.create_topic(topic, partitions=2)
        for number in range(ROWS):
            headers = [("n", b"%d" % number)] if number % 3 else []
            key = None if number % 5 == 0 else b"%d" % (number % 7)
            producer.send(topic, b"%d" % number, key=key, partition=number % 2, headers=headers)
    options = options_of(kafka, topic, {"includeHeaders": "true", **given})

    ours, theirs = (batch_rows(spark, kind, options) for kind in (OURS, THEIRS))

    assert isinstance(ours, list), ours
    assert len(ours) == ROWS
    assert ours == theirs


@each_promise
def test_a_replayed_batch_respects_the_delivery_guarantee(
    spark: SparkSession, kafka: str, tmp_path: Path, options: dict[str, str], times: int
) -> None:
    check_a_batch_that_comes_again(Copy(spark, kafka, tmp_path, options), times)


def test_progress_is_committed_to_a_group(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    clicks = Copy(spark, kafka, tmp_path, {})
    clicks.send(30)
    clicks.run(**{"kafka.group.id": "copying"})
    clicks.send(10)
    clicks.run(**{"kafka.group.id": "copying"})

    with Admin(bootstrap_servers=kafka) as admin:
        found = admin.list_group_offsets("copying")
    assert {tp: one.offset for tp, one in found.items()} == {
        TopicPartition(clicks.source, partition): 20 for partition in (0, 1)
    }


def test_records_removed_by_retention_are_reported(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    clicks = Copy(spark, kafka, tmp_path, {})
    clicks.send(20)
    clicks.run()
    clicks.send(20)
    with Admin(bootstrap_servers=kafka) as admin:
        admin.delete_records({TopicPartition(clicks.source, 1): 15})

    with pytest.raises(StreamingQueryException, match=rf"{clicks.source}-1.*failOnDataLoss"):
        clicks.run()
    clicks.run(failOnDataLoss="false")

    # Partition 1 has the odd numbers: those at offsets 10 to 14 are lost.
    assert clicks.written() == sorted({*range(40)} - {21, 23, 25, 27, 29})


@pytest.mark.parametrize("kind", ["subscribe", "assign", "subscribePattern"])
def test_a_stream_continues_without_a_deleted_topic_until_it_is_recreated(kafka: str, kind: str) -> None:
    topics = Topics(kafka)
    topics.make("a", "b", records=5)
    with stream(kafka, **topics.choice(kind, "a", "b")) as query:
        assert len(query.trigger()) == 2
        topics.delete("a")
        topics.send("b", 3)
        assert query.trigger() == [(topics.name("b"), 0, 5, 8)]
        assert query.trigger() == []
        topics.make("a", records=9)

        assert query.trigger() == [(topics.name("a"), 0, 0, 9)]
