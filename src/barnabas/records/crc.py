"""CRC-32C, the checksum of a batch, over a part of a buffer without copying it."""

from typing import TypeAlias

from barnabas.base.crc32c import crc32c

ByteSource: TypeAlias = bytes | bytearray | memoryview


def crc32c_of(data: ByteSource, start: int, end: int) -> int:
    """Compute the CRC-32C of data[start:end]."""
    # A slice of bytes would copy the batch, a slice of a memoryview does not.
    return crc32c(memoryview(data)[start:end])
