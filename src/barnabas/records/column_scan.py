"""Decode records into column words (compiled): the second pass over fetched bytes.

For every record of the spans that column_walk.py found, this writes offset, timestamp and 16-byte Arrow views
of key and value. A view refers to the bytes in place, so nothing is copied and no object is created per
record; columns_read.py turns the words into Arrow arrays.
"""

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i32_le, read_i64_be, read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i32, i64, u8

from barnabas.records.column_walk import (
    HEADER_AT_BITS,
    HEADER_SOURCE_SHIFT,
    SPAN_END,
    SPAN_HEADER,
    SPAN_SOURCE,
    SPAN_START,
    SPAN_WORDS,
    Walk,
    check_crc,
)
from barnabas.records.decode import BAD, read_varint
from barnabas.records.errors import CorruptBatch
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    COUNT_AT,
    INT32_MAX,
    LOG_APPEND_TIME_BIT,
    MAX_TIMESTAMP_AT,
    NOT_PLAIN_BITS,
)

# Arrow stores up to this many bytes inside the view itself.
INLINE: Final = 12
ALL_VALID: Final = 0xFF


class Headers:
    """The headers of all records: views of names and values, and the indexes of null values."""

    def __init__(self) -> None:
        self.names = vec[i64]()
        self.values = vec[i64]()
        self.value_nulls = vec[i64]()
        self.count: i64 = 0


class Columns:
    """Column words for up to `rows` records; `used` rows are filled."""

    def __init__(self, rows: i64) -> None:
        self.offsets = vec[i64]([0] * rows)
        self.timestamps = vec[i64]([0] * rows)
        self.timestamp_types = vec[u8]([0] * rows)
        self.keys = vec[i64]([0] * (2 * rows))
        self.values = vec[i64]([0] * (2 * rows))
        self.key_bits = vec[u8]([ALL_VALID] * ((rows + 7) >> 3))
        self.value_bits = vec[u8]([ALL_VALID] * ((rows + 7) >> 3))
        self.header_ends = vec[i32]([0] * (rows + 1))
        self.headers = Headers()
        self.key_nulls: i64 = 0
        self.value_nulls: i64 = 0
        self.used: i64 = 0


def scan(walk: Walk) -> Columns:
    """Decode the records of every span of a finished walk."""
    columns = Columns(walk.rows)
    spans = walk.spans
    size: i64 = len(spans)
    at: i64 = 0
    header = b""
    view = memoryview(header)
    header_source: i64 = -1
    while at < size:
        place: i64 = spans[at + SPAN_HEADER]
        if place >> HEADER_SOURCE_SHIFT != header_source:
            header_source = place >> HEADER_SOURCE_SHIFT
            header = walk.sources[header_source]
            view = memoryview(header)
        batch: i64 = place & HEADER_AT_BITS
        if walk.leaves_plain and i64(read_i16_be(header, batch + ATTRIBUTES_AT)) & NOT_PLAIN_BITS == 0:
            check_crc(header, view, batch, spans[at + SPAN_END])
        source: i64 = spans[at + SPAN_SOURCE]
        scan_span(header, batch, walk.sources[source], spans, at, columns, walk.from_offset)
        at += SPAN_WORDS
    return columns


