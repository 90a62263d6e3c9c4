"""spark.read with every option, with Spark's own source and with ours: the same rows, or both refuse.

TOPIC in an option is the topic of the story, which has three partitions of 60, 25 and 3 records; TOPIC-bills
is another. Where ours does otherwise on purpose, a case of its own says so, and why.
"""

from itertools import count
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Admin, Producer
from support.spark_beside import (
    OURS,
    THEIRS,
    Options,
    Refused,
    batch_rows,
    frame_of,
    options_of,
)

SIZES = (60, 25, 3)
BILLS = 10
FIRST_MS = 1_790_000_000_000
# Else what is so old goes away.
KEPT = {"retention.ms": "-1"}
_numbers = count()


@pytest.fixture(scope="module")
def orders(address: str) -> str:
    """Offset o of partition p is o seconds and 10 * p ms after the first."""
    name = f"orders-{next(_numbers)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=len(SIZES), settings=KEPT)
        admin.create_topic(f"{name}-bills", partitions=1, settings=KEPT)
    with Producer(bootstrap_servers=address) as producer:
        for partition, size in enumerate(SIZES):
            for offset in range(size):
                _send_order(producer, name, partition, offset)
        for offset in range(BILLS):
            _send_order(producer, f"{name}-bills", 0, offset)
    # So that there is a topic of the cluster itself.
    with Admin(bootstrap_servers=address) as admin:
        admin.alter_group_offsets("somebody", {TopicPartition(name, 0): 1})
    return name


def _send_order(producer: Producer, topic: str, partition: int, offset: int) -> None:
    """Some with no key, no value or an empty one, no headers, a header twice, a header without a value."""
    producer.send(
        topic,
        None if offset % 10 == 9 else b"value %d" % offset if offset % 11 else b"",
        b"key %d" % offset if offset % 7 else None,
        partition=partition,
        timestamp_ms=FIRST_MS + 1000 * offset + 10 * partition,
        headers=[("a", b"%d" % offset), ("b", None), ("a", b"")] if offset % 3 else [],
    )


class Case(NamedTuple):
    """`rows` is how many there are, so that two that read nothing are not taken for two that agree."""

    name: str
    options: Options
    rows: int


def ms(seconds: float) -> str:
    return str(FIRST_MS + int(1000 * seconds))


def by_partition(*values: object) -> str:
    inner = ",".join(f'"{number}":{value}' for number, value in enumerate(values))
    return f'{{"TOPIC":{{{inner}}}}}'


