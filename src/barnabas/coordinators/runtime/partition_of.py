"""Which partition of an internal topic a name belongs to: Java's hash of the text, as in Kafka. Pure."""

from functools import lru_cache
from typing import Final

_MASK: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000


def partition_of(name: str, partitions: int) -> int:
    return abs_hash(name) % partitions


# A group is asked for again and again.
@lru_cache(maxsize=4096)
def abs_hash(name: str) -> int:
    """The absolute value of String.hashCode(); the one that has none in 32 bits counts as zero."""
    value = 0
    units = name.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & _MASK
    if value & _SIGN:
        value = (_MASK + 1 - value) & _MASK
    return 0 if value == _SIGN else value
