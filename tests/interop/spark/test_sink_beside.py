"""df.write and df.writeStream with Spark's own sink and with ours: the same records in the same places."""

from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession

from barnabas.client.blocking import Admin, Consumer
from barnabas.client.consumer.message import EndOfPartition, Message
from support.spark.beside import OURS, THEIRS, Options, Refused, refused_or

PARTITIONS = 5
_numbers = count()
NOTHING: Options = MappingProxyType({})
HEADER_TYPE = "array<struct<key:string,value:binary>>"
# Partition, offset, key, value, headers.
Record: TypeAlias = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def new_topic(address: str, partitions: int = PARTITIONS) -> str:
    name = f"totals-{next(_numbers)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=partitions)
    return name


def records(address: str, topic: str) -> list[Record]:
    found: list[Message] = []
    settings = {"auto_offset_reset": "earliest", "enable_partition_eof": True}
    with Consumer(bootstrap_servers=address, **settings) as consumer:
        left = set(consumer.assign_topic(topic))
        for message in consumer:
            if not isinstance(message, EndOfPartition):
                found.append(message)
                continue
            left.discard(message.tp)
            if not left:
                break
    return sorted((one.partition, one.offset, one.key, one.value, list(one.headers)) for one in found)


def write(frame: DataFrame, kind: str, address: str, topic: str | None, options: Options) -> Refused | None:
    writer = frame.write.format(kind).mode(options.get("mode", "append"))
    given = {"kafka.bootstrap.servers": address, **({} if topic is None else {"topic": topic}), **options}
    given.pop("mode", None)
    found: Refused | None = refused_or(writer.options(**given).save)
    return found


class Case(NamedTuple):
    """`columns` of spark.range(rows), whose column is id."""

    name: str
    columns: list[str]
    rows: int = 200
    options: Options = NOTHING
    partitions: int = PARTITIONS


