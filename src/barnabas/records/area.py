"""The record area, which follows a batch's header: find it decompressed, and bound the record count."""

from typing import Final

from barnabas.records.codecs import MAX_DECOMPRESSED, decompress
from barnabas.records.errors import CorruptBatch, batch_at
from barnabas.records.header import INT32_MAX, INT64_MAX, RECORDS_AT, BatchHeader, ByteSource, Codec

# Length, attributes, two deltas, two lengths and the header count: at least a byte each.
MIN_RECORD_SIZE: Final = 7
# The lengths of name and value.
MIN_HEADER_SIZE: Final = 2
# The length of a null key or value.
NULL: Final = -1


class BadRecord(Exception):
    """A record that does not parse. Internal to this package: callers add the batch and record number."""


def record_area(
    data: ByteSource, at: int, header: BatchHeader, *, limit: int = MAX_DECOMPRESSED
) -> tuple[bytes, int, int]:
    """Return bytes that contain the batch's decompressed records, and the records' start and end in them.

    An uncompressed batch inside a bytes object is used in place; anything else is decompressed or copied.
    """
    start = at + RECORDS_AT
    end = at + header.size
    if end > len(data):
        raise CorruptBatch(
            f"batch size {header.size} exceeds the {len(data) - at} bytes left", where=batch_at(at)
        )
    codec = header.codec
    if codec is Codec.NONE and isinstance(data, bytes):
        return data, start, end
    # Compaction leaves batches without records; their area is empty with any codec.
    if start == end:
        return b"", 0, 0
    area = decompress(codec, memoryview(data)[start:end], limit=limit)
    return area, 0, len(area)


def check_count(header: BatchHeader, size: int, at: int) -> None:
    """Reject a record count that `size` bytes cannot hold, before memory is allocated for it."""
    if header.count < 0 or header.count * MIN_RECORD_SIZE > size:
        raise CorruptBatch(f"{header.count} records do not fit in {size} bytes", where=batch_at(at))
    if not 0 <= header.base_offset <= INT64_MAX - INT32_MAX:
        raise CorruptBatch(f"base offset {header.base_offset} is out of range", where=batch_at(at))
