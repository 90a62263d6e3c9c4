"""spark.read.format("barnabas") with a real Spark and broker."""

from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from barnabas.client.blocking import Admin, Producer

PARTITIONS = 3
RECORDS = 3000
FIRST_MS = 1_790_000_000_000
# Records with such old timestamps would be deleted by retention.
KEPT = {"retention.ms": "-1"}
_numbers = count()


@pytest.fixture(scope="module")
def orders(address: str) -> str:
    """Record n is in partition n % 3, at offset n // 3, and n seconds after the first."""
    name = f"orders-{next(_numbers)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=PARTITIONS, settings=KEPT)
    with Producer(bootstrap_servers=address) as producer:
        for number in range(RECORDS):
            producer.send(
                name,
                b"value %d" % number if number % 10 else None,
                b"key %d" % number if number % 7 else None,
                partition=number % PARTITIONS,
                timestamp_ms=FIRST_MS + 1000 * number,
                headers=[("number", b"%d" % number)],
            )
    return name


def read(
    spark: SparkSession, address: str, topic: str, schema: str | None = None, **options: str
) -> DataFrame:
    reader = (
        spark.read.format("barnabas").option("kafka.bootstrap.servers", address).option("subscribe", topic)
    )
    if schema is not None:
        reader = reader.schema(schema)
    for name, value in options.items():
        reader = reader.option(name.replace("__", "."), value)
    return reader.load()


def numbers(frame: DataFrame) -> list[int]:
    """Return the numbers of the records in the rows."""
    rows = frame.select("partition", "offset").collect()
    return sorted(row["offset"] * PARTITIONS + row["partition"] for row in rows)


def test_every_record_is_read_once_with_sparks_own_columns(
    spark: SparkSession, address: str, orders: str
) -> None:
    frame = read(spark, address, orders, includeHeaders="true")

    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    found: dict[int, Any] = {row["offset"] * PARTITIONS + row["partition"]: row for row in frame.collect()}
    assert sorted(found) == list(range(RECORDS))
    for number, row in found.items():
        assert row["key"] == (b"key %d" % number if number % 7 else None)
        assert row["value"] == (b"value %d" % number if number % 10 else None)
        assert (row["topic"], row["timestampType"]) == (orders, 0)
        at = datetime.fromtimestamp(FIRST_MS / 1000 + number, tz=UTC)
        assert row["timestamp"].astimezone(UTC) == at
        assert [(one["key"], one["value"]) for one in row["headers"]] == [("number", b"%d" % number)]


def test_only_the_given_range_of_offsets_is_read(spark: SparkSession, address: str, orders: str) -> None:
    frame = read(
        spark,
        address,
        orders,
        startingOffsets=f'{{"{orders}":{{"0":10,"1":-2,"2":999}}}}',
        endingOffsets=f'{{"{orders}":{{"0":12,"1":1,"2":-1}}}}',
    )

    assert numbers(frame) == sorted([30, 33, 1, 999 * 3 + 2])


def test_only_the_given_range_of_timestamps_is_read(spark: SparkSession, address: str, orders: str) -> None:
    frame = read(
        spark, address, orders, startingTimestamp=str(FIRST_MS + 5000), endingTimestamp=str(FIRST_MS + 9000)
    )

    assert numbers(frame) == [5, 6, 7, 8]


def test_partitions_are_split_into_tasks_as_asked(spark: SparkSession, address: str, orders: str) -> None:
    assert read(spark, address, orders).rdd.getNumPartitions() == PARTITIONS
    more = read(spark, address, orders, minPartitions="9")
    assert more.rdd.getNumPartitions() == 9
    assert numbers(more) == list(range(RECORDS))
    assert read(spark, address, orders, maxRecordsPerPartition="400").rdd.getNumPartitions() == 9


def test_a_schema_of_the_user_builds_only_its_columns(spark: SparkSession, address: str, orders: str) -> None:
    frame = read(spark, address, orders, schema="offset long, value binary")

    assert frame.columns == ["offset", "value"]
    assert frame.where("value is null").count() == RECORDS // 10


def test_aborted_records_are_skipped_and_gaps_are_no_data_loss(spark: SparkSession, address: str) -> None:
    name = f"payments-{next(_numbers)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=1)
    with Producer(bootstrap_servers=address, transactional_id=name) as producer:
        producer.init_transactions()
        for number in range(20):
            producer.begin_transaction()
            producer.send(name, b"%d" % number).result()
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()

    committed = read(spark, address, name, kafka__isolation__level="read_committed")
    everything = read(spark, address, name)

    assert sorted(int(row["value"]) for row in committed.collect()) == list(range(0, 20, 2))
    assert everything.count() == 20


def test_filters_skip_records(spark: SparkSession, address: str, orders: str) -> None:
    pushing = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(pushing, "true")
    try:
        frame = read(spark, address, orders, filterPushdown="true")
        few = frame.where("partition = 1 and offset >= 10 and offset < 12")
        late = frame.where(f"timestamp >= timestamp_millis({FIRST_MS + 1000 * (RECORDS - 2)})")
        assert (numbers(few), few.rdd.getNumPartitions()) == ([31, 34], 1)
        # Two of the three partitions have records at or after that time.
        assert (numbers(late), late.rdd.getNumPartitions()) == ([RECORDS - 2, RECORDS - 1], 2)
        # Opt-in, because Spark 4.3.0 reuses the filtered plan when the same frame is read without the filter.
        plain = read(spark, address, orders)
        assert numbers(plain.where("partition = 1 and offset < 1")) == [1]
        assert numbers(plain) == list(range(RECORDS))
    finally:
        spark.conf.unset(pushing)


def test_a_topic_without_records_has_no_rows(spark: SparkSession, address: str) -> None:
    name = f"quiet-{next(_numbers)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=2)

    assert read(spark, address, name).count() == 0


def test_an_unknown_topic_is_named_and_not_created(spark: SparkSession, address: str) -> None:
    with pytest.raises(PySparkException, match="nowhere"):
        read(spark, address, "nowhere", fetchOffset__numRetries="1").count()

    with Admin(bootstrap_servers=address) as admin:
        assert "nowhere" not in admin.list_topics()


def test_an_unreachable_broker_ends_the_query(spark: SparkSession) -> None:
    options = {"kafka__default__api__timeout__ms": "500", "kafka__request__timeout__ms": "500"}
    with pytest.raises(PySparkException, match=r"127\.0\.0\.1:1"):
        read(spark, "127.0.0.1:1", "orders", fetchOffset__numRetries="1", **options).count()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        # Spark passes option names in lower case.
        (
            {"startingOffset": "earliest"},
            "startingoffset: no such source option; did you mean startingOffsets?",
        ),
        ({"startingOffsets": "latest"}, "cannot start at latest"),
        ({"kafka__sasl__mechanism": "PLAIN"}, "TLS and SASL are not supported yet"),
        ({"minPartitions": "none"}, "'none' is not an integer"),
        ({"startingOffsets": '{"others":{"0":0}}'}, "it must name every partition"),
    ],
)
def test_invalid_source_options_are_rejected_with_the_reason(
    spark: SparkSession, address: str, orders: str, options: dict[str, str], why: str
) -> None:
    with pytest.raises((AnalysisException, PySparkException)) as refused:
        read(spark, address, orders, **options).count()

    assert why in str(refused.value)