def scan_span(
    header: bytes, batch: i64, data: bytes, spans: vec[i64], span: i64, columns: Columns, from_offset: i64
) -> None:
    """Decode the records of one batch, whose header is at `batch`. They must fill the span exactly."""
    source: i64 = spans[span + SPAN_SOURCE]
    at: i64 = spans[span + SPAN_START]
    end: i64 = spans[span + SPAN_END]
    count: i64 = i64(read_i32_be(header, batch + COUNT_AT))
    base_offset: i64 = read_i64_be(header, batch)
    base_time: i64 = read_i64_be(header, batch + BASE_TIMESTAMP_AT)
    log_time: i64 = read_i64_be(header, batch + MAX_TIMESTAMP_AT)
    has_log_time: i64 = i64(read_i16_be(header, batch + ATTRIBUTES_AT)) & LOG_APPEND_TIME_BIT
    # Computed, because mypyc compiles a literal of more than 62 bits to a Python object that is converted on
    # every use.
    half: i64 = 0x3FFFFFFFFFFFFFFF
    most: i64 = half * 2 + 1
    least: i64 = -most - 1
    # Deltas outside of these bounds would overflow a timestamp.
    least_delta: i64 = least - base_time if base_time < 0 else least
    most_delta: i64 = most - base_time if base_time > 0 else most
    offsets = columns.offsets
    timestamps = columns.timestamps
    keys = columns.keys
    values = columns.values
    header_ends = columns.header_ends
    header_count: i64 = columns.headers.count
    row: i64 = columns.used
    index: i64 = 0
    while index < count:
        size, at = read_varint(data, at, end)
        if at == BAD or size < 0 or size > end - at:
            raise bad_record("record length is out of range", base_offset, index)
        stop: i64 = at + size
        time_delta, offset_delta, key_size, at = read_start(data, at + 1, stop)
        if at == BAD or key_size < -1 or key_size > stop - at:
            raise bad_record("key length is out of range", base_offset, index)
        if time_delta < least_delta or time_delta > most_delta:
            raise bad_record("timestamp is out of range", base_offset, index)
        if offset_delta < 0 or offset_delta > INT32_MAX:
            raise bad_record("offset delta is out of range", base_offset, index)
        key_at: i64 = at
        if key_size > 0:
            at += key_size
        value_size, at = read_varint(data, at, stop)
        if at == BAD or value_size < -1 or value_size > stop - at:
            raise bad_record("value length is out of range", base_offset, index)
        value_at: i64 = at
        if value_size > 0:
            at += value_size
        wanted = base_offset + offset_delta >= from_offset
        if at < stop and data[at] == 0:
            at += 1
        else:
            at = scan_headers(data, source, at, stop, columns.headers, wanted)
            header_count = columns.headers.count
        if at != stop:
            raise bad_record("headers do not end at the end of the record", base_offset, index)
        index += 1
        if not wanted:
            continue
        offsets[row] = base_offset + offset_delta
        timestamps[row] = base_time + time_delta
        if has_log_time != 0:
            timestamps[row] = log_time
            columns.timestamp_types[row] = 1
        if key_size >= 0:
            write_view(keys, row, data, key_at, key_size, source)
        else:
            set_null(columns.key_bits, row)
            columns.key_nulls += 1
        if value_size >= 0:
            write_view(values, row, data, value_at, value_size, source)
        else:
            set_null(columns.value_bits, row)
            columns.value_nulls += 1
        row += 1
        header_ends[row] = i32(header_count)
    if at != end:
        raise CorruptBatch(
            f"{end - at} bytes follow the last of {count} records",
            where=f"batch with base offset {base_offset}",
        )
    columns.used = row


def read_start(data: bytes, at: i64, stop: i64) -> tuple[i64, i64, i64, i64]:
    """Read timestamp delta, offset delta and key size; return them and the position after, or BAD.

    Usually the first two take one or two bytes and the third takes one. Reading all three from one word
    instead of byte by byte, and writing views with one call instead of two, saves 4 of 26 ns for a record of
    100 bytes.
    """
    if stop - at < 8:
        return read_start_slowly(data, at, stop)
    word: i64 = read_i64_le(data, at)
    after: i64 = at + 3
    time_bits: i64 = word & 0x7F
    if word & 0x80 != 0:
        word >>= 8
        time_bits |= (word & 0x7F) << 7
        after += 1
    longer: i64 = word & 0x80
    offset_bits: i64 = (word >> 8) & 0x7F
    if word & 0x8000 != 0:
        word >>= 8
        offset_bits |= (word & 0x7F00) >> 1
        after += 1
    key_bits: i64 = (word >> 16) & 0x7F
    longer |= word & 0x808000
    if longer != 0:
        return read_start_slowly(data, at, stop)
    return (
        (time_bits >> 1) ^ -(time_bits & 1),
        (offset_bits >> 1) ^ -(offset_bits & 1),
        (key_bits >> 1) ^ -(key_bits & 1),
        after,
    )


