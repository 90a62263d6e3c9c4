"""Validate batches, at three levels (compiled).

check_batch() checks header and CRC of a batch from a disk or a peer. Compacted batches have gaps, so it only
requires that the records fit. check_produced() adds the rules for producers, also from the header alone.
check_records() decompresses and walks the records, for topics whose settings depend on them.
"""

from typing import NamedTuple

from mypy_extensions import i64

from barnabas.records.area import MIN_RECORD_SIZE, BadRecord, check_count, record_area
from barnabas.records.codecs import MAX_DECOMPRESSED
from barnabas.records.decode import RecordCursor, add_timestamps
from barnabas.records.errors import CorruptBatch, InvalidBatch, UnknownCodec, batch_at
from barnabas.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    HEADER_SIZE,
    INT64_MAX,
    KNOWN_ATTRIBUTES,
    NO_TIMESTAMP,
    BatchHeader,
    ByteSource,
    Codec,
    TimestampType,
    crc32c_of,
    read_header,
)


def check_batch(data: ByteSource, at: int = 0) -> BatchHeader:
    """Check the batch at `at` from any source: length, magic, CRC, and a plausible header."""
    header = _check_frame(data, at)
    # A batch spans at least one offset, or a reader that advances by offsets would loop on it.
    if header.last_offset_delta < 0 or not 0 <= header.count <= header.last_offset_delta + 1:
        raise CorruptBatch(
            f"record count {header.count} does not match last offset delta {header.last_offset_delta}",
            where=batch_at(at),
        )
    # The count of compressed records is checked when they are decompressed.
    if header.attributes & CODEC_BITS == Codec.NONE:
        check_count(header, header.size - HEADER_SIZE, at)
    return header


def _check_frame(data: ByteSource, at: int) -> BatchHeader:
    """Check size, CRC, codec and attributes."""
    header = read_header(data, at)
    end = at + header.size
    if end > len(data):
        raise CorruptBatch(
            f"batch size {header.size} exceeds the {len(data) - at} bytes left", where=batch_at(at)
        )
    crc = crc32c_of(data, at + ATTRIBUTES_AT, end)
    if crc != header.crc:
        raise CorruptBatch(f"CRC is {crc:#010x}, header says {header.crc:#010x}", where=batch_at(at))
    codec_bits = header.attributes & CODEC_BITS
    if codec_bits > Codec.ZSTD:
        raise UnknownCodec(f"compression codec {codec_bits} does not exist", where=batch_at(at))
    if header.attributes & ~KNOWN_ATTRIBUTES:
        raise CorruptBatch(f"unknown attributes {header.attributes & 0xFFFF:#06x}", where=batch_at(at))
    return header


def check_produced(data: ByteSource, at: int = 0, *, end: int | None = None) -> BatchHeader:
    """Check that a producer sent one valid batch that fills data[at:end].

    The rules are those of Kafka's broker for clients, checked from the header alone. The max timestamp is not
    verified: some clients leave it out, so it may be below the first timestamp. check_records() finds the
    real one.
    """
    end = len(data) if end is None else end
    if at == end:
        raise InvalidBatch("no batch was sent", where=batch_at(at))
    header = _check_frame(data, at)
    if at + header.size != end:
        raise InvalidBatch(
            f"{end - at - header.size} bytes follow the batch; send one batch per partition",
            where=batch_at(at),
        )
    wrong = _broken_rule(header)
    if wrong is not None:
        raise InvalidBatch(wrong, where=batch_at(at))
    # Check the rules for all batches last, so that a broken producer rule is reported first.
    return check_batch(data, at)


def _broken_rule(header: BatchHeader) -> str | None:
    if header.is_control:
        return "clients may not write control batches"
    if header.base_offset != 0:
        return f"base offset is {header.base_offset}, expected 0"
    if header.count == 0:
        return "batch has no records"
    if header.count < 0:
        return f"record count {header.count} is negative"
    if header.codec is Codec.NONE and header.count * MIN_RECORD_SIZE > header.size - HEADER_SIZE:
        return f"{header.count} records do not fit in {header.size - HEADER_SIZE} bytes"
    if header.last_offset_delta != header.count - 1:
        return f"last offset delta {header.last_offset_delta} does not match record count {header.count}"
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return "only the broker may set the timestamp type to LogAppendTime"
    if header.has_delete_horizon:
        return "only compaction may set a delete horizon"
    if is_too_late(header.base_timestamp) or is_too_late(header.max_timestamp):
        return f"timestamps {header.base_timestamp} to {header.max_timestamp} are out of range"
    return _broken_producer_rule(header)


def is_too_late(timestamp: int) -> bool:
    """Whether a timestamp is one of the two largest i64 numbers, where deltas would overflow."""
    return timestamp >= INT64_MAX - 1


def _broken_producer_rule(header: BatchHeader) -> str | None:
    if header.has_producer_id:
        if header.base_sequence < 0:
            return f"sequence {header.base_sequence} is invalid with producer id {header.producer_id}"
        if header.producer_epoch < 0:
            return f"epoch {header.producer_epoch} is invalid with producer id {header.producer_id}"
    elif header.is_transactional:
        return "transactional batch has no producer id"
    return None


class RecordFacts(NamedTuple):
    """The result of check_records(). Timestamps are NO_TIMESTAMP if no record has one."""

    max_timestamp: int
    min_timestamp: int
    first_null_key: int | None


def check_records(data: ByteSource, at: int = 0, *, limit: int = MAX_DECOMPRESSED) -> RecordFacts:
    """Check that the records of a produced batch fill its area and have the offset deltas 0, 1, 2..."""
    header = read_header(data, at)
    area, start, end = record_area(data, at, header, limit=limit)
    check_count(header, end - start, at)
    cursor = RecordCursor()
    cursor.start_area(area, start, end, header.count)
    try:
        return _walk(cursor, header.base_timestamp)
    except BadRecord as wrong:
        raise CorruptBatch(str(wrong), where=f"{batch_at(at)}, record {cursor.index}") from None


def _walk(cursor: RecordCursor, base_timestamp: i64) -> RecordFacts:
    latest: i64 = NO_TIMESTAMP
    earliest: i64 = NO_TIMESTAMP
    first_null_key: int | None = None
    while cursor.next_record():
        timestamp = add_timestamps(base_timestamp, cursor.time_delta)
        if timestamp > latest:
            latest = timestamp
        if timestamp != NO_TIMESTAMP and (earliest == NO_TIMESTAMP or timestamp < earliest):
            earliest = timestamp
        if cursor.offset_delta != cursor.index:
            raise BadRecord(f"offset delta is {cursor.offset_delta}, expected {cursor.index}")
        if cursor.key_size < 0 and first_null_key is None:
            first_null_key = cursor.index
        cursor.check_headers()
    return RecordFacts(latest, earliest, first_null_key)
