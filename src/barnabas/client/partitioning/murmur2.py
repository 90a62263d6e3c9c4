"""Murmur2 as Java's producer computes it, and the partition that follows from it (compiled).

Java's default partitioner and librdkafka's `murmur2` and `murmur2_random` agree on every key. The hash is
Austin Appleby's 32-bit MurmurHash2, read in little-endian words, with a seed that Kafka chose.

Measured on keys of 8, 36 and 100 bytes, in nanoseconds a key: compiled 9, 15 and 32 in a list, and 34, 42 and
59 one at a time; interpreted 1,400, 4,400 and 11,500 either way.
"""

from typing import Final

from librt.strings import read_i32_le
from mypy_extensions import i64

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
SHIFT: Final = 24

# Words are kept in 64 bits. Compiled, a product wraps around at 64 bits and interpreted it does not; the mask
# leaves the same 32 bits of either.
MASK: Final = 0xFFFFFFFF
SIGN_BIT: Final = 0x80000000
# As in Java's producer, drop the sign bit so that no partition is negative.
POSITIVE: Final = 0x7FFFFFFF


def murmur2(key: bytes) -> int:
    """Return the hash as in Java: a signed 32-bit number."""
    bits: i64 = hash_bits(key)
    return bits - (MASK + 1) if bits & SIGN_BIT else bits


def murmur2_partition(key: bytes, partitions: int) -> int:
    """The partition of this key in a topic that has `partitions` of them."""
    assert partitions > 0, f"a topic of {partitions} partitions"
    count: i64 = partitions
    return (hash_bits(key) & POSITIVE) % count


def murmur2_partitions(keys: list[bytes], partitions: int) -> list[int]:
    """Return the partitions of many keys, in order."""
    assert partitions > 0, f"a topic of {partitions} partitions"
    count: i64 = partitions
    return [(hash_bits(key) & POSITIVE) % count for key in keys]


def hash_bits(key: bytes) -> i64:
    """The 32 bits of the hash, without a sign."""
    size: i64 = len(key)
    state: i64 = (SEED ^ size) & MASK
    at: i64 = 0
    while size - at >= 4:
        word: i64 = i64(read_i32_le(key, at))
        word = (word * MULTIPLIER) & MASK
        word ^= word >> SHIFT
        word = (word * MULTIPLIER) & MASK
        state = ((state * MULTIPLIER) & MASK) ^ word
        at += 4
    if at < size:
        state = ((state ^ last_word(key, at, size)) * MULTIPLIER) & MASK
    state ^= state >> 13
    state = (state * MULTIPLIER) & MASK
    return state ^ (state >> 15)


def last_word(key: bytes, at: i64, end: i64) -> i64:
    """Return the last one to three bytes as a little-endian number."""
    word: i64 = 0
    while end > at:
        end -= 1
        byte: i64 = key[end]
        word = (word << 8) | byte
    return word