CASES = [
    # Which topics and partitions
    Case("everything", {}, 88),
    Case("topics with spaces and twice", {"subscribe": " TOPIC , TOPIC-bills,,TOPIC"}, 98),
    Case("some partitions", {"assign": '{"TOPIC":[2,0]}'}, 63),
    Case("partitions of two topics", {"assign": '{"TOPIC":[1],"TOPIC-bills":[0]}'}, 35),
    Case("pattern of the whole name", {"subscribePattern": "^TOPIC$"}, 88),
    Case("pattern of several topics", {"subscribePattern": "TOPIC.*"}, 98),
    Case("pattern of a part of the name", {"subscribePattern": "TOPIC-b"}, 10),
    Case("pattern of two names", {"subscribePattern": "^(TOPIC|TOPIC-bills)$"}, 98),
    Case("pattern of no topic", {"subscribePattern": "no-topic-is-called-so"}, 0),
    Case("pattern of the cluster's own topics", {"subscribePattern": "^__.*"}, 0),
    # Where it starts
    Case("earliest", {"startingOffsets": " Earliest "}, 88),
    Case("offsets", {"startingOffsets": by_partition(50, -2, 2)}, 10 + 25 + 1),
    Case("offset of the end", {"startingOffsets": by_partition(60, 25, 3)}, 0),
    Case("time", {"startingTimestamp": ms(2)}, 58 + 23 + 1),
    Case("time between records", {"startingTimestamp": ms(1.005)}, 58 + 24 + 2),
    Case("time before all", {"startingTimestamp": "0"}, 88),
    Case("times", {"startingOffsetsByTimestamp": by_partition(ms(59), ms(20), ms(0))}, 1 + 5 + 3),
    Case(
        "time that is too late, from the end",
        {"startingTimestamp": ms(10), "startingOffsetsByTimestampStrategy": "Latest"},
        50 + 15,
    ),
    Case(
        "times that are too late, from the end",
        {
            "startingOffsetsByTimestamp": by_partition(ms(99), ms(99), ms(1)),
            "startingOffsetsByTimestampStrategy": "latest",
        },
        2,
    ),
    Case(
        "time that is not too late, with strategy error",
        {"startingTimestamp": ms(2), "startingOffsetsByTimestampStrategy": "error"},
        82,
    ),
    Case(
        "time over times over offsets",
        {
            "startingTimestamp": ms(2),
            "startingOffsetsByTimestamp": by_partition(ms(0), ms(0), ms(0)),
            "startingOffsets": "earliest",
        },
        82,
    ),
    Case(
        "times over offsets",
        {
            "startingOffsetsByTimestamp": by_partition(ms(59), ms(20), ms(0)),
            "startingOffsets": by_partition(0, 0, 0),
        },
        9,
    ),
    # Where it ends
    Case("latest", {"endingOffsets": "LATEST"}, 88),
    Case("ending offsets", {"endingOffsets": by_partition(10, -1, 0)}, 35),
    Case("ending time", {"endingTimestamp": ms(2)}, 2 + 2 + 2),
    Case("ending time that is too late", {"endingTimestamp": ms(30)}, 30 + 25 + 3),
    Case("ending times", {"endingOffsetsByTimestamp": by_partition(ms(1), ms(99), ms(0))}, 1 + 25),
    Case(
        "ending time over times over offsets",
        {
            "endingTimestamp": ms(2),
            "endingOffsetsByTimestamp": by_partition(ms(1), ms(99), ms(0)),
            "endingOffsets": "latest",
        },
        6,
    ),
    Case(
        "ending times over offsets",
        {
            "endingOffsetsByTimestamp": by_partition(ms(1), ms(99), ms(0)),
            "endingOffsets": by_partition(0, 0, 0),
        },
        26,
    ),
    # The strategy is of starting times alone.
    Case(
        "ending time that is too late, with strategy error",
        {"endingTimestamp": ms(99), "startingOffsetsByTimestampStrategy": "error"},
        88,
    ),
    Case(
        "from offsets to offsets",
        {"startingOffsets": by_partition(10, 0, -2), "endingOffsets": by_partition(20, 0, -1)},
        13,
    ),
    Case("from offsets to a time", {"startingOffsets": by_partition(1, 1, 1), "endingTimestamp": ms(2)}, 3),
    Case(
        "from a time to offsets",
        {"startingTimestamp": ms(2), "endingOffsets": by_partition(5, 5, -1)},
        3 + 3 + 1,
    ),
    Case("from a time to the same", {"startingTimestamp": ms(2), "endingTimestamp": ms(2)}, 0),
    # How it is shared
    Case("more tasks", {"minPartitions": "9"}, 88),
    Case("more tasks than records", {"minPartitions": "15", "subscribe": "TOPIC-bills"}, 10),
    Case("small tasks", {"maxRecordsPerPartition": "7"}, 88),
    Case("more small tasks", {"maxRecordsPerPartition": "30", "minPartitions": "8"}, 88),
    # What else can be said
    Case("headers", {"includeHeaders": "true"}, 88),
    Case("no headers", {"includeHeaders": "FALSE"}, 88),
    Case("prefix of groups", {"groupIdPrefix": "shop"}, 88),
    Case("group", {"kafka.group.id": "shop"}, 88),
    Case("both", {"kafka.group.id": "shop", "groupIdPrefix": "shop"}, 88),
    Case(
        "retries and patience",
        {
            "fetchOffset.numRetries": "5",
            "fetchOffset.retryIntervalMs": "7",
            "kafkaConsumer.pollTimeoutMs": "60000",
        },
        88,
    ),
    Case(
        "limits of streams",
        {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "2", "maxTriggerDelay": "1s"},
        88,
    ),
    Case("loss that is none", {"failOnDataLoss": "true"}, 88),
    Case("settings of the client", {"kafka.max.partition.fetch.bytes": "100", "kafka.client.id": "shop"}, 88),
    Case(
        "names in any case",
        {"SUBSCRIBE": "TOPIC", "STARTINGOFFSETS": by_partition(59, -2, -2), "includeheaders": "True"},
        1 + 25 + 3,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_the_same_rows_are_read(spark: SparkSession, address: str, orders: str, case: Case) -> None:
    options = options_of(address, orders, case.options)

    theirs = batch_rows(spark, THEIRS, options)
    ours = batch_rows(spark, OURS, options)

    assert not isinstance(theirs, Refused), theirs
    assert len(theirs) == case.rows
    assert ours == theirs


class NotTaken(NamedTuple):
    """`why` is in what ours says."""

    options: Options
    why: str


REFUSED = [
    NotTaken({"subscribe": "TOPIC", "assign": '{"TOPIC":[0]}'}, "exactly one of them"),
    NotTaken({"subscribe": "TOPIC", "subscribePattern": "TOPIC"}, "exactly one of them"),
    NotTaken({"subscribe": " , "}, "names no topic"),
    NotTaken({"subscribePattern": " "}, "is empty"),
    NotTaken({"subscribePattern": "TOPIC("}, "is no pattern"),
    NotTaken({"assign": "TOPIC"}, "is no JSON"),
    NotTaken({"assign": '{"TOPIC":0}'}, "not a list"),
    NotTaken({"subscribe": "TOPIC,nowhere"}, "nowhere"),
    NotTaken({"startingOffsets": "latest"}, "cannot start at latest"),
    NotTaken({"startingOffsets": by_partition(0, -1, 0)}, "TOPIC-1 cannot start at latest"),
    NotTaken({"startingOffsets": "newest"}, "'newest' is none of"),
    NotTaken({"startingOffsets": by_partition(0, 0)}, "TOPIC-2 is not in it"),
    NotTaken({"startingOffsets": by_partition(0, 0, 0, 0)}, "TOPIC-3 is not one of"),
    NotTaken({"startingOffsets": by_partition(0, '"x"', 0)}, "which is no offset"),
    NotTaken({"startingTimestamp": "yesterday"}, "is no whole number"),
    NotTaken({"startingTimestamp": ms(10)}, "TOPIC-2 has no record since"),
    NotTaken({"startingOffsetsByTimestamp": by_partition(ms(0), ms(0))}, "TOPIC-2 is not in it"),
    NotTaken(
        {"startingOffsetsByTimestamp": by_partition(ms(0), ms(0), ms(9))}, "TOPIC-2 has no record since"
    ),
    NotTaken({"startingOffsetsByTimestampStrategy": "earliest"}, "neither error nor latest"),
    NotTaken({"endingOffsets": "earliest"}, "is none of"),
    NotTaken({"endingOffsets": by_partition(1, -2, 1)}, "TOPIC-1 cannot end at its beginning"),
    NotTaken({"endingOffsets": by_partition(1, 1)}, "TOPIC-2 is not in it"),
    NotTaken({"endingTimestamp": "never"}, "is no whole number"),
    NotTaken({"endingOffsetsByTimestamp": by_partition(ms(0), ms(0))}, "TOPIC-2 is not in it"),
    NotTaken(
        {"startingOffsets": by_partition(5, 5, 3), "endingOffsets": by_partition(5, 4, 3)},
        "TOPIC-1 ends at 4, before it starts at 5",
    ),
    NotTaken(
        {
            "startingOffsetsByTimestamp": by_partition(ms(5), ms(5), ms(0)),
            "endingOffsetsByTimestamp": by_partition(ms(5), ms(4), ms(0)),
        },
        "before it starts",
    ),
    NotTaken({"startingTimestamp": ms(2), "endingTimestamp": ms(1)}, "before it starts"),
    NotTaken(
        {"startingOffsets": by_partition(9, 9, 1), "endingTimestamp": ms(5)}, "TOPIC-0 ends at 5, before"
    ),
    NotTaken(
        {"startingTimestamp": ms(2), "endingOffsets": by_partition(5, 1, -1)}, "TOPIC-1 ends at 1, before"
    ),
    NotTaken({"startingOffsets": by_partition(61, 0, 0)}, "TOPIC-0"),
    NotTaken({"startingOffsets": by_partition(61, 0, 0), "failOnDataLoss": "false"}, "TOPIC-0"),
    NotTaken({"endingOffsets": by_partition(61, 0, 0), "kafkaConsumer.pollTimeoutMs": "3000"}, "TOPIC-0"),
    NotTaken({"minPartitions": "0"}, "is not between"),
    NotTaken({"minPartitions": "many"}, "is no whole number"),
    NotTaken({"maxRecordsPerPartition": "0"}, "is not between"),
    NotTaken({"failOnDataLoss": "perhaps"}, "neither true nor false"),
    NotTaken({"includeHeaders": "perhaps"}, "neither true nor false"),
    NotTaken({"minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "2"}, "is more than maxOffsetsPerTrigger"),
    NotTaken({"fetchOffset.numRetries": "0"}, "is not between"),
    NotTaken({"kafka.auto.offset.reset": "earliest"}, "starts where startingOffsets says"),
    NotTaken({"kafka.key.deserializer": "Bytes"}, "keys and values are bytes"),
    NotTaken({"kafka.value.deserializer": "Bytes"}, "keys and values are bytes"),
    NotTaken({"kafka.enable.auto.commit": "true"}, "commits its own progress"),
    NotTaken({"kafka.interceptor.classes": "Spy"}, "interceptors"),
    NotTaken({"kafka.isolation.level": "read_everything"}, "isolation.level"),
    NotTaken({"kafka.bootstrap.servers": ""}, "bootstrap.servers"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: str(case.options))
def test_both_refuse(spark: SparkSession, address: str, orders: str, case: NotTaken) -> None:
    options = options_of(address, orders, case.options)

    theirs = batch_rows(spark, THEIRS, options)
    ours = batch_rows(spark, OURS, options)

    assert isinstance(theirs, Refused), f"{len(theirs)} rows"
    assert isinstance(ours, Refused), f"{len(ours)} rows"
    assert case.why.replace("TOPIC", orders) in ours.why


class Different(NamedTuple):
    """How many rows each reads, None if it refuses; `why` ours does otherwise."""

    name: str
    options: Options
    ours: int | None
    theirs: int | None
    why: str


ON_PURPOSE = [
    Different(
        "a misspelt option", {"startingOffset": "latest"}, None, 88, "it would be passed over in silence"
    ),
    Different("a setting nobody knows", {"kafka.fetch.maxbytes": "1"}, None, 88, "passed over in silence"),
    Different("a partition that is not there", {"assign": '{"TOPIC":[0,7]}'}, None, 60, "skipped in silence"),
    Different("a partition twice", {"assign": '{"TOPIC":[0,0]}'}, None, 60, "it is most likely a mistake"),
    Different("no partition", {"assign": "{}"}, None, 0, "it is most likely a mistake"),
    Different(
        "a committed group", {"startingOffsets": "group", "kafka.group.id": "s"}, 88, None, "ours only"
    ),
]


@pytest.mark.parametrize("case", ON_PURPOSE, ids=lambda case: case.name.replace(" ", "-"))
def test_ours_differs_where_it_means_to(
    spark: SparkSession, address: str, orders: str, case: Different
) -> None:
    options = options_of(address, orders, case.options)

    found = {kind: batch_rows(spark, kind, options) for kind in (OURS, THEIRS)}

    counts = {kind: None if isinstance(one, Refused) else len(one) for kind, one in found.items()}
    assert counts == {OURS: case.ours, THEIRS: case.theirs}, (case.why, found)


def test_a_topic_of_the_cluster_is_read_by_ours_if_it_is_named(
    spark: SparkSession, address: str, orders: str
) -> None:
    """Spark's own leaves it out, without a word."""
    options = options_of(address, orders, {"subscribe": "__consumer_offsets"})

    theirs, ours = batch_rows(spark, THEIRS, options), batch_rows(spark, OURS, options)

    assert theirs == []
    assert not isinstance(ours, Refused)
    assert len(ours) > 0


ALL_OFFSETS = {"startingOffsets": by_partition(0, 0, 0), "endingOffsets": by_partition(*SIZES)}


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({}, 3),
        ({"minPartitions": "2"}, 3),
        ({"minPartitions": "9"}, 9),
        ({"minPartitions": "5", **ALL_OFFSETS}, 5),
        ({"minPartitions": "40"}, 40),
        ({"maxRecordsPerPartition": "20", **ALL_OFFSETS}, 6),
        ({"maxRecordsPerPartition": "30", "minPartitions": "8", **ALL_OFFSETS}, 7),
        ({"maxRecordsPerPartition": "1000", **ALL_OFFSETS}, 3),
    ],
    ids=str,
)
def test_the_work_is_cut_into_as_many_tasks(
    spark: SparkSession, address: str, orders: str, options: dict[str, str], tasks: int
) -> None:
    given = options_of(address, orders, options)

    theirs, ours = (frame_of(spark, kind, given).rdd.getNumPartitions() for kind in (THEIRS, OURS))

    assert (ours, theirs) == (tasks, tasks)


def test_small_tasks_are_made_without_offsets_too(spark: SparkSession, address: str, orders: str) -> None:
    """Spark's own looks at sizes before it knows where earliest and latest are, and leaves all as it is."""
    given = options_of(address, orders, {"maxRecordsPerPartition": "20"})

    assert frame_of(spark, THEIRS, given).rdd.getNumPartitions() == 3
    assert frame_of(spark, OURS, given).rdd.getNumPartitions() == 6


def test_the_columns_are_the_same(spark: SparkSession, address: str, orders: str) -> None:
    for options in ({}, {"includeHeaders": "true"}):
        given = options_of(address, orders, options)

        assert frame_of(spark, OURS, given).schema == frame_of(spark, THEIRS, given).schema
