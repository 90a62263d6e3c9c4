"""The partition of a key by FNV-1a, as librdkafka's `fnv1a` and `fnv1a_random` choose it (compiled).

It exists for compatibility with Sarama, Go's older client, and follows Sarama's partitioner: the absolute
value of the 32-bit hash of Fowler, Noll and Vo as a signed number.
"""

from typing import Final

from mypy_extensions import i64

OFFSET: Final = 0x811C9DC5
PRIME: Final = 0x01000193

MASK: Final = 0xFFFFFFFF
SIGN_BIT: Final = 0x80000000


def fnv1a_partition(key: bytes, partitions: int) -> int:
    """The partition of this key in a topic that has `partitions` of them."""
    assert partitions > 0, f"a topic of {partitions} partitions"
    count: i64 = partitions
    return absolute_hash(key) % count


def absolute_hash(key: bytes) -> i64:
    """The hash without its sign."""
    state: i64 = OFFSET
    at: i64 = 0
    size: i64 = len(key)
    while at < size:
        byte: i64 = key[at]
        state = ((state ^ byte) * PRIME) & MASK
        at += 1
    # The lowest number has no positive counterpart in 32 bits, but librdkafka uses the unsigned result,
    # which is 2**31, as here.
    return (MASK + 1) - state if state & SIGN_BIT else state
