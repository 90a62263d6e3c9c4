"""The partition of an internal topic for a group or transactional id: Java's String.hashCode(), as in Kafka.
Pure."""

from typing import Final

from mypy_extensions import i64

_MASK: Final[i64] = 0xFFFFFFFF
_SIGN: Final[i64] = 0x80000000


def partition_of(name: str, partitions: int) -> int:
    return abs_hash(name) % partitions


def abs_hash(name: str) -> int:
    """The absolute value of String.hashCode(); 0 for -2^31, which has none in 32 bits."""
    value: i64 = 0
    if name.isascii():
        letters = name.encode("ascii")
        for at in range(len(letters)):
            value = (31 * value + i64(letters[at])) & _MASK
    else:
        units = name.encode("utf-16-be", "surrogatepass")
        for at in range(0, len(units), 2):
            value = (31 * value + i64(units[at] << 8 | units[at + 1])) & _MASK
    if value & _SIGN:
        value = (_MASK + 1 - value) & _MASK
    return 0 if value == _SIGN else int(value)
