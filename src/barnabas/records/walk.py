"""Check records in one pass without creating objects (compiled).

For produced batches: the records must fill the area exactly, their offset deltas must count up from 0, and
Walk collects the facts that a topic's settings need.
"""

from mypy_extensions import i64

from barnabas.records.area import MIN_HEADER_SIZE, MIN_RECORD_SIZE, NULL, BadRecord
from barnabas.records.decode import BAD, add_timestamps, read_varint
from barnabas.records.header import NO_TIMESTAMP


class Walk:
    """The state of walk(); `seen` is the index of the record of a BadRecord."""

    def __init__(self) -> None:
        self.seen: i64 = 0
        self.max_timestamp: i64 = NO_TIMESTAMP
        # The earliest timestamp of records that have one, or NO_TIMESTAMP.
        self.min_timestamp: i64 = NO_TIMESTAMP
        # The index of the first record without a key, or -1.
        self.first_null_key: i64 = -1


def walk(data: bytes, at: i64, end: i64, count: i64, base_timestamp: i64, into: Walk) -> None:
    """Check the `count` records of data[at:end] and collect facts about them."""
    for index in range(count):
        into.seen = index
        length, body = read_varint(data, at, end)
        if body == BAD or length < MIN_RECORD_SIZE - 1 or length > end - body:
            raise BadRecord(f"record length {length} is out of range, {end - at} bytes are left")
        at = body + length
        _record(data, body, at, index, base_timestamp, into)
    into.seen = count
    if at != end:
        raise BadRecord(f"{end - at} bytes follow the last record")


def _record(data: bytes, at: i64, stop: i64, index: i64, base_timestamp: i64, into: Walk) -> None:
    timestamp_delta, at = read_varint(data, at + 1, stop)
    if at == BAD:
        raise BadRecord("timestamp delta is truncated")
    timestamp = add_timestamps(base_timestamp, timestamp_delta)
    if timestamp > into.max_timestamp:
        into.max_timestamp = timestamp
    if timestamp != NO_TIMESTAMP and (into.min_timestamp == NO_TIMESTAMP or timestamp < into.min_timestamp):
        into.min_timestamp = timestamp
    offset_delta, at = read_varint(data, at, stop)
    if at == BAD or offset_delta != index:
        raise BadRecord(f"offset delta is {offset_delta}, expected {index}")
    size, at = read_varint(data, at, stop)
    if at == BAD or size < NULL or size > stop - at:
        raise BadRecord(f"key length {size} is out of range")
    if size >= 0:
        at += size
    elif into.first_null_key < 0:
        into.first_null_key = index
    size, at = read_varint(data, at, stop)
    if at == BAD or size < NULL or size > stop - at:
        raise BadRecord(f"value length {size} is out of range")
    if size >= 0:
        at += size
    _headers(data, at, stop)


def _headers(data: bytes, at: i64, stop: i64) -> None:
    count, at = read_varint(data, at, stop)
    if at == BAD or count < 0 or count > (stop - at) // MIN_HEADER_SIZE:
        raise BadRecord(f"header count {count} is out of range")
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
