"""Is this batch sound, and may this sender send it?

Three depths. check_batch() reads the header and the CRC: what comes from a disk or from a peer. Compacted
batches have holes, so it asks only that the records could be there. check_produced() adds the rules for
producers, still from the header alone. check_records() unpacks and walks the records, for the topics
whose settings depend on them.
"""

from typing import NamedTuple

from barnabas.records.area import MIN_RECORD_SIZE, BadRecord, check_count, record_area
from barnabas.records.codecs import MAX_DECOMPRESSED
from barnabas.records.crc import ByteSource, crc32c_of
from barnabas.records.errors import CorruptBatch, InvalidBatch, UnknownCodec, batch_at
from barnabas.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    HEADER_SIZE,
    KNOWN_ATTRIBUTES,
    BatchHeader,
    Codec,
    TimestampType,
    read_header,
)
from barnabas.records.timestamp import is_too_late
from barnabas.records.walk import Walk, walk


def check_batch(data: ByteSource, at: int = 0) -> BatchHeader:
    """Check the batch at `at`, whoever wrote it: length, magic, CRC, and a header that can be true."""
    header = _check_frame(data, at)
    # A batch takes at least one offset, or a reader that goes from offset to offset would not get past it.
    if header.last_offset_delta < 0 or not 0 <= header.count <= header.last_offset_delta + 1:
        raise CorruptBatch(
            f"{header.count} records cannot have a last offset delta of {header.last_offset_delta}",
            where=batch_at(at),
        )
    # What compressed records unpack to is not known here: their number is checked when they are unpacked.
    if header.attributes & CODEC_BITS == Codec.NONE:
        check_count(header, header.size - HEADER_SIZE, at)
    return header


def _check_frame(data: ByteSource, at: int) -> BatchHeader:
    """It came whole and unharmed, and in a form that exists."""
    header = read_header(data, at)
    end = at + header.size
    if end > len(data):
        raise CorruptBatch(
            f"it claims {header.size} bytes and {len(data) - at} are there", where=batch_at(at)
        )
    crc = crc32c_of(data, at + ATTRIBUTES_AT, end)
    if crc != header.crc:
        raise CorruptBatch(f"CRC is {crc:#010x}, the header says {header.crc:#010x}", where=batch_at(at))
    codec_bits = header.attributes & CODEC_BITS
    if codec_bits > Codec.ZSTD:
        raise UnknownCodec(f"compression codec {codec_bits} does not exist", where=batch_at(at))
    if header.attributes & ~KNOWN_ATTRIBUTES:
        raise CorruptBatch(f"unknown attributes {header.attributes & 0xFFFF:#06x}", where=batch_at(at))
    return header


def check_produced(data: ByteSource, at: int = 0, *, end: int | None = None) -> BatchHeader:
    """Check what a producer sent for one partition: one batch that fills data[at:end] and obeys the rules.

    The rules are those of Kafka's broker for what clients append, read from the header alone. That the
    maximum timestamp is the records' own is the producer's word: some clients leave it out, so it may be
    before the first. check_records() finds the real one.
    """
    end = len(data) if end is None else end
    if at == end:
        raise InvalidBatch("there is no batch", where=batch_at(at))
    header = _check_frame(data, at)
    if at + header.size != end:
        raise InvalidBatch(
            f"{end - at - header.size} bytes follow it: only one batch per partition may be sent",
            where=batch_at(at),
        )
    wrong = _broken_rule(header)
    if wrong is not None:
        raise InvalidBatch(wrong, where=batch_at(at))
    # Nothing is wrong but, perhaps, what no batch may be.
    return check_batch(data, at)


def _broken_rule(header: BatchHeader) -> str | None:
    if header.is_control:
        return "clients may not write control batches"
    if header.base_offset != 0:
        return f"base offset is {header.base_offset}, a producer's must be 0"
    if header.count == 0:
        return "it holds no records"
    if header.count < 0:
        return f"it says that it holds {header.count} records"
    if header.codec is Codec.NONE and header.count * MIN_RECORD_SIZE > header.size - HEADER_SIZE:
        return f"{header.count} records cannot be in {header.size - HEADER_SIZE} bytes"
    if header.last_offset_delta != header.count - 1:
        return f"last offset delta {header.last_offset_delta} does not match its {header.count} records"
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return "only the broker may set the timestamp type to LogAppendTime"
    if header.has_delete_horizon:
        return "only compaction may set a delete horizon"
    if is_too_late(header.base_timestamp) or is_too_late(header.max_timestamp):
        return f"timestamps {header.base_timestamp} to {header.max_timestamp} are out of range"
    return _broken_producer_rule(header)


def _broken_producer_rule(header: BatchHeader) -> str | None:
    if header.has_producer_id:
        if header.base_sequence < 0:
            return f"sequence {header.base_sequence} with producer id {header.producer_id}"
        if header.producer_epoch < 0:
            return f"epoch {header.producer_epoch} with producer id {header.producer_id}"
    elif header.is_transactional:
        return "it is transactional without a producer id"
    return None


class RecordFacts(NamedTuple):
    """What check_records() saw. Timestamps are NO_TIMESTAMP if no record has one."""

    max_timestamp: int
    min_timestamp: int
    first_null_key: int | None


def check_records(data: ByteSource, at: int = 0, *, limit: int = MAX_DECOMPRESSED) -> RecordFacts:
    """Unpack and walk the records of a produced batch: they parse to the last byte and count 0, 1, 2..."""
    header = read_header(data, at)
    area, start, end = record_area(data, at, header, limit=limit)
    check_count(header, end - start, at)
    found = Walk()
    try:
        walk(area, start, end, header.count, header.base_timestamp, found)
    except BadRecord as wrong:
        raise CorruptBatch(str(wrong), where=f"{batch_at(at)}, record {found.seen}") from None
    null_key = found.first_null_key
    return RecordFacts(found.max_timestamp, found.min_timestamp, null_key if null_key >= 0 else None)
