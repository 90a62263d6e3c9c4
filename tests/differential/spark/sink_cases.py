"""Options and columns of the sink: whether spark-sql-kafka writes a row with them is recorded.

A case writes one row to `totals`, whose column is `value`, unless it says otherwise.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from barnabas.base.errors import BarnabasError
from barnabas.spark.data_source import BarnabasDataSource
from differential.spark.answers import RECORDED

SINK_RECORDED: Final = RECORDED.with_name("sink.json")
TOPIC: Final = "totals"
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Column(NamedTuple):
    name: str
    sql: str
    kind: DataType


def _headers(key: str = "key", value: DataType | None = None) -> ArrayType:
    fields = [StructField(key, StringType(), False), StructField("value", value or BinaryType())]
    return ArrayType(StructType(fields), False)


VALUE: Final = Column("value", "'v'", StringType())
HEADERS: Final = Column("headers", "array(struct('a' as key, cast('x' as binary) as value))", _headers())


class SinkCase(NamedTuple):
    """`why` is in our message where we refuse it."""

    name: str
    options: Mapping[str, str] = NOTHING
    why: str = ""
    columns: tuple[Column, ...] = (VALUE,)
    has_topic: bool = True
    has_servers: bool = True

    def given(self, address: str) -> dict[str, str]:
        servers = {"kafka.bootstrap.servers": address} if self.has_servers else {}
        topic = {"topic": TOPIC} if self.has_topic else {}
        return {**servers, **topic, **self.options}

    def sql(self) -> list[str]:
        return [f"{one.sql} as {one.name}" for one in self.columns]

    def refusal(self, address: str) -> str | None:
        """Ours, as Spark asks before it runs a task."""
        schema = StructType([StructField(one.name, one.kind) for one in self.columns])
        try:
            BarnabasDataSource(self.given(address)).writer(schema, overwrite=False)
        except BarnabasError as error:
            return str(error)
        return None


def _with(*columns: Column) -> tuple[Column, ...]:
    return (VALUE, *columns)


SINK_CASES: Final = (
    # Topics
    SinkCase("topic"),
    SinkCase("topic with spaces around", {"topic": f" {TOPIC} "}),
    SinkCase("topic in capitals", {"TOPIC": TOPIC}, has_topic=False),
    SinkCase(
        "topic of a column", columns=_with(Column("topic", f"'{TOPIC}'", StringType())), has_topic=False
    ),
    SinkCase(
        "topic of the option over the column", columns=_with(Column("topic", "'nowhere'", StringType()))
    ),
    SinkCase("no topic", why="option topic: set it", has_topic=False),
    SinkCase("empty topic", {"topic": ""}, "topic: it is empty"),
    SinkCase(
        "topic that is a number",
        why="column topic has type int",
        columns=_with(Column("topic", "1", IntegerType())),
        has_topic=False,
    ),
    # Columns
    SinkCase("no value", why="column value is missing", columns=(Column("text", "'v'", StringType()),)),
    SinkCase(
        "value in capitals", why="column value is missing", columns=(Column("Value", "'v'", StringType()),)
    ),
    SinkCase("value of bytes", columns=(Column("value", "cast('v' as binary)", BinaryType()),)),
    SinkCase(
        "value that is a number",
        why="column value has type bigint",
        columns=(Column("value", "1L", LongType()),),
    ),
    SinkCase(
        "key that is a number",
        why="column key has type int",
        columns=_with(Column("key", "1", IntegerType())),
    ),
    SinkCase("partition", columns=_with(Column("partition", "0", IntegerType()))),
    SinkCase(
        "partition of 64 bits",
        why="column partition has type bigint",
        columns=_with(Column("partition", "0L", LongType())),
    ),
    SinkCase(
        "partition as text",
        why="column partition has type string",
        columns=_with(Column("partition", "'0'", StringType())),
    ),
    SinkCase("headers", columns=_with(HEADERS)),
    SinkCase(
        "headers as text",
        why="column headers has type string",
        columns=_with(Column("headers", "'x'", StringType())),
    ),
    SinkCase(
        "headers as a map",
        why="column headers has type map",
        columns=_with(Column("headers", "map('a', 'x')", MapType(StringType(), StringType()))),
    ),
    SinkCase(
        "headers of text",
        why="column headers has type array",
        columns=_with(
            Column("headers", "array(struct('a' as key, 'x' as value))", _headers(value=StringType()))
        ),
    ),
    SinkCase(
        "headers in capitals",
        why="column headers has type array",
        columns=_with(
            Column("headers", "array(struct('a' as KEY, cast('x' as binary) as value))", _headers(key="KEY"))
        ),
    ),
    SinkCase("other columns", columns=_with(Column("number", "1L", LongType()))),
    # Options
    SinkCase("includeHeaders", {"includeHeaders": "true"}, columns=_with(HEADERS)),
    SinkCase("includeHeaders=false", {"includeHeaders": "false"}, columns=_with(HEADERS)),
    SinkCase("includeHeaders without headers", {"includeHeaders": "true"}),
    SinkCase("includeHeaders=perhaps", {"includeHeaders": "perhaps"}, "neither true nor false"),
    SinkCase("misspelled option", {"topics": TOPIC}, "did you mean topic?"),
    SinkCase("option of the source", {"startingOffsets": "earliest"}, "no such sink option"),
    SinkCase("misspelled setting", {"kafka.lingerms": "5"}, "did you mean kafka.linger.ms?"),
    SinkCase(
        "setting of a consumer", {"kafka.isolation.level": "read_committed"}, "no such producer setting"
    ),
    SinkCase(
        "settings of the producer",
        {
            "kafka.compression.type": "gzip",
            "kafka.acks": "1",
            "kafka.linger.ms": "5",
            "kafka.batch.size": "0",
            "kafka.retries": "7",
            "kafka.client.id": "shop",
        },
    ),
    SinkCase("no idempotence", {"kafka.enable.idempotence": "false"}),
    SinkCase("acks of another kind", {"kafka.acks": "some"}, "kafka.acks"),
    SinkCase("codec of another kind", {"kafka.compression.type": "zip"}, "kafka.compression.type"),
    SinkCase("linger as a word", {"kafka.linger.ms": "soon"}, "kafka.linger.ms"),
    SinkCase("too many in flight", {"kafka.max.in.flight.requests.per.connection": "6"}, "at most 5"),
    SinkCase("too little time", {"kafka.delivery.timeout.ms": "1"}, "kafka.delivery.timeout.ms"),
    SinkCase(
        "idempotence without acks", {"kafka.enable.idempotence": "true", "kafka.acks": "1"}, "needs acks=all"
    ),
    SinkCase("key.serializer", {"kafka.key.serializer": "Bytes"}, "keys and values are bytes"),
    SinkCase("value.serializer", {"kafka.value.serializer": "Bytes"}, "keys and values are bytes"),
    SinkCase("transactional.id", {"kafka.transactional.id": "mine"}, "see transactionalIdPrefix"),
    SinkCase(
        "partitioner.class",
        {"kafka.partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"},
        "Java classes cannot be loaded",
    ),
    SinkCase("metric.reporters", {"kafka.metric.reporters": ""}, "metrics reporters are not supported"),
    SinkCase("no brokers", why="bootstrap.servers: it is required", has_servers=False),
    SinkCase("empty brokers", {"kafka.bootstrap.servers": ""}, "names no broker"),
)


def load_sink() -> dict[str, str | None]:
    """The class of the error and how its message begins; None where the row was written."""
    loaded: dict[str, Any] = json.loads(SINK_RECORDED.read_text())
    return loaded


def save_sink(answers: Mapping[str, str | None]) -> None:
    SINK_RECORDED.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")
