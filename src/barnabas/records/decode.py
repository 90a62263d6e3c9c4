"""Decode a batch to records in one pass over its decompressed area (compiled).

Every length and count is checked against the bytes left before memory is allocated for it, so a corrupt batch
takes no more memory than its own size.
"""

from typing import Final

from mypy_extensions import i64

from barnabas.records.area import MIN_HEADER_SIZE, MIN_RECORD_SIZE, NULL, BadRecord, check_count, record_area
from barnabas.records.codecs import MAX_DECOMPRESSED
from barnabas.records.crc import ByteSource
from barnabas.records.errors import CorruptBatch, batch_at
from barnabas.records.header import INT32_MAX, LOG_APPEND_TIME_BIT, read_header
from barnabas.records.record import Header, Headers, Record

NO_HEADERS: Final[Headers] = ()

# The position that read_varint() returns for a bad varint. It raises no exception, because the caller knows
# what it was reading.
BAD: Final = -1
# A varlong has at most ten bytes: nine hold 63 bits, the tenth the last one.
MAX_SHIFT: Final = 63


def decode_batch(data: ByteSource, at: int = 0, *, limit: int = MAX_DECOMPRESSED) -> list[Record]:
    """Decode every record of the batch at `at`. check_batch() checks the CRC, this does not."""
    header = read_header(data, at)
    area, start, end = record_area(data, at, header, limit=limit)
    check_count(header, end - start, at)
    records: list[Record] = []
    append_time = header.attributes & LOG_APPEND_TIME_BIT != 0
    timestamp = header.max_timestamp if append_time else header.base_timestamp
    try:
        decode_records(
            area, start, end, header.count, header.base_offset, timestamp, not append_time, records
        )
    except BadRecord as wrong:
        raise CorruptBatch(str(wrong), where=f"{batch_at(at)}, record {len(records)}") from None
    return records


def decode_first(data: ByteSource, count: int, *, limit: int = MAX_DECOMPRESSED) -> list[Record]:
    """Decode up to `count` records of a batch, stopping before the first damaged one."""
    header = read_header(data)
    area, start, end = record_area(data, 0, header, limit=limit)
    records: list[Record] = []
    add_deltas = header.attributes & LOG_APPEND_TIME_BIT == 0
    timestamp = header.base_timestamp if add_deltas else header.max_timestamp
    first = min(header.count, count)
    try:
        decode_records(area, start, end, first, header.base_offset, timestamp, add_deltas, records)
    except BadRecord:
        # More records follow, or the next one is damaged.
        return records
    return records


def decode_records(
    data: bytes,
    at: i64,
    end: i64,
    count: i64,
    base_offset: i64,
    base_timestamp: i64,
    add_deltas: bool,
    out: list[Record],
) -> None:
    """Append the `count` records of data[at:end] to `out`; on BadRecord, len(out) is the record's index.

    Without add_deltas every record gets the base timestamp, as with LogAppendTime.
    """
    for _ in range(count):
        length, body = read_varint(data, at, end)
        if body == BAD or length < MIN_RECORD_SIZE - 1 or length > end - body:
            raise BadRecord(f"record length {length} is out of range, {end - at} bytes are left")
        at = body + length
        out.append(_record(data, body, at, base_offset, base_timestamp, add_deltas))
    if at != end:
        raise BadRecord(f"{end - at} bytes follow the last record")


def _record(
    data: bytes, at: i64, stop: i64, base_offset: i64, base_timestamp: i64, add_deltas: bool
) -> Record:
    # The first byte is the record's attributes: none are defined, and readers ignore them.
    timestamp_delta, at = read_varint(data, at + 1, stop)
    if at == BAD:
        raise BadRecord("timestamp delta is truncated")
    offset_delta, at = read_varint(data, at, stop)
    if at == BAD or offset_delta < 0 or offset_delta > INT32_MAX:
        raise BadRecord(f"offset delta {offset_delta} is out of range")
    size, at = read_varint(data, at, stop)
    if at == BAD or size < NULL or size > stop - at:
        raise BadRecord(f"key length {size} is out of range")
    key: bytes | None = None
    if size >= 0:
        key = data[at : at + size]
        at += size
    size, at = read_varint(data, at, stop)
    if at == BAD or size < NULL or size > stop - at:
        raise BadRecord(f"value length {size} is out of range")
    value: bytes | None = None
    if size >= 0:
        value = data[at : at + size]
        at += size
    timestamp = base_timestamp
    if add_deltas:
        timestamp = add_timestamps(base_timestamp, timestamp_delta)
    return Record(base_offset + offset_delta, timestamp, key, value, read_headers(data, at, stop))


def read_headers(data: bytes, at: i64, stop: i64) -> Headers:
    """Read a record's headers, which must end exactly at the end of the record."""
    count, at = read_varint(data, at, stop)
    if at == BAD or count < 0 or count > (stop - at) // MIN_HEADER_SIZE:
        raise BadRecord(f"header count {count} is out of range")
    if count == 0:
        if at != stop:
            raise BadRecord(f"{stop - at} bytes follow the last field")
        return NO_HEADERS
    headers: list[Header] = []
    for _ in range(count):
        size, at = read_varint(data, at, stop)
        if at == BAD or size < 0 or size > stop - at:
            raise BadRecord(f"header name length {size} is out of range")
        name = _name(data[at : at + size])
        at += size
        size, at = read_varint(data, at, stop)
        if at == BAD or size < NULL or size > stop - at:
            raise BadRecord(f"header value length {size} is out of range")
        if size < 0:
            headers.append((name, None))
        else:
            headers.append((name, data[at : at + size]))
            at += size
    if at != stop:
        raise BadRecord(f"{stop - at} bytes follow the last field")
    return tuple(headers)


def _name(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRecord("a header name is not UTF-8") from None


def add_timestamps(base: i64, delta: i64) -> i64:
    """Add; BadRecord on an overflow of 64 bits."""
    total = base + delta
    # Compiled, an overflow wraps around to a sign that neither part has; interpreted, the sum has more than
    # 64 bits. Comparing with the largest value would cost more than the addition.
    if ((base ^ total) & (delta ^ total)) < 0 or total >> 63 > 0 or total >> 63 < -1:
        raise BadRecord("timestamp is out of range")
    return total


def read_varint(data: bytes, at: i64, end: i64) -> tuple[i64, i64]:
    """Return the zigzag value at `at` and the position after it; (0, BAD) if it does not end before `end`."""
    shift: i64 = 0
    value: i64 = 0
    while at < end:
        byte: i64 = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift < MAX_SHIFT:
                # No sign bit can be set yet, and the mask below is too large a literal to be cheap.
                return (value >> 1) ^ -(value & 1), at
            # The shift right must be logical; the sign bit comes back through the zigzag term.
            return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), at
        shift += 7
        if shift > MAX_SHIFT:
            break
    return 0, BAD
