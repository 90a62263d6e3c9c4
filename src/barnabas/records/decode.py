"""Decode the records of a batch, one after another (compiled).

RecordCursor finds the fields of each record without creating an object. Everything that reads records one by
one uses it: decode_batch() here, the checks of validate.py, the consumer's messages, and compaction. Two
loops have reasons of their own: column_scan.py writes words of Arrow columns, and storage/intake.py reads
only lengths and timestamps of every produced batch.

Every length and count is checked against the bytes left before memory is allocated for it, so a corrupt batch
takes no more memory than its own size.
"""

from typing import Final

from mypy_extensions import i64

from barnabas.records.area import MIN_HEADER_SIZE, MIN_RECORD_SIZE, NULL, BadRecord, check_count, record_area
from barnabas.records.codecs import MAX_DECOMPRESSED
from barnabas.records.errors import CorruptBatch, batch_at
from barnabas.records.header import INT32_MAX, LOG_APPEND_TIME_BIT, ByteSource, read_header
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
        _decode(area, start, end, header.count, header.base_offset, timestamp, not append_time, records)
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
        _decode(area, start, end, first, header.base_offset, timestamp, add_deltas, records)
    except BadRecord:
        # More records follow, or the next one is damaged.
        return records
    return records


def _decode(
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
    cursor = RecordCursor()
    cursor.start_area(data, at, end, count)
    timestamp = base_timestamp
    while cursor.next_record():
        if cursor.offset_delta < 0 or cursor.offset_delta > INT32_MAX:
            raise BadRecord(f"offset delta {cursor.offset_delta} is out of range")
        if add_deltas:
            timestamp = add_timestamps(base_timestamp, cursor.time_delta)
        out.append(
            Record(
                base_offset + cursor.offset_delta, timestamp, cursor.key(), cursor.value(), cursor.headers()
            )
        )


class RecordCursor:
    """The fields of one record of an area after another; each record is data[start:stop].

    It checks that fields lie inside their record, and records inside the area. The caller checks the offset
    delta, and the headers with headers() or check_headers(), which do different work.
    """

    def __init__(self) -> None:
        self._data = b""
        self._end: i64 = 0
        self._count: i64 = 0
        # The number of the record: of the current one, or of the one that a BadRecord is about.
        self.index: i64 = -1
        self.start: i64 = 0
        self.stop: i64 = 0
        self.time_delta: i64 = 0
        self.offset_delta: i64 = 0
        # Sizes are NULL for a null key or value.
        self.key_at: i64 = 0
        self.key_size: i64 = 0
        self.value_at: i64 = 0
        self.value_size: i64 = 0
        self.headers_at: i64 = 0

    def start_area(self, data: bytes, at: i64, end: i64, count: i64) -> None:
        """Read the `count` records of data[at:end] from now on."""
        self._data = data
        self._end = end
        self._count = count
        self.index = -1
        self.stop = at

    def next_record(self) -> bool:
        """Move to the next record; False after the last. BadRecord if it does not parse."""
        data = self._data
        end = self._end
        at = self.stop
        self.index += 1
        if self.index >= self._count:
            if at != end:
                raise BadRecord(f"{end - at} bytes follow the last record")
            return False
        self.start = at
        size, body = read_varint(data, at, end)
        if body == BAD or size < MIN_RECORD_SIZE - 1 or size > end - body:
            raise BadRecord(f"record length {size} is out of range, {end - at} bytes are left")
        stop = body + size
        self.stop = stop
        # The first byte is the record's attributes: none are defined, and readers ignore them.
        self.time_delta, at = read_varint(data, body + 1, stop)
        if at == BAD:
            raise BadRecord("timestamp delta is truncated")
        self.offset_delta, at = read_varint(data, at, stop)
        if at == BAD:
            raise BadRecord(f"offset delta {self.offset_delta} is out of range")
        size, at = read_varint(data, at, stop)
        if at == BAD or size < NULL or size > stop - at:
            raise BadRecord(f"key length {size} is out of range")
        self.key_at = at
        self.key_size = size
        if size > 0:
            at += size
        size, at = read_varint(data, at, stop)
        if at == BAD or size < NULL or size > stop - at:
            raise BadRecord(f"value length {size} is out of range")
        self.value_at = at
        self.value_size = size
        if size > 0:
            at += size
        self.headers_at = at
        return True

    def key(self) -> bytes | None:
        return None if self.key_size < 0 else self._data[self.key_at : self.key_at + self.key_size]

    def value(self) -> bytes | None:
        return None if self.value_size < 0 else self._data[self.value_at : self.value_at + self.value_size]

    def headers(self) -> Headers:
        """The headers of the record, which must end exactly at its end."""
        data = self._data
        stop = self.stop
        # Fast path: no headers, so the record ends with a zero byte.
        if self.headers_at + 1 == stop and data[self.headers_at] == 0:
            return NO_HEADERS
        count, at = self._header_count()
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

    def check_headers(self) -> None:
        """Check the lengths of the headers, but not that their names are UTF-8, as Kafka's broker does."""
        data = self._data
        stop = self.stop
        if self.headers_at + 1 == stop and data[self.headers_at] == 0:
            return
        count, at = self._header_count()
        for _ in range(count):
            size, at = read_varint(data, at, stop)
            if at == BAD or size < 0 or size > stop - at:
                raise BadRecord(f"header name length {size} is out of range")
            size, at = read_varint(data, at + size, stop)
            if at == BAD or size < NULL or size > stop - at:
                raise BadRecord(f"header value length {size} is out of range")
            if size > 0:
                at += size
        if at != stop:
            raise BadRecord(f"{stop - at} bytes follow the last field")

    def _header_count(self) -> tuple[i64, i64]:
        count, at = read_varint(self._data, self.headers_at, self.stop)
        if at == BAD or count < 0 or count > (self.stop - at) // MIN_HEADER_SIZE:
            raise BadRecord(f"header count {count} is out of range")
        return count, at


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
