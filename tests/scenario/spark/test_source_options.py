"""Options of the source that select records: the records read with each of them from a real broker.

TOPIC in an option is the test's topic; TOPIC-bills is another.
"""

from itertools import count

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Admin, Producer

SIZES = (20, 5)
FIRST_MS = 1_790_000_000_000
# Records with such old timestamps would be deleted by retention.
KEPT = {"retention.ms": "-1"}
_numbers = count()


@pytest.fixture(scope="module")
def orders(address: str) -> str:
    """Timestamps are the offset in seconds after the first. The first three of partition 0 are deleted."""
    name = f"chosen-{next(_numbers)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=len(SIZES), settings=KEPT)
        admin.create_topic(f"{name}-bills", partitions=1, settings=KEPT)
    with Producer(bootstrap_servers=address) as producer:
        for partition, size in enumerate(SIZES):
            for offset in range(size):
                producer.send(name, partition=partition, timestamp_ms=FIRST_MS + 1000 * offset)
        producer.send(f"{name}-bills", partition=0, timestamp_ms=FIRST_MS)
    with Admin(bootstrap_servers=address) as admin:
        admin.delete_records({TopicPartition(name, 0): 3})
        # Creates an internal topic.
        admin.alter_group_offsets("somebody", {TopicPartition(name, 0): 3})
    return name


def rows(spark: SparkSession, address: str, topic: str, options: dict[str, str]) -> list[int]:
    """Count rows per partition of the topic, and of the other topic."""
    given = {name: text.replace("TOPIC", topic) for name, text in options.items()}
    if not given.keys() & {"assign", "subscribePattern"}:
        given["subscribe"] = topic
    frame = spark.read.format("barnabas").option("kafka.bootstrap.servers", address).options(**given).load()
    found = [(row["topic"], row["partition"]) for row in frame.select("topic", "partition").collect()]
    return [found.count(one) for one in ((topic, 0), (topic, 1), (f"{topic}-bills", 0))]


def at(first: object, second: object) -> str:
    return f'{{"TOPIC":{{"0":{first},"1":{second}}}}}'


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"assign": '{"TOPIC":[1]}'}, [0, 5, 0]),
        # As in Spark's own source, a part of the name suffices.
        ({"subscribePattern": "TOPIC"}, [17, 5, 1]),
        ({"subscribePattern": "^TOPIC$"}, [17, 5, 0]),
        ({"subscribePattern": "^__.*"}, [0, 0, 0]),
        ({"startingOffsetsByTimestamp": at(FIRST_MS + 18_000, FIRST_MS + 1000)}, [2, 4, 0]),
        (
            {"startingTimestamp": str(FIRST_MS + 9000), "startingOffsetsByTimestampStrategy": "latest"},
            [11, 0, 0],
        ),
        ({"endingOffsetsByTimestamp": at(FIRST_MS + 5000, FIRST_MS + 99_000)}, [2, 5, 0]),
        ({"startingOffsets": at(0, 0), "failOnDataLoss": "false"}, [17, 5, 0]),
        ({"startingOffsets": at(30, 0), "endingOffsets": at(40, 1), "failOnDataLoss": "false"}, [0, 1, 0]),
    ],
    ids=str,
)
def test_the_selected_records_are_read(
    spark: SparkSession, address: str, orders: str, options: dict[str, str], expected: list[int]
) -> None:
    assert rows(spark, address, orders, options) == expected


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"startingOffsets": at(0, 0)}, "TOPIC-0 was read up to offset 0, but now begins at 3"),
        ({"startingTimestamp": str(FIRST_MS + 9000)}, "TOPIC-1 has no record at or after"),
        (
            {"startingTimestamp": str(FIRST_MS + 4000), "endingTimestamp": str(FIRST_MS + 2500)},
            "TOPIC-0 ends at 3, before it starts at 4",
        ),
        (
            {"startingOffsets": at(30, 0), "failOnDataLoss": "false"},
            "TOPIC-0 ends at 20, before it starts at 30",
        ),
    ],
    ids=str,
)
def test_an_unreadable_position_names_the_partition(
    spark: SparkSession, address: str, orders: str, options: dict[str, str], why: str
) -> None:
    with pytest.raises(PySparkException) as refused:
        rows(spark, address, orders, options)

    assert why.replace("TOPIC", orders) in str(refused.value)