CASES = [
    Case("text", ["cast(id as string) as key", "concat('value ', id) as value"]),
    Case("bytes", ["cast(cast(id as string) as binary) as key", "unhex(hex(id)) as value"]),
    Case(
        "many keys",
        ["repeat(sha2(cast(id as string), 256), cast(id % 3 as int)) as key", "'' as value"],
        5000,
    ),
    Case("text of other alphabets", ["concat('clé-', id, '-ключ') as key", "'значение' as value"]),
    Case("no keys", ["cast(id as string) as value"], partitions=1),
    Case(
        "nulls",
        ["if(id % 3 = 0, null, cast(id as string)) as key", "if(id % 5 = 0, null, 'v') as value"],
        partitions=1,
    ),
    Case("only nulls", ["cast(null as binary) as key", "cast(null as string) as value"], partitions=1),
    Case(
        "headers",
        [
            "cast(id as string) as key",
            "'v' as value",
            f"""case id % 5 when 0 then null when 1 then cast(array() as {HEADER_TYPE})
             when 2 then cast(array(struct('a', cast('x' as binary))) as {HEADER_TYPE})
             when 3 then cast(array(struct('a', cast('x' as binary)), struct('a', cast('' as binary)))
                              as {HEADER_TYPE})
             else cast(array(struct('n', cast(null as binary))) as {HEADER_TYPE}) end as headers""",
        ],
    ),
    *(
        Case(
            f"headers with includeHeaders={text}",
            ["'v' as value", f"cast(array(struct('a', cast('x' as binary))) as {HEADER_TYPE}) as headers"],
            partitions=1,
            options={"includeHeaders": text},
        )
        for text in ("true", "false")
    ),
    Case(
        "partition",
        ["'k' as key", "cast(id as string) as value", f"cast(id % {PARTITIONS} as int) as partition"],
    ),
    Case(
        "partition of some",
        [
            "cast(id as string) as key",
            "cast(id as string) as value",
            "if(id % 2 = 0, 3, cast(null as int)) as partition",
        ],
    ),
    Case("columns beside", ["cast(id as string) as key", "'v' as value", "id as number", "true as flag"]),
    Case("in another order", ["'v' as value", "id as number", "cast(id as string) as key"]),
    Case(
        "topic of the option over the column",
        ["cast(id as string) as key", "'v' as value", "'nowhere' as topic"],
    ),
    Case("topic of the option over any column", ["cast(id as string) as key", "'v' as value", "id as topic"]),
    Case("no rows", ["cast(id as string) as key", "'v' as value"], 0),
    Case(
        "settings of the producer",
        ["cast(id as string) as key", "'v' as value"],
        options={"kafka.compression.type": "gzip", "kafka.acks": "1", "kafka.linger.ms": "5"},
    ),
    Case("names in any case", ["cast(id as string) as key", "'v' as value"], options={"TOPIC": "totals"}),
    Case("a large value", ["cast(id as string) as key", "repeat('v', 100000) as value"], 20),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_the_same_records_are_written(spark: SparkSession, address: str, case: Case) -> None:
    found = {}
    for kind in (THEIRS, OURS):
        topic = new_topic(address, case.partitions)
        # One task, so that the order is certain.
        frame = spark.range(case.rows).coalesce(1).selectExpr(*case.columns)
        options = {name: topic for name in case.options if name == "TOPIC"}
        assert write(frame, kind, address, None if options else topic, {**case.options, **options}) is None
        found[kind] = records(address, topic)

    assert len(found[THEIRS]) == case.rows
    assert found[OURS] == found[THEIRS]


def test_rows_say_their_topics(spark: SparkSession, address: str) -> None:
    found = {}
    for kind in (THEIRS, OURS):
        topics = [new_topic(address) for _ in range(3)]
        which = f"element_at(array({','.join(repr(topic) for topic in topics)}), cast(id % 3 as int) + 1)"
        frame = (
            spark.range(100)
            .coalesce(1)
            .selectExpr(f"{which} as topic", "cast(id as string) as key", "'v' as value")
        )
        assert write(frame, kind, address, None, {}) is None
        found[kind] = [records(address, topic) for topic in topics]

    assert sum(map(len, found[THEIRS])) == 100
    assert found[OURS] == found[THEIRS]


class NotTaken(NamedTuple):
    """`why` is in what ours says."""

    columns: list[str]
    why: str
    options: Options = NOTHING
    has_topic: bool = True


VALUE = ["'v' as value"]
REFUSED = [
    NotTaken(["'v' as text"], "column value is missing"),
    NotTaken(["'v' as Value"], "column value is missing"),
    NotTaken(["id as value"], "column value has type bigint"),
    NotTaken(["'v' as value", "1 as key"], "column key has type int"),
    NotTaken(["'v' as value", "1L as partition"], "column partition has type bigint"),
    NotTaken(["'v' as value", "'0' as partition"], "column partition has type string"),
    NotTaken(["'v' as value", "'x' as headers"], "column headers has type string"),
    NotTaken(["'v' as value", "map('a', 'x') as headers"], "column headers has type map"),
    NotTaken(
        ["'v' as value", "array(struct('a' as key, 'x' as value)) as headers"],
        "column headers has type array",
    ),
    NotTaken(
        ["'v' as value", "array(struct('a' as k, cast('x' as binary) as v)) as headers"],
        "column headers has type",
    ),
    NotTaken(
        [
            "'v' as value",
            "array(struct(cast(null as string) as key, cast('x' as binary) as value)) as headers",
        ],
        "",
    ),
    NotTaken(VALUE, "option topic: set it", has_topic=False),
    NotTaken(["'v' as value", "1 as topic"], "column topic has type int", has_topic=False),
    NotTaken(["'v' as value", "cast(null as string) as topic"], "have no topic", has_topic=False),
    NotTaken(
        ["'v' as value", "'nowhere' as topic"], "nowhere", {"kafka.max.block.ms": "1500"}, has_topic=False
    ),
    NotTaken(["'v' as value", "7 as partition"], "partition 7", {"kafka.max.block.ms": "1500"}),
    NotTaken(["'v' as value", "-1 as partition"], "partition -1", {"kafka.max.block.ms": "1500"}),
    NotTaken(VALUE, "topic", {"topic": "", "kafka.max.block.ms": "1500"}),
    NotTaken(["'v' as value", "'totals' as topic"], "topic", {"topic": " ", "kafka.max.block.ms": "1500"}),
    NotTaken(VALUE, "topic", {"topic": "no name?", "kafka.max.block.ms": "1500"}),
    NotTaken(VALUE, "keys and values are bytes", {"kafka.key.serializer": "Bytes"}),
    NotTaken(VALUE, "keys and values are bytes", {"kafka.value.serializer": "Bytes"}),
    NotTaken(VALUE, "acks", {"kafka.acks": "some"}),
    NotTaken(VALUE, "compression.type", {"kafka.compression.type": "zip"}),
    NotTaken(VALUE, "not overwritten", {"mode": "overwrite"}),
    NotTaken(VALUE, "", {"mode": "ignore"}),
    NotTaken(
        ["repeat('v', 3000000) as value"],
        "",
        {"kafka.max.request.size": "1000000", "kafka.max.block.ms": "1500"},
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.columns}-{dict(case.options)}")
def test_both_refuse(spark: SparkSession, address: str, case: NotTaken) -> None:
    found = {}
    for kind in (THEIRS, OURS):
        topic = new_topic(address)
        frame = spark.range(1).selectExpr(*case.columns)
        found[kind] = write(frame, kind, address, topic if case.has_topic else None, case.options)
        assert records(address, topic) == []

    assert isinstance(found[THEIRS], Refused)
    assert isinstance(found[OURS], Refused)
    assert case.why in found[OURS].why


class Different(NamedTuple):
    name: str
    options: Options
    takes: str
    why: str


ON_PURPOSE = [
    Different("a misspelt option", {"topics": "totals"}, THEIRS, "it would be passed over in silence"),
    Different("a setting nobody knows", {"kafka.lingerms": "5"}, THEIRS, "passed over in silence"),
    Different("headers perhaps", {"includeHeaders": "perhaps"}, THEIRS, "it is a mistake, used or not"),
    Different("the guarantee", {"deliveryGuarantee": "exactly-once"}, OURS + THEIRS, "theirs passes over it"),
    Different(
        "no mode", {"mode": "errorifexists"}, THEIRS, "Spark lets Python sources append or overwrite only"
    ),
]


@pytest.mark.parametrize("case", ON_PURPOSE, ids=lambda case: case.name.replace(" ", "-"))
def test_our_sink_differs_only_as_documented(spark: SparkSession, address: str, case: Different) -> None:
    frame = spark.range(1).selectExpr(*VALUE)

    found = {kind: write(frame, kind, address, new_topic(address), case.options) for kind in (THEIRS, OURS)}

    taken = {kind for kind, one in found.items() if one is None}
    assert taken == {kind for kind in (THEIRS, OURS) if kind in case.takes}, (case.why, found)


def test_only_spark_sql_kafka_accepts_other_names_of_header_fields(spark: SparkSession, address: str) -> None:
    """Ours names the type that it wants instead."""
    headers = "array(struct('a' as Key, cast('x' as binary) as VALUE)) as headers"
    frame = spark.range(1).selectExpr("'v' as value", headers)

    found = {kind: write(frame, kind, address, new_topic(address), NOTHING) for kind in (THEIRS, OURS)}

    assert found[THEIRS] is None
    assert isinstance(found[OURS], Refused)
    assert HEADER_TYPE in found[OURS].why


# Streams


def run_stream(
    spark: SparkSession, kind: str, address: str, source: str, target: str, directory: Path, **more: Any
) -> Refused | None:
    rows = (
        spark.readStream.format(THEIRS)
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "100")
        .load()
    )
    made = (
        rows.groupBy("key")
        .agg({"value": "count"})
        .selectExpr("key", "cast(`count(value)` as string) as value")
    )
    frame = (made if more.get("counted") else rows.select("key", "value")).coalesce(1)

    def to_the_end() -> None:
        query = (
            frame.writeStream.format(kind)
            .option("kafka.bootstrap.servers", address)
            .option("topic", target)
            .option("checkpointLocation", str(directory / kind))
            .outputMode(more.get("mode", "append"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(120), "it ends by itself"
        finally:
            query.stop()

    found: Refused | None = refused_or(to_the_end)
    return found


@pytest.fixture(scope="module")
def words(spark: SparkSession, address: str) -> str:
    topic = new_topic(address, 1)
    frame = (
        spark.range(250).coalesce(1).selectExpr("cast(id % 20 as string) as key", "concat('v', id) as value")
    )
    assert write(frame, THEIRS, address, topic, {}) is None
    return topic


@pytest.mark.parametrize(
    ("mode", "counted", "written"),
    [("append", False, 250), ("complete", True, 60)],
    ids=["append", "complete"],
)
def test_a_stream_writes_the_same_records(
    spark: SparkSession, address: str, words: str, tmp_path: Path, mode: str, counted: bool, written: int
) -> None:
    found = {}
    for kind in (THEIRS, OURS):
        target = new_topic(address)
        assert run_stream(spark, kind, address, words, target, tmp_path, mode=mode, counted=counted) is None
        found[kind] = sorted((p, k, v) for p, _, k, v, _ in records(address, target))

    assert len(found[THEIRS]) == written
    assert found[OURS] == found[THEIRS]


def test_only_theirs_writes_updates(spark: SparkSession, address: str, words: str, tmp_path: Path) -> None:
    """Spark does not let sinks that are written in Python take the output mode update."""
    found = {
        kind: run_stream(
            spark, kind, address, words, new_topic(address), tmp_path, mode="update", counted=True
        )
        for kind in (THEIRS, OURS)
    }

    assert found[THEIRS] is None
    assert isinstance(found[OURS], Refused)
