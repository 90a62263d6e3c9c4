"""Count the records of an uncompressed batch and find its latest timestamp (compiled).

It reads only lengths and timestamps, so that a broker can afford it for every batch. walk.py checks
everything.
"""

from typing import Final

from mypy_extensions import i64

from barnabas.records.area import MIN_RECORD_SIZE
from barnabas.records.varint import BAD, read_varint

# Returned by latest_delta() if the records do not match the header. No delta is that low.
NOT_SO: Final[i64] = -0x7FFFFFFFFFFFFFFF


def latest_delta(data: bytes, at: i64, end: i64, count: i64) -> i64:
    """The largest timestamp delta of `count` records; NOT_SO if they do not fill data[at:end] exactly."""
    latest: i64 = NOT_SO
    while count > 0:
        length: i64 = data[at] if at < end else 0x80
        body: i64 = at + 1
        if length >= 0x80:
            length, body = read_varint(data, at, end)
            if body == BAD:
                return NOT_SO
        else:
            # Fast path for records of up to 63 bytes. The zigzag of a length is never odd.
            if length & 1:
                return NOT_SO
            length >>= 1
        if length < MIN_RECORD_SIZE - 1 or length > end - body:
            return NOT_SO
        delta: i64 = data[body + 1]
        if delta < 0x80:
            delta = (delta >> 1) ^ -(delta & 1)
        else:
            delta, past = read_varint(data, body + 1, body + length)
            if past == BAD:
                return NOT_SO
        if delta > latest:
            latest = delta
        at = body + length
        count -= 1
    return latest if at == end else NOT_SO
