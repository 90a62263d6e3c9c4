"""Which timestamps a batch can hold (compiled)."""

from typing import Final

from mypy_extensions import i64

NO_TIMESTAMP: Final = -1
# Half of the largest number: one bit more and the literal would be a Python object to mypyc.
HALF_OF_MAX: Final = 0x3FFFFFFFFFFFFFFF


def is_out_of_range(timestamp: i64) -> bool:
    """Whether a record's time cannot be written: before 1970, or within two of the largest number.

    Times in a batch are differences to the first one. From -1, which means none, to the largest number it
    is one more than 64 bits hold.
    """
    return timestamp < NO_TIMESTAMP or timestamp >> 1 >= HALF_OF_MAX
