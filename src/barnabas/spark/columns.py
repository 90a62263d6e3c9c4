"""The columns of the source, as Spark and as Arrow know them, and which of them a query has asked for.

They are those of Spark's own Kafka source. A user may give a schema of some of them, in any order: the others
are never built.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.base.ids import TopicPartition
from barnabas.spark.options.errors import BadOption

_HEADERS: Final = "headers"
_HEADER_TYPE: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
# Where each list ends, as Arrow keeps it.
_END_BYTES: Final = 4
_TYPES: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
}
_ARROW: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    # Spark counts microseconds.
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    _HEADERS: pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])),
}


def schema(*, headers: bool) -> StructType:
    """All columns. Headers are one only if they are asked for, as with Spark's own source."""
    types = {**_TYPES, _HEADERS: _HEADER_TYPE} if headers else _TYPES
    return StructType([StructField(name, kind) for name, kind in types.items()])


def asked_columns(wanted: StructType, *, headers: bool) -> tuple[str, ...]:
    """The names of the columns that a query builds; BadOption for one that is not there."""
    known = {**_TYPES, _HEADERS: _HEADER_TYPE} if headers else _TYPES
    for field in wanted.fields:
        if field.name not in known:
            why = (
                "it needs includeHeaders=true" if field.name == _HEADERS else f"there are {', '.join(known)}"
            )
            raise BadOption("schema", f"there is no column {field.name!r}: {why}")
        if field.dataType != known[field.name]:
            told, is_type = field.dataType.simpleString(), known[field.name].simpleString()
            raise BadOption("schema", f"column {field.name!r} is {is_type}, not {told}")
    return tuple(wanted.fieldNames())


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(name, _ARROW[name]) for name in columns])


def rows_of(tp: TopicPartition, table: pa.Table, columns: Sequence[str], found: pa.Schema) -> pa.Table:
    """What the client has read of one partition, with the columns that were asked for."""
    return pa.Table.from_arrays([_column(tp, table, name) for name in columns], schema=found)


def _column(tp: TopicPartition, table: pa.Table, name: str) -> "pa.ChunkedArray | pa.Array":
    kind = _ARROW[name]
    if name == "topic":
        return pa.repeat(pa.scalar(tp.topic, kind), table.num_rows)
    if name == "partition":
        return pa.repeat(pa.scalar(tp.partition, kind), table.num_rows)
    if name == "timestampType":
        return table["timestamp_type"].cast(kind)
    if name == "timestamp":
        return table["timestamp"].cast(pa.timestamp("us")).cast(kind)
    column = table[name]
    told = column if column.type == kind else column.cast(kind)
    # No headers are null, not an empty list, as with Spark's own source.
    return _null_if_empty(told) if name == _HEADERS else told


def _null_if_empty(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    """The lists themselves are not copied: they only get another map of which of them are there."""
    return pa.chunked_array([_with_nulls(one) for one in lists.chunks if len(one) > 0], lists.type)


def _with_nulls(lists: pa.Array) -> pa.Array:
    there = pc.greater(pc.list_value_length(lists), 0).buffers()[1]
    ends = lists.buffers()[1].slice(lists.offset * _END_BYTES)
    return pa.Array.from_buffers(lists.type, len(lists), [there, ends], children=[lists.values])
