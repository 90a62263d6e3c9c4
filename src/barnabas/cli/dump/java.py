"""Java's arithmetic and formatting, so that numbers of damaged headers are printed as in Kafka's tool."""

import re
from typing import Final

INT_MAX: Final = 0x7FFFFFFF
REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


def int32(value: int) -> int:
    """Wrap a number to 32 bits."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def int64(value: int) -> int:
    """Wrap a number to 64 bits."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def add_to_sequence(sequence: int, count: int) -> int:
    """Return the sequence number `count` records later; 2**31 - 1 wraps to 0."""
    if sequence > int32(INT_MAX - count):
        return int32(count - (INT_MAX - sequence) - 1)
    return int32(sequence + count)


def take_from_sequence(sequence: int, count: int) -> int:
    """Return the sequence number `count` records earlier."""
    if sequence < count:
        return int32(INT_MAX - (count - sequence) + 1)
    return int32(sequence - count)


def boolean(value: bool) -> str:
    return "true" if value else "false"


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def string(data: bytes) -> str:
    """Decode UTF-8, with replacement characters for invalid bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        # Java replaces an encoded lone surrogate with one character, Python with three.
        return _SURROGATE.sub(REPLACEMENT.encode(), data).decode("utf-8", "replace")
