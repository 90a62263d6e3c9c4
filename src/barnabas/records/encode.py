"""Encode one record (compiled). Its size is computed first, because it comes first in the encoding."""

from collections.abc import Sequence

from librt.strings import BytesWriter
from mypy_extensions import i64

from barnabas.records.area import NULL
from barnabas.records.record import Header
from barnabas.records.varint import varint_size, write_varint


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
    write_varint(out, header_count)
    if header_count > 0:
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
