"""What compaction leaves of a batch, written as a batch again (compiled).

The records keep their offsets, so there are holes. Base offset and last offset delta stay even when the
first or the last record is gone, because the last sequence of a producer follows from them: without it the
producer's next batch would look out of order after a restart. For the same reason a batch without any
records left may still be kept.
"""

from collections.abc import Sequence

from librt.strings import BytesWriter
from mypy_extensions import i64

from barnabas.records.encode import body_size, pack_headers, write_record
from barnabas.records.header import (
    CODEC_BITS,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    Codec,
)
from barnabas.records.record import Record
from barnabas.records.seal import seal


def rebuild_batch(
    header: BatchHeader,
    records: Sequence[Record],
    *,
    level: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """Write `records`, some of those that were in the batch of `header`, with everything else as it was.

    A delete horizon that the batch already has stays, unless another is given. It takes the place of the
    base timestamp, so timestamps count from it. (KIP-534)
    """
    if not records:
        return empty_batch(header)
    horizon = header.delete_horizon_ms if delete_horizon_ms is None else delete_horizon_ms
    attributes = header.attributes
    base_timestamp = records[0].timestamp
    if horizon is not None:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = horizon
    left = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        # Under LogAppendTime every record has the batch's own maximum, so this is right for both.
        max_timestamp=max(record.timestamp for record in records),
        count=len(records),
    )
    area = write_records(records, header.base_offset, base_timestamp)
    return seal(left, area, header.codec, level)


def empty_batch(header: BatchHeader) -> bytes:
    """The batch of `header` with no records left in it: it holds the producer's sequence, and its offsets."""
    attributes = header.attributes & ~(CODEC_BITS | DELETE_HORIZON_BIT)
    left = header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, count=0)
    return seal(left, b"", Codec.NONE)


def write_records(records: Sequence[Record], base_offset: i64, base_timestamp: i64) -> bytes:
    """A record area in which every record keeps its offset."""
    out = BytesWriter()
    for record in records:
        headers = record.headers
        packed = b"" if not headers else pack_headers(headers)
        count: i64 = len(headers)
        timestamp_delta = record.timestamp - base_timestamp
        offset_delta = record.offset - base_offset
        body = body_size(timestamp_delta, offset_delta, record.key, record.value, count, len(packed))
        write_record(out, body, timestamp_delta, offset_delta, record.key, record.value, count, packed)
    return out.getvalue()
