"""Which timestamps a batch can hold (compiled)."""

from typing import Final

from mypy_extensions import i64

NO_TIMESTAMP: Final = -1
# Half of the largest number: one bit more and the literal would be a Python object to mypyc.
HALF_OF_MAX: Final = 0x3FFFFFFFFFFFFFFF


def is_too_late(timestamp: i64) -> bool:
    """Whether a time is within two of the largest number. Differences to it would not fit into 64 bits."""
    return timestamp >> 1 >= HALF_OF_MAX


def is_out_of_range(timestamp: i64) -> bool:
    """Whether we do not write a record's time: before 1970, or within two of the largest number.

    Producers may write times before 1970, as with Kafka: is_too_late() is the bound for their batches.

    Times in a batch are differences to the first one. From -1, which means none, to the largest number it
    is one more than 64 bits hold.
    """
    return timestamp < NO_TIMESTAMP or timestamp >> 1 >= HALF_OF_MAX
