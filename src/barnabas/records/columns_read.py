"""Decode fetched record batches to Arrow columns.

decode_columns() returns the rows; decode_fetched() also returns the next offset, for consumers. Two compiled
passes do the work, column_walk.py over batches and column_scan.py over records. This module turns their words
into Arrow arrays; no interpreted Python runs per record or per batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
from librt.vecs import vec
from mypy_extensions import i32, i64, u8

from barnabas.records.buffers import bytes_of_view
from barnabas.records.column_scan import Columns, null_bits, scan
from barnabas.records.column_walk import Walk
from barnabas.records.errors import CorruptBatch, DecompressedTooLarge

ByteSource: TypeAlias = bytes | bytearray | memoryview
Array: TypeAlias = "pa.Array[Any]"

# Arrow's binary columns and views have 31-bit positions, which limits the size of one result.
MAX_COLUMN_BYTES: Final = 0x7FFFFFFF
# Limit for the decompressed size of all batches of one call.
MAX_UNPACKED: Final = 1024 * 1024 * 1024

TIMESTAMP: Final = pa.timestamp("ms")


def column_schema(*, views: bool = False) -> pa.Schema:
    """The columns of a result; `views` as for decode_columns()."""
    data = pa.binary_view() if views else pa.binary()
    header = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", data)])
    return pa.schema(
        [
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("timestamp", TIMESTAMP, nullable=False),
            pa.field("timestamp_type", pa.int8(), nullable=False),
            pa.field("key", data),
            pa.field("value", data),
            pa.field("headers", pa.list_(header), nullable=False),
        ]
    )


_PLAIN: Final = column_schema()
_VIEWS: Final = column_schema(views=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The rows of a fetch, and the start of the next one."""

    rows: pa.RecordBatch
    # The offset after the last whole batch, even if `rows` has none of its records; None without a batch.
    next_offset: int | None
    # Bytes of whole batches in all buffers.
    consumed: int


def decode_columns(
    buffers: ByteSource | Sequence[ByteSource],
    *,
    from_offset: int = 0,
    skip_control: bool = True,
    aborted: Iterable[tuple[int, int]] = (),
    partial_tail: bool = False,
    check_crc: bool = True,
    views: bool = False,
    limit: int = MAX_UNPACKED,
) -> pa.RecordBatch:
    """Decode buffers of batches, in offset order, into one Arrow record batch.

    Records below `from_offset` are skipped, and so are those of the `aborted` transactions, given as the
    (producer id, first offset) pairs of a fetch response. With `partial_tail` a buffer may end inside a
    batch. With `views` keys and values are binary views into the buffers, which then live as long as the
    result; without, they are copied. `limit` bounds the total decompressed size.
    """
    return decode_fetched(
        buffers,
        from_offset=from_offset,
        skip_control=skip_control,
        aborted=aborted,
        partial_tail=partial_tail,
        check_crc=check_crc,
        views=views,
        limit=limit,
    ).rows


def decode_fetched(
    buffers: ByteSource | Sequence[ByteSource],
    *,
    from_offset: int = 0,
    skip_control: bool = True,
    aborted: Iterable[tuple[int, int]] = (),
    partial_tail: bool = True,
    check_crc: bool = True,
    views: bool = False,
    limit: int = MAX_UNPACKED,
) -> Fetched:
    """decode_columns() with the next offset and the number of bytes consumed."""
    walk = Walk(
        from_offset=from_offset,
        skip_control=skip_control,
        check_crc=check_crc,
        limit=limit,
        aborted=[(first_offset, producer_id) for producer_id, first_offset in aborted],
        leaves_plain=True,
    )
    consumed = 0
    for buffer in [buffers] if isinstance(buffers, (bytes, bytearray, memoryview)) else buffers:
        data, start, end = _as_bytes(buffer)
        consumed += walk.feed(data, start, end, partial_tail) - start
    walk.finish()
    if sum(walk.ends) > MAX_COLUMN_BYTES:
        raise DecompressedTooLarge(
            f"one result is limited to {MAX_COLUMN_BYTES} bytes", where=f"fetch of {consumed} bytes"
        )
    under = [pa.py_buffer(data).slice(0, end) for data, end in zip(walk.sources, walk.ends, strict=True)]
    rows = _to_arrow(scan(walk), under, views)
    return Fetched(rows=rows, next_offset=walk.next_offset if consumed else None, consumed=consumed)


def _as_bytes(buffer: ByteSource) -> tuple[bytes, int, int]:
    """The buffer as bytes, with its start and end in them; without a copy if it is a view of bytes."""
    if isinstance(buffer, bytes):
        return buffer, 0, len(buffer)
    found = bytes_of_view(buffer) if isinstance(buffer, memoryview) else None
    if found is not None:
        whole, start = found
        return whole, start, start + memoryview(buffer).nbytes
    data = bytes(buffer)
    return data, 0, len(data)


def _to_arrow(columns: Columns, under: list[pa.Buffer], views: bool) -> pa.RecordBatch:
    rows = columns.used
    key_bits = columns.key_bits if columns.key_nulls else None
    value_bits = columns.value_bits if columns.value_nulls else None
    arrays = [
        pa.Array.from_buffers(pa.int64(), rows, [None, _buffer(columns.offsets)]),
        pa.Array.from_buffers(TIMESTAMP, rows, [None, _buffer(columns.timestamps)]),
        pa.Array.from_buffers(pa.int8(), rows, [None, _buffer(columns.timestamp_types)]),
        _data(rows, columns.keys, key_bits, under, views),
        _data(rows, columns.values, value_bits, under, views),
        _headers(columns, under, views),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_VIEWS if views else _PLAIN)


def _data(rows: int, words: vec[i64], bits: vec[u8] | None, under: list[pa.Buffer], views: bool) -> Array:
    """A column of the views in `words`, with the validity `bits`."""
    valid = None if bits is None else _buffer(bits)
    array = pa.Array.from_buffers(pa.binary_view(), rows, [valid, _buffer(words), *under])
    return array if views else array.cast(pa.binary())


def _buffer(words: vec[i64] | vec[i32] | vec[u8]) -> pa.Buffer:
    """The memory of a vec, shared. An empty vec has no memory, on which Arrow would abort the process."""
    return pa.py_buffer(words) if len(words) else pa.py_buffer(b"")


def _headers(columns: Columns, under: list[pa.Buffer], views: bool) -> Array:
    headers = columns.headers
    kind = (_VIEWS if views else _PLAIN).field("headers").type
    bits = null_bits(headers.count, headers.value_nulls) if len(headers.value_nulls) else None
    values = _data(headers.count, headers.values, bits, under, views)
    entries = pa.StructArray.from_arrays(
        [_header_names(columns, under), values], fields=list(kind.value_type)
    )
    ends = _buffer(columns.header_ends)
    return pa.Array.from_buffers(kind, columns.used, [None, ends], children=[entries])


def _header_names(columns: Columns, under: list[pa.Buffer]) -> Array:
    names = _data(columns.headers.count, columns.headers.names, None, under, True)
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        raise _bad_name(columns, names) from None


def _bad_name(columns: Columns, names: Array) -> CorruptBatch:
    """Find the name that is not UTF-8, because Arrow does not report which."""
    for row in range(columns.used):
        for index in range(columns.header_ends[row], columns.header_ends[row + 1]):
            name = names[index].as_py()
            try:
                name.decode()
            except UnicodeDecodeError:
                return CorruptBatch(
                    f"header name {name!r:.80} is not UTF-8",
                    where=f"record at offset {columns.offsets[row]}",
                )
    return CorruptBatch("a header name is not UTF-8", where=f"{columns.used} records")
