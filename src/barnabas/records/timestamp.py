"""The range of valid timestamps (compiled)."""

from typing import Final

from mypy_extensions import i64

NO_TIMESTAMP: Final = -1
# Half of the largest i64: mypyc compiles a larger literal to a Python object.
HALF_OF_MAX: Final = 0x3FFFFFFFFFFFFFFF


def is_too_late(timestamp: i64) -> bool:
    """Whether a timestamp is one of the two largest i64 numbers, where deltas would overflow."""
    return timestamp >> 1 >= HALF_OF_MAX


def is_out_of_range(timestamp: i64) -> bool:
    """Whether we must not write a timestamp: before 1970, or one of the two largest i64 numbers.

    As in Kafka, producers may write timestamps before 1970: is_too_late() is the bound for their batches.

    Timestamps in a batch are deltas to the first one, and the delta from -1, which means none, to the largest
    i64 number overflows.
    """
    return timestamp < NO_TIMESTAMP or timestamp >> 1 >= HALF_OF_MAX
