"""Arrow columns as record batches.

encode_columns() is the way back of columns_read.py: a table with a value column, and if wanted key,
timestamp and headers, becomes batches that are ready to be produced. column_pack.py writes them; where
rows and batches are large it writes only what is short, and Arrow gathers the rest from where it is. No
interpreted Python runs per record. Measured, in batches of 100: 73 ns a record of 100 bytes and 250 of 1 kB,
for which the kernel alone would take 305.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.base.errors import BarnabasError
from barnabas.records.column_cells import Area, Column
from barnabas.records.column_pack import Headers, pack_records
from barnabas.records.column_seal import Stamp
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
# Arrow gathers when rows and batches are at least so large on average: below, the kernel is faster alone.
GATHERED_ROW: Final = 256
GATHERED_BATCH: Final = 16_384
VIEW_SIZE: Final = 16

_EMPTY: Final = pa.py_buffer(b"")
_BYTES: Final = (pa.types.is_string, pa.types.is_fixed_size_binary, pa.types.is_null)
# Views may overlap, and so may be more bytes than 31 bits can count though their buffers are few.
_LARGE: Final = (pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary_view)


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
        batches += _encode(part, timestamp_ms, stamp, batch_records, batch_bytes)
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


def _encode(
    part: pa.RecordBatch, timestamp_ms: int, stamp: Stamp, batch_records: int, batch_bytes: int
) -> list[bytes]:
    rows = part.num_rows
    names = part.schema.names
    source = _Source()
    keys = None
    if "key" in names and part.column("key").null_count < rows:
        keys = source.column(part.column("key"), "key")
    values = source.column(part.column("value"), "value")
    headers = _headers(source, part.column("headers")) if "headers" in names else None
    return pack_records(
        rows,
        keys,
        values,
        headers,
        _times(part, timestamp_ms),
        Area(_gathers(source.size // rows, batch_records, batch_bytes)),
        source.gather,
        stamp,
        batch_records,
        batch_bytes,
    )


def _gathers(row_bytes: int, batch_records: int, batch_bytes: int) -> bool:
    """Whether Arrow or the kernel puts the batches together."""
    return row_bytes >= GATHERED_ROW and min(batch_records * row_bytes, batch_bytes) >= GATHERED_BATCH


class _Source:
    """The columns of one slice: as the kernel reads them, and as Arrow gathers what the kernel refers to."""

    def __init__(self) -> None:
        self.buffers: list[pa.Buffer] = []
        self.size = 0

    def column(self, array: Array, name: str) -> Column:
        array = _binary(array, name)
        bits, offsets, data = array.buffers()
        rows, first = len(array), array.offset
        wide = pa.types.is_large_binary(array.type)
        width = 8 if wide else 4
        self.buffers.append(_EMPTY if data is None else data)
        self.size += array.nbytes
        return Column(
            len(self.buffers),
            _part(offsets, width * first, width * (rows + 1)),
            wide,
            memoryview(self.buffers[-1]),
            _part(bits, first >> 3, ((first & 7) + rows + 7) >> 3) if array.null_count else b"",
            first & 7,
        )

    def gather(self, text: bytes, views: bytes) -> memoryview:
        """Copy together what the views point at: in the text, and in the columns."""
        buffers = [None, pa.py_buffer(views), pa.py_buffer(text), *self.buffers]
        pieces = pa.Array.from_buffers(pa.binary_view(), len(views) // VIEW_SIZE, buffers)
        # Large, because the sum can pass 31 bits when a single row is near that.
        return memoryview(pieces.cast(pa.large_binary()).buffers()[2])


def _part(buffer: pa.Buffer | None, start: int, size: int) -> bytes:
    """A piece of an Arrow buffer as bytes. Arrow has None for a buffer that holds nothing."""
    return b"" if buffer is None or size == 0 else bytes(buffer.slice(start, size))


def _binary(array: Array, name: str) -> Array:
    """The column as binary or large binary, if its type means bytes."""
    kind = array.type
    try:
        # Whether the buffers are there and large enough; each cell is checked when the kernel comes to it.
        array.validate()
        if pa.types.is_dictionary(kind):
            array, kind = array.cast(kind.value_type), kind.value_type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return array
        if any(is_kind(kind) for is_kind in _LARGE):
            return array.cast(pa.large_binary())
        if any(is_kind(kind) for is_kind in _BYTES):
            return array.cast(pa.binary())
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
    return _words(times.fill_null(timestamp_ms) if times.null_count else times)


def _words(array: Array) -> bytes:
    """The memory of a column of 64-bit integers without nulls."""
    return _part(array.buffers()[1], 8 * array.offset, 8 * len(array))


def _headers(source: _Source, lists: Any) -> Headers | None:
    """The headers of each record; None if there are none at all."""
    entry = getattr(lists.type, "value_type", None)
    if entry is None or not pa.types.is_struct(entry) or not {"key", "value"} <= {f.name for f in entry}:
        raise UnfitColumns(f"column headers is {lists.type}, not a list of structs of key and value")
    entries = lists.flatten()
    if len(entries) == 0:
        return None
    # Not field(): only flatten() passes a null of the struct on to its fields.
    flat = dict(zip((field.name for field in entry), entries.flatten(), strict=True))
    counts = pc.list_value_length(lists).cast(pa.int64()).fill_null(0)
    names = source.column(_text(flat["key"]), "headers.key")
    return Headers(_words(counts), names, source.column(flat["value"], "headers.value"))


def _text(array: Array) -> Array:
    """Header names, which must be text."""
    try:
        return array.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnfitColumns(f"column headers.key is {array.type}: {error}") from error