def read_start_slowly(data: bytes, at: i64, stop: i64) -> tuple[i64, i64, i64, i64]:
    """read_start() for varints of any length."""
    time_delta, at = read_varint(data, at, stop)
    if at == BAD:
        return 0, 0, 0, BAD
    offset_delta, at = read_varint(data, at, stop)
    if at == BAD:
        return 0, 0, 0, BAD
    key_size, at = read_varint(data, at, stop)
    return time_delta, offset_delta, key_size, at


def scan_headers(data: bytes, source: i64, at: i64, stop: i64, headers: Headers, wanted: bool) -> i64:
    """Read a record's headers, and store them if `wanted`; return the position after them, or BAD."""
    count, at = read_varint(data, at, stop)
    # A header takes at least two bytes: an empty name and a null value.
    if at == BAD or count < 0 or count > (stop - at) >> 1:
        return BAD
    names = headers.names
    values = headers.values
    index: i64 = headers.count
    while count > 0:
        count -= 1
        name_size, at = read_varint(data, at, stop)
        if at == BAD or name_size < 0 or name_size > stop - at:
            return BAD
        name_at: i64 = at
        value_size, at = read_varint(data, at + name_size, stop)
        if at == BAD or value_size < -1 or value_size > stop - at:
            return BAD
        value_at: i64 = at
        if value_size > 0:
            at += value_size
        if not wanted:
            continue
        names = append(append(names, 0), 0)
        write_view(names, index, data, name_at, name_size, source)
        values = append(append(values, 0), 0)
        if value_size >= 0:
            write_view(values, index, data, value_at, value_size, source)
        else:
            headers.value_nulls = append(headers.value_nulls, index)
        index += 1
    headers.names = names
    headers.values = values
    headers.count = index
    return at


def write_view(words: vec[i64], row: i64, data: bytes, at: i64, size: i64, source: i64) -> None:
    """Write the two words of a view: length and four bytes, then eight more bytes or their position."""
    if size > INLINE:
        prefix: i64 = i64(read_i32_le(data, at))
        words[2 * row] = size | (prefix << 32)
        words[2 * row + 1] = source | (at << 32)
        return
    if len(data) - at < INLINE:
        write_last_view(words, row, data, at, size)
        return
    if size < 4:
        some: i64 = i64(read_i32_le(data, at))
        words[2 * row] = size | ((some & (0xFFFFFF >> (24 - 8 * size))) << 32)
        return
    prefix = i64(read_i32_le(data, at))
    words[2 * row] = size | (prefix << 32)
    rest: i64 = read_i64_le(data, at + 4)
    if size < INLINE:
        rest &= 0xFFFFFFFFFFFFFF >> (8 * (INLINE - 1 - size))
    words[2 * row + 1] = rest


def write_last_view(words: vec[i64], row: i64, data: bytes, at: i64, size: i64) -> None:
    """Write a short view byte by byte, because reading whole words would pass the end of the data."""
    head: i64 = 0
    tail: i64 = 0
    index: i64 = size - 1
    while index >= 0:
        byte: i64 = data[at + index]
        if index >= 4:
            tail = (tail << 8) | byte
        else:
            head = (head << 8) | byte
        index -= 1
    # The prefix is the upper half of a signed word.
    if head >= 0x80000000:
        head -= 0x100000000
    words[2 * row] = size | (head << 32)
    words[2 * row + 1] = tail


def null_bits(rows: i64, nulls: vec[i64]) -> vec[u8]:
    """Arrow's validity bits for `rows` rows, of which those in `nulls` are null."""
    bits = vec[u8]([ALL_VALID] * ((rows + 7) >> 3))
    count: i64 = len(nulls)
    index: i64 = 0
    while index < count:
        set_null(bits, nulls[index])
        index += 1
    return bits


def set_null(bits: vec[u8], row: i64) -> None:
    byte: i64 = i64(bits[row >> 3]) & ~(1 << (row & 7))
    bits[row >> 3] = u8(byte & 0xFF)


def bad_record(what: str, base_offset: i64, index: i64) -> CorruptBatch:
    return CorruptBatch(what, where=f"record {index} of the batch with base offset {base_offset}")
