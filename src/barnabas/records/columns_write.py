"""Arrow columns as record batches.

encode_columns() is the way back of columns_read.py: a table with a value column, and if wanted key,
timestamp and headers, becomes batches that are ready to be produced. The framing is written by
column_pack.py and the bytes are moved by Arrow; no Python runs per record.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.base.errors import BarnabasError
from barnabas.records.column_pack import (
    Column,
    Framing,
    Stamp,
    frame_headers,
    frame_records,
    new_words,
    seal_batches,
    weave,
)
from barnabas.records.header import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Codec,
)

Array: TypeAlias = "pa.Array[Any]"

# What a producer puts in a batch before it starts another; a broker takes 1,048,588 bytes by default.
BATCH_BYTES: Final = 1_000_000
BATCH_RECORDS: Final = 100_000
# Tables are worked through in slices of at most so much: Arrow counts list entries and bytes in 31 bits.
SLICE_ROWS: Final = 1_000_000
SLICE_BYTES: Final = 256 * 1024 * 1024

_BYTES: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_null,
)


class UnfitColumns(BarnabasError):
    """A table that cannot be records: a column is missing or has a type that means no bytes."""


def encode_columns(
    table: pa.Table | pa.RecordBatch,
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    batch_records: int = BATCH_RECORDS,
    batch_bytes: int = BATCH_BYTES,
    timestamp_ms: int = NO_TIMESTAMP,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> list[bytes]:
    """Encode the rows of `table` in order, as batches of consecutive offsets.

    Columns: value and key (binary or text of any Arrow kind, null allowed), timestamp (of any unit, or
    integer milliseconds; `timestamp_ms` where it is null or missing), headers (list of key and value).
    value must be there; other columns are not looked at, so a decoded batch can be encoded again. A
    batch ends before it would pass `batch_records`, or `batch_bytes` before compression; a record that
    is larger alone gets its own.
    """
    stamp = Stamp(
        codec=codec,
        level=level,
        attributes=codec | (TRANSACTIONAL_BIT if transactional else 0),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
    batches: list[bytes] = []
    for part in _slices(_wanted(table)):
        framing, area = _records(part, timestamp_ms, batch_records, batch_bytes)
        batches += seal_batches(framing, memoryview(area), stamp)
    return batches


def _wanted(table: pa.Table | pa.RecordBatch) -> pa.Table:
    """Only the columns that are encoded, so that the others are not counted or combined."""
    names = table.schema.names
    if "value" not in names:
        raise UnfitColumns(f"there is no column named value: {', '.join(names)}")
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    return table.select([name for name in ("key", "value", "timestamp", "headers") if name in names])


def _slices(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Cut the table into record batches of bounded size, each of one chunk."""
    rows = table.num_rows
    if rows > 1 and (rows > SLICE_ROWS or table.nbytes > SLICE_BYTES):
        yield from _slices(table.slice(0, rows // 2))
        yield from _slices(table.slice(rows // 2))
    elif rows > 0:
        yield from table.combine_chunks().to_batches()


def _records(
    part: pa.RecordBatch, timestamp_ms: int, batch_records: int, batch_bytes: int
) -> tuple[Framing, pa.Buffer]:
    """Frame the records of `part` and gather them: the framing and the bytes of all batches, end to end."""
    rows = part.num_rows
    values = _Source(_views(part.column("value"), "value"))
    keys = None
    if "key" in part.schema.names and part.column("key").null_count < rows:
        keys = _Source(_views(part.column("key"), "key"))
    headers = _encoded_headers(part)
    framing = frame_records(
        rows,
        None if keys is None else keys.column,
        values.column,
        None if headers is None else headers.column,
        _times(part, timestamp_ms),
        batch_records,
        batch_bytes,
    )
    framed = [values] if keys is None else [keys, values]
    return framing, _gather(framing, rows, framed, headers)


class _Source:
    """A column of views, for the kernel and for Arrow."""

    def __init__(self, array: Array) -> None:
        bits, views, *self.buffers = array.buffers()
        rows = len(array)
        first = array.offset
        self.column = Column(
            _part(views, 16 * first, 16 * rows),
            _part(bits, first >> 3, ((first & 7) + rows + 7) >> 3) if array.null_count else b"",
            first & 7,
        )


def _part(buffer: pa.Buffer | None, start: int, size: int) -> bytes:
    """A piece of an Arrow buffer as bytes. Arrow has None for a buffer that holds nothing."""
    return b"" if buffer is None or size == 0 else bytes(buffer.slice(start, size))


def _gather(framing: Framing, rows: int, framed: list[_Source], tail: _Source | None) -> pa.Buffer:
    """Put the pieces of all rows together: for each of `framed` a frame and its data, then the tail."""
    count = len(framing.ends) - 1
    ends, data = pa.py_buffer(framing.ends), pa.py_buffer(framing.out.getvalue())
    frames = _Source(pa.Array.from_buffers(pa.binary(), count, [None, ends, data]).cast(pa.binary_view()))
    stride = 2 * len(framed) + (tail is not None)
    words = new_words(rows * stride + 1)
    buffers = [*frames.buffers]
    for index, source in enumerate(framed):
        weave(words, 2 * index, stride, frames.column, index, len(framed), rows, 0)
        weave(words, 2 * index + 1, stride, source.column, 0, 1, rows, len(buffers))
        buffers += source.buffers
    if tail is not None:
        weave(words, stride - 1, stride, tail.column, 0, 1, rows, len(buffers))
        buffers += tail.buffers
    weave(words, rows * stride, 1, frames.column, count - 1, 1, 1, 0)
    pieces = pa.Array.from_buffers(pa.binary_view(), rows * stride + 1, [None, pa.py_buffer(words), *buffers])
    # Large, because the sum can pass 31 bits when a single row is near that.
    area = pieces.cast(pa.large_binary()).buffers()[2]
    assert area is not None, "a record has at least its framing"
    return area


def _views(array: Array, name: str) -> Array:
    """The column as binary views, if its type means bytes."""
    kind = array.type
    try:
        if pa.types.is_dictionary(kind):
            array, kind = array.cast(kind.value_type), kind.value_type
        if pa.types.is_binary_view(kind):
            return array
        if any(is_kind(kind) for is_kind in _BYTES):
            return array.cast(pa.binary()).cast(pa.binary_view())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnfitColumns(f"column {name} is {kind}: {error}") from error
    raise UnfitColumns(f"column {name} is {kind}, which is neither binary nor text")


def _times(part: pa.RecordBatch, timestamp_ms: int) -> bytes:
    """The timestamps as 64-bit milliseconds."""
    rows: int = part.num_rows
    if "timestamp" not in part.schema.names:
        return timestamp_ms.to_bytes(8, "little", signed=True) * rows
    times = part.column("timestamp")
    kind = times.type
    try:
        if pa.types.is_timestamp(kind):
            times = times.cast(pa.timestamp("ms", kind.tz), safe=False)
        elif not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise UnfitColumns(f"column timestamp is {kind}, which is neither a timestamp nor an integer")
        times = times.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise UnfitColumns(f"column timestamp is {kind}: {error}") from error
    return _words(times.fill_null(timestamp_ms))


def _words(array: Array) -> bytes:
    """The memory of a column of 64-bit integers without nulls."""
    return _part(array.buffers()[1], 8 * array.offset, 8 * len(array))


def _encoded_headers(part: pa.RecordBatch) -> _Source | None:
    """The headers of each record as they stand in a batch; None if there are none at all."""
    if "headers" not in part.schema.names:
        return None
    lists: Any = part.column("headers")
    entry = getattr(lists.type, "value_type", None)
    if entry is None or not pa.types.is_struct(entry) or not {"key", "value"} <= {f.name for f in entry}:
        raise UnfitColumns(f"column headers is {lists.type}, not a list of structs of key and value")
    entries = lists.flatten()
    if len(entries) == 0:
        return None
    # Not field(): only flatten() passes a null of the struct on to its fields.
    flat = dict(zip((field.name for field in entry), entries.flatten(), strict=True))
    names, values = _Source(_names(flat["key"])), _Source(_views(flat["value"], "headers.value"))
    counts = pc.list_value_length(lists).cast(pa.int64()).fill_null(0)
    framing, ends = frame_headers(part.num_rows, _words(counts), names.column, values.column)
    data = _gather(framing, len(entries), [names, values], None)
    encoded = pa.Array.from_buffers(pa.binary(), part.num_rows, [None, pa.py_buffer(ends), data])
    return _Source(encoded.cast(pa.binary_view()))


def _names(array: Array) -> Array:
    """Header names as views; they must be text."""
    try:
        return array.cast(pa.string()).cast(pa.binary()).cast(pa.binary_view())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnfitColumns(f"column headers.key is {array.type}: {error}") from error
