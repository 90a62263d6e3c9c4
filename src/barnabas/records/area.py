"""The bytes behind a batch's header: where the unpacked records are, and how many can be in there."""

from typing import Final

from barnabas.records.codecs import MAX_DECOMPRESSED, decompress
from barnabas.records.crc import ByteSource
from barnabas.records.errors import CorruptBatch, batch_at
from barnabas.records.header import INT32_MAX, INT64_MAX, RECORDS_AT, BatchHeader, Codec

# Length, attributes, two deltas, two lengths and the number of headers: a byte each at least.
MIN_RECORD_SIZE: Final = 7
# The lengths of its name and of its value.
MIN_HEADER_SIZE: Final = 2
# The length of a null key or value.
NULL: Final = -1


class BadRecord(Exception):
    """A record that does not parse. It never leaves this room: the caller says which one of which batch."""


def record_area(
    data: ByteSource, at: int, header: BatchHeader, *, limit: int = MAX_DECOMPRESSED
) -> tuple[bytes, int, int]:
    """Return bytes that hold the batch's unpacked records, and where in them the records start and end.

    An uncompressed batch inside of bytes is used where it lies; anything else is unpacked or copied.
    """
    start = at + RECORDS_AT
    end = at + header.size
    if end > len(data):
        raise CorruptBatch(
            f"it claims {header.size} bytes and {len(data) - at} are there", where=batch_at(at)
        )
    codec = header.codec
    if codec is Codec.NONE and isinstance(data, bytes):
        return data, start, end
    # Compaction leaves batches without records, whose area is empty whatever their codec.
    if start == end:
        return b"", 0, 0
    area = decompress(codec, memoryview(data)[start:end], limit=limit)
    return area, 0, len(area)


def check_count(header: BatchHeader, size: int, at: int) -> None:
    """Refuse a number of records that `size` bytes cannot hold, before anything is done by that number."""
    if header.count < 0 or header.count * MIN_RECORD_SIZE > size:
        raise CorruptBatch(f"{header.count} records cannot be in {size} bytes", where=batch_at(at))
    if not 0 <= header.base_offset <= INT64_MAX - INT32_MAX:
        raise CorruptBatch(f"base offset {header.base_offset} is out of range", where=batch_at(at))
