"""The columns of the source as Spark and Arrow types, and the Arrow batches with the columns of a query.

The columns are those of Spark's own Kafka source. A user may give a schema with some of them, in any order;
the others are never built.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

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
from barnabas.spark.options.values import BadOption

Array: TypeAlias = "pa.Array[Any]"

# Limits of a batch that is passed to Spark: rows, and (approximately) bytes of keys or values.
_ROWS_MAX: Final = 50_000
_PIECE_BYTES: Final = 2 << 20
_VIEWS: Final = pa.binary_view()
_VIEW_BYTES: Final = 16
_HEADERS: Final = "headers"
_HEADER_TYPE: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
# Size of an entry in Arrow's offsets buffer of a list array.
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
    # Spark timestamps are in microseconds.
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    _HEADERS: pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])),
}


def schema(*, headers: bool) -> StructType:
    """All columns; the column headers only if `headers` is set, as in Spark's own source."""
    types = {**_TYPES, _HEADERS: _HEADER_TYPE} if headers else _TYPES
    return StructType([StructField(name, kind) for name, kind in types.items()])


def asked_columns(wanted: StructType, *, headers: bool) -> tuple[str, ...]:
    """Return the names of the columns to build. Raises BadOption for an unknown column or a wrong type."""
    known = {**_TYPES, _HEADERS: _HEADER_TYPE} if headers else _TYPES
    for field in wanted.fields:
        if field.name not in known:
            why = "set includeHeaders=true" if field.name == _HEADERS else f"known are {', '.join(known)}"
            raise BadOption("schema", f"unknown column {field.name!r}: {why}")
        if field.dataType != known[field.name]:
            told, is_type = field.dataType.simpleString(), known[field.name].simpleString()
            raise BadOption("schema", f"column {field.name!r} has type {is_type}, not {told}")
    return tuple(wanted.fieldNames())


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(name, _ARROW[name]) for name in columns])


def rows_of(
    tp: TopicPartition, batch: pa.RecordBatch, columns: Sequence[str], found: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the records of one partition as Arrow batches of limited size with the columns of the query.

    Keys and values may be views over a fetch response; only requested columns are copied, and only here.
    Batches are small because Python and Java copy each of them once more, and it should still be in a CPU
    cache by then.
    """
    arrays = [_column(tp, batch, name) for name in columns]
    step = min([_ROWS_MAX, *map(_rows_of_a_piece, arrays)])
    for at in range(0, batch.num_rows, step):
        yield pa.RecordBatch.from_arrays([_plain(one.slice(at, step)) for one in arrays], schema=found)


def _rows_of_a_piece(array: Array) -> int:
    if array.type != _VIEWS:
        return _ROWS_MAX
    _, views, *fetched = array.buffers()
    rows: int = views.size // _VIEW_BYTES
    size: int = sum(one.size for one in fetched)
    return max(1, rows * _PIECE_BYTES // max(1, size))


def _plain(array: Array) -> Array:
    return array.cast(pa.binary()) if array.type == _VIEWS else array


def _column(tp: TopicPartition, batch: pa.RecordBatch, name: str) -> Array:
    kind, rows = _ARROW[name], batch.num_rows
    if name == "topic":
        return pa.repeat(pa.scalar(tp.topic, kind), rows)
    if name == "partition":
        return pa.repeat(pa.scalar(tp.partition, kind), rows)
    if name == "timestampType":
        return batch["timestamp_type"].cast(kind)
    if name == "timestamp":
        return batch["timestamp"].cast(pa.timestamp("us")).cast(kind)
    column = batch[name]
    if name == _HEADERS:
        # A record without headers has null, not an empty list, as in Spark's own source.
        return _null_if_empty(column.cast(kind))
    return pa.nulls(rows, kind) if column.null_count == rows else column


def _null_if_empty(lists: Array) -> Array:
    """Replace only the validity bitmap of the array; the lists are not copied."""
    there = pc.greater(pc.list_value_length(lists), 0).buffers()[1]
    ends = lists.buffers()[1].slice(lists.offset * _END_BYTES)
    return pa.Array.from_buffers(lists.type, len(lists), [there, ends], children=[lists.values])
