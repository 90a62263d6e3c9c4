"""How Java reckons and prints: a damaged header makes numbers that only come out the same this way."""

import re
from typing import Final

INT_MAX: Final = 0x7FFFFFFF
REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


def int32(value: int) -> int:
    """What is left of a sum in 32 bits."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def int64(value: int) -> int:
    """What is left of a sum in 64 bits."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def add_to_sequence(sequence: int, count: int) -> int:
    """A sequence number that many records later: after 2**31 - 1 comes 0."""
    if sequence > int32(INT_MAX - count):
        return int32(count - (INT_MAX - sequence) - 1)
    return int32(sequence + count)


def take_from_sequence(sequence: int, count: int) -> int:
    """A sequence number that many records earlier."""
    if sequence < count:
        return int32(INT_MAX - (count - sequence) + 1)
    return int32(sequence - count)


def boolean(value: bool) -> str:
    return "true" if value else "false"


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def string(data: bytes) -> str:
    """Bytes as text, with a replacement character for what is no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        # Half a surrogate pair written like a character is one mistake to Java and three to Python.
        return _SURROGATE.sub(REPLACEMENT.encode(), data).decode("utf-8", "replace")
