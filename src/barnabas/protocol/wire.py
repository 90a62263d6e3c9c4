"""Unsigned varints, the one wire type that has no struct code (compiled).

The generated codecs handle the usual one-byte case inline and call this module for the rest.
"""

from typing import Final

from mypy_extensions import i64

# Kafka reads an unsigned varint into 32 bits: five bytes, of which the last one adds four bits.
LAST_SHIFT: Final = 28


# Kafka rejects longer strings in every version, even if the length is a varint.
STRING_BYTES_MAX: Final = 32767


# Maximum number of items in all arrays of one request together. As objects they take about 100 MB.
ITEMS_MAX: Final = 250_000
# Maximum number of unknown tagged fields in one struct. Newer peers send a few.
UNKNOWN_TAGS_MAX: Final = 1_000


class BadWire(Exception):
    """Raised by generated code; codec.py turns it into Malformed with the error and its path."""


def read_uvarint(buf: bytes, at: i64) -> tuple[i64, i64]:
    """Return the value at `at` and the position after it; IndexError at the end of the frame."""
    first: i64 = buf[at]
    if first < 0x80:
        return first, at + 1
    return rest_of_uvarint(buf, at + 1, first)


def rest_of_uvarint(buf: bytes, at: i64, first: i64) -> tuple[i64, i64]:
    """Finish a varint whose first byte, which had its high bit set, has been read.

    As in Kafka the result is a 32-bit int: higher bits of the fifth byte are dropped, and what is
    2^31 or more comes out negative, which callers take for null or refuse.
    """
    value: i64 = first & 0x7F
    shift: i64 = 7
    while shift <= LAST_SHIFT:
        byte: i64 = buf[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return (value - 0x100000000 if value > 0x7FFFFFFF else value), at
        shift += 7
    raise BadWire


def write_uvarint(value: int) -> bytes:
    """The bytes of a 32-bit value; negative ones as they are read."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise ValueError(f"{value} does not fit a varint of 32 bits")
    rest = value & 0xFFFFFFFF
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_ONE_BYTE: Final = [bytes((value,)) for value in range(0x80)]
