"""Re-encode a batch after compaction removed some records (compiled).

The records keep their offsets, so there are gaps. Base offset and last offset delta stay even if the first or
the last record is gone, because the producer's last sequence follows from them: without it the producer's
next batch would look out of order after a restart. For the same reason even a batch without records may be
kept.
"""

from collections.abc import Sequence

from librt.strings import BytesWriter
from mypy_extensions import i64

from barnabas.records.builder import seal
from barnabas.records.encode import body_size, pack_headers, write_record
from barnabas.records.header import (
    CODEC_BITS,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    Codec,
)
from barnabas.records.record import Record


def rebuild_batch(
    header: BatchHeader,
    records: Sequence[Record],
    *,
    level: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """Encode `records`, a subset of the batch of `header`, with all other header fields unchanged.

    An existing delete horizon stays unless a new one is given. It replaces the base timestamp, so timestamps
    are relative to it. (KIP-534)
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
        # With LogAppendTime every record has the batch's max timestamp, so this is right for both types.
        max_timestamp=max(record.timestamp for record in records),
        count=len(records),
    )
    area = write_records(records, header.base_offset, base_timestamp)
    return seal(left, area, header.codec, level)


def empty_batch(header: BatchHeader) -> bytes:
    """The batch of `header` without records; it preserves the offsets and the producer's sequence."""
    attributes = header.attributes & ~(CODEC_BITS | DELETE_HORIZON_BIT)
    left = header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, count=0)
    return seal(left, b"", Codec.NONE)


def write_records(records: Sequence[Record], base_offset: i64, base_timestamp: i64) -> bytes:
    """Encode a record area in which every record keeps its offset."""
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
