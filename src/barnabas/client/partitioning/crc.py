"""The partition of a key by CRC-32, as librdkafka's `consistent` and `consistent_random` choose it.

librdkafka's default. The checksum is zlib's CRC-32 (not the CRC-32C of record batches), unsigned. Not
compiled: all of the work is in zlib.
"""

from zlib import crc32


def consistent_partition(key: bytes, partitions: int) -> int:
    """The partition of this key in a topic that has `partitions` of them."""
    assert partitions > 0, f"a topic of {partitions} partitions"
    return crc32(key) % partitions
