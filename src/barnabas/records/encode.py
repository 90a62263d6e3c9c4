"""Encode one record (compiled). Its size is computed first, because it comes first in the encoding."""

from collections.abc import Sequence
from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64, u8

from barnabas.records.area import NULL
from barnabas.records.header import NO_TIMESTAMP
from barnabas.records.record import Header

# Half of the largest i64: mypyc compiles a larger literal to a Python object.
_HALF_OF_MAX: Final = 0x3FFFFFFFFFFFFFFF


def body_size(
    timestamp_delta: i64,
    offset_delta: i64,
    key: bytes | None,
    value: bytes | None,
    header_count: i64,
    headers_size: i64,
) -> i64:
    """The size of a record without its length field."""
    size = 1 + varint_size(timestamp_delta) + varint_size(offset_delta)
    if header_count == 0:
        size += 1
    else:
        size += varint_size(header_count) + headers_size
    return size + _bytes_size(key) + _bytes_size(value)


def _bytes_size(data: bytes | None) -> i64:
    if data is None:
        return 1
    length: i64 = len(data)
    return varint_size(length) + length


def write_record(
    out: BytesWriter,
    body: i64,
    timestamp_delta: i64,
    offset_delta: i64,
    key: bytes | None,
    value: bytes | None,
    header_count: i64,
    packed_headers: bytes,
) -> None:
    """Append a record whose body_size() is `body`."""
    write_varint(out, body)
    out.append(0)
    write_varint(out, timestamp_delta)
    write_varint(out, offset_delta)
    _write_bytes(out, key)
    _write_bytes(out, value)
    if header_count == 0:
        out.append(0)
        return
    write_varint(out, header_count)
    out.write(packed_headers)


def _write_bytes(out: BytesWriter, data: bytes | None) -> None:
    if data is None:
        write_varint(out, NULL)
        return
    write_varint(out, len(data))
    out.write(data)


def pack_headers(headers: Sequence[Header]) -> bytes:
    """Encode a record's headers without their count."""
    out = BytesWriter()
    for name, value in headers:
        _write_bytes(out, name.encode("utf-8"))
        _write_bytes(out, value)
    return out.getvalue()


def is_out_of_range(timestamp: i64) -> bool:
    """Whether we must not write a timestamp: before 1970, or one of the two largest i64 numbers.

    Timestamps in a batch are deltas to the first one, and the delta from -1, which means none, to the largest
    i64 number overflows. As in Kafka, producers may write timestamps before 1970: validate.is_too_late() is
    the bound for their batches.
    """
    return timestamp < NO_TIMESTAMP or timestamp >> 1 >= _HALF_OF_MAX


def write_varint(out: BytesWriter, value: i64) -> None:
    """Append `value` zigzag-encoded."""
    rest: i64 = (value << 1) ^ (value >> 63)
    while rest > 0x7F or rest < 0:
        out.append(u8((rest & 0x7F) | 0x80))
        rest = (rest >> 7) & 0x01FFFFFFFFFFFFFF
    out.append(u8(rest))


def varint_size(value: i64) -> i64:
    """The number of bytes that write_varint() appends for `value`."""
    rest: i64 = (value << 1) ^ (value >> 63)
    size: i64 = 1
    while rest > 0x7F or rest < 0:
        rest = (rest >> 7) & 0x01FFFFFFFFFFFFFF
        size += 1
    return size
