"""df.write.format("barnabas") with a real Spark and broker: the records in the topic afterwards."""

from itertools import count

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.client.blocking import Admin, Consumer
from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.client.producer.key_hashes import murmur2_partition

PARTITIONS = 3
_numbers = count()
GUARANTEES = [
    {},
    {"deliveryGuarantee": "exactly-once"},
    {"deliveryGuarantee": "exactly-once", "transactionScope": "batch"},
]


@pytest.fixture
def topic(address: str) -> str:
    name = f"totals-{next(_numbers)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=PARTITIONS)
    return name


def everything(address: str, *topics: str, isolation: str = "read_committed") -> list[Message]:
    found: list[Message] = []
    settings = {"isolation_level": isolation, "auto_offset_reset": "earliest", "enable_partition_eof": True}
    with Consumer(bootstrap_servers=address, **settings) as consumer:
        left = set(consumer.assign_topic(*topics))
        for message in consumer:
            if not isinstance(message, EndOfPartition):
                found.append(message)
                continue
            left.discard(message.tp)
            if not left:
                return found
    raise AssertionError("it ends at the ends")


def write(frame: DataFrame, address: str, topic: str | None, **options: str) -> None:
    writer = frame.write.format("barnabas").mode("append").option("kafka.bootstrap.servers", address)
    if topic is not None:
        writer = writer.option("topic", topic)
    for name, value in options.items():
        writer = writer.option(name.replace("__", "."), value)
    writer.save()


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=["at-least-once", "task", "batch"])
def test_every_row_is_a_record_where_javas_clients_would_put_it(
    spark: SparkSession, address: str, topic: str, guarantee: dict[str, str]
) -> None:
    frame = spark.range(500).selectExpr(
        "cast(id as string) as key",
        "if(id % 10 = 0, null, concat('value ', id)) as value",
        "array(struct('number' as key, cast(cast(id as string) as binary) as value)) as headers",
    )
    write(frame.coalesce(1), address, topic, kafka__compression__type="zstd", **guarantee)

    found = everything(address, topic)

    assert sorted(int(each.key or b"") for each in found) == list(range(500))
    for each in found:
        number = int(each.key or b"")
        assert each.partition == murmur2_partition(each.key or b"", PARTITIONS)
        assert each.value == (None if number % 10 == 0 else b"value %d" % number)
        assert list(each.headers) == [("number", b"%d" % number)]


def test_columns_set_topic_and_partition(spark: SparkSession, address: str, topic: str) -> None:
    other = f"{topic}-other"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(other, partitions=PARTITIONS)
    frame = spark.range(300).selectExpr(
        f"if(id % 2 = 0, '{topic}', '{other}') as topic",
        "cast(id % 3 as int) as partition",
        "cast(cast(id as string) as binary) as value",
        "id as ignored",
    )
    write(frame, address, None, deliveryGuarantee="exactly-once")

    found = everything(address, topic, other)

    assert sorted(int(each.value or b"") for each in found) == list(range(300))
    for each in found:
        number = int(each.value or b"")
        assert (each.topic, each.partition) == (other if number % 2 else topic, number % 3)


def test_one_transaction_takes_the_rows_of_several_tasks(
    spark: SparkSession, address: str, topic: str
) -> None:
    frame = spark.range(600).selectExpr("cast(id % 3 as int) as partition", "cast(id as string) as value")
    exact = {"deliveryGuarantee": "exactly-once", "transactionScope": "batch"}

    write(frame.repartition(2, "partition"), address, topic, **exact)

    assert sorted(int(each.value or b"") for each in everything(address, topic)) == list(range(600))
    with pytest.raises(PySparkException, match="all rows of a partition must be in one task"):
        write(frame.repartition(2), address, topic, **exact)
    assert len(everything(address, topic)) == 600


@pytest.mark.parametrize("guarantee", GUARANTEES[1:], ids=["task", "batch"])
def test_rows_of_a_failed_query_are_invisible(
    spark: SparkSession, address: str, topic: str, guarantee: dict[str, str]
) -> None:
    rows = spark.range(2000, numPartitions=2)
    failing = rows.select(
        f.expr("cast(pmod(id, 2) as int) as partition"),
        f.expr("if(id = 1999, raise_error('a row that cannot be'), cast(id as string)) as value"),
    )

    with pytest.raises(PySparkException, match="a row that cannot be"):
        write(failing, address, topic, **guarantee)

    assert everything(address, topic) == []


@pytest.mark.parametrize(
    ("columns", "options", "why"),
    [
        ("id as value", {}, "column value has type bigint, expected string or binary"),
        ("'a' as text", {}, "column value is missing"),
        ("'a' as value, 1L as partition", {}, "column partition has type bigint, expected int"),
        ("'a' as value, 'x' as headers", {}, "column headers has type string"),
        ("'a' as value", {"topics": "orders"}, "topics: no such sink option; did you mean topic?"),
        ("'a' as value", {"kafka.lingerms": "5"}, "did you mean kafka.linger.ms?"),
        ("'a' as value", {"deliveryGuarantee": "twice"}, "is not one of at-least-once, exactly-once"),
        ("'a' as value", {"transactionScope": "batch"}, "it needs deliveryGuarantee=exactly-once"),
        ("'a' as value", {"kafka.transactional.id": "mine"}, "see transactionalIdPrefix"),
        ("'a' as value", {"kafka.value.serializer": "Avro"}, "keys and values are bytes"),
        ("'a' as value", {"kafka.sasl.mechanism": "PLAIN"}, "TLS and SASL are not supported yet"),
        ("'a' as value, 7 as partition", {}, "partition 7"),
    ],
)
def test_invalid_sink_input_is_rejected_with_the_reason(
    spark: SparkSession, address: str, topic: str, columns: str, options: dict[str, str], why: str
) -> None:
    with pytest.raises((AnalysisException, PySparkException)) as refused:
        write(spark.range(3).selectExpr(*columns.split(", ")), address, topic, **options)

    assert why in str(refused.value)
    assert everything(address, topic) == []


def test_a_row_without_a_topic_is_refused(spark: SparkSession, address: str, topic: str) -> None:
    frame = spark.range(3).selectExpr("'a' as value", f"if(id = 2, null, '{topic}') as topic")

    with pytest.raises(PySparkException, match="have no topic"):
        write(frame.coalesce(1), address, None)
    with pytest.raises(PySparkException, match="option topic: set it"):
        write(frame.select("value"), address, None)


def test_a_topic_is_not_overwritten(spark: SparkSession, address: str, topic: str) -> None:
    frame = spark.range(3).selectExpr("'a' as value")
    writer = frame.write.format("barnabas").option("kafka.bootstrap.servers", address).option("topic", topic)

    with pytest.raises((AnalysisException, PySparkException), match="not overwritten"):
        writer.mode("overwrite").save()
