"""Checks the columns of a query and splits its rows by topic.

The columns are those of Spark's own sink: value, and optionally key, headers, partition and topic. Other
columns are ignored, as in Spark's sink.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from barnabas.base.errors import BarnabasError
from barnabas.spark.options.values import BadOption

_TEXT_OR_BYTES: Final = (StringType, BinaryType)
_RECORD: Final = ("value", "key", "headers", "partition")


class BadRow(BarnabasError):
    """A row that cannot be written as a record."""


def check_schema(schema: StructType, topic: str | None) -> None:
    """Raise BadOption if a required column is missing or a column has the wrong type."""
    types = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise BadOption("schema", f"column value is missing; the columns are {', '.join(types) or 'none'}")
    if topic is None and "topic" not in types:
        raise BadOption("topic", "set it, or add a column topic")
    for name in ("value", "key"):
        if name in types and not isinstance(types[name], _TEXT_OR_BYTES):
            raise BadOption(
                "schema", f"column {name} has type {_told(types[name])}, expected string or binary"
            )
    if topic is None and not isinstance(types["topic"], StringType):
        raise BadOption("schema", f"column topic has type {_told(types['topic'])}, expected string")
    if "partition" in types and not isinstance(types["partition"], IntegerType):
        raise BadOption("schema", f"column partition has type {_told(types['partition'])}, expected int")
    if "headers" in types and not _is_headers(types["headers"]):
        wanted = "array<struct<key:string,value:binary>>"
        raise BadOption("schema", f"column headers has type {_told(types['headers'])}, expected {wanted}")


def by_topic(rows: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each topic in their order. Raises BadRow if a row has no topic."""
    table = pa.Table.from_batches([rows])
    records = table.select([name for name in _RECORD if name in table.schema.names])
    if topic is not None:
        yield topic, records
        return
    topics = table["topic"]
    if topics.null_count > 0:
        raise BadRow(
            f"{topics.null_count} of {len(topics)} rows have no topic, and the option topic is not set"
        )
    names = pc.unique(topics).to_pylist()
    for name in names:
        yield name, records if len(names) == 1 else records.filter(pc.equal(topics, name))


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields: list[StructField] = kind.elementType.fields
    return [(one.name, type(one.dataType)) for one in fields] == [("key", StringType), ("value", BinaryType)]


def _told(kind: DataType) -> str:
    return kind.simpleString()
