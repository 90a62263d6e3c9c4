"""Zigzag varints of records (compiled).

Callers in other kernels pass i64 positions and get C speed. A bad varint is reported by the position BAD
instead of an exception, because the caller knows what it was reading.
"""

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64, u8

BAD: Final = -1

# A varlong has at most ten bytes: nine hold 63 bits, the tenth the last one.
MAX_SHIFT: Final = 63


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
