"""Build batches from records (compiled).

BatchBuilder takes one record at a time until the batch is full, as a producer fills batches. build_batch()
builds a batch from a list of records, and plain_batch() from records with only keys and values. seal() makes
a batch of a header and an encoded record area; rebuild.py does so for compaction.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from barnabas.base.crc32c import crc32c
from barnabas.records.codecs import MAX_DECOMPRESSED, compress
from barnabas.records.encode import body_size, is_out_of_range, pack_headers, varint_size, write_record
from barnabas.records.errors import RecordTooLarge, TimestampOutOfRange
from barnabas.records.header import (
    CONTROL_BIT,
    COVERED,
    COVERED_SIZE,
    HEADER_SIZE,
    INT32_MAX,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MIN_BATCH_LENGTH,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Codec,
    TimestampType,
)
from barnabas.records.record import Header

# The first field of a header that the CRC covers.
_COVERED_FROM: Final = 5
_TWO_TO_32: Final[i64] = 1 << 32
# Cached, because accessing an enum member is a look-up by name.
_UNCOMPRESSED: Final = Codec.NONE
_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME

# A larger area could not be read again, because of the decompression limit.
MAX_RECORD_AREA: Final = MAX_DECOMPRESSED
DEFAULT_MAX_BYTES: Final = 1024 * 1024

_NO_ATTRIBUTES: Final[i16] = 0
_INT16_MIN: Final = -0x8000
_INT16_MAX: Final = 0x7FFF
_INT32_MIN: Final = -0x80000000

# Timestamp, key, value, headers.
NewRecord: TypeAlias = tuple[int, bytes | None, bytes | None, Sequence[Header]]


class BatchBuilder:
    """A batch being filled. `size` is its exact size without compression."""

    def __init__(
        self,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        base_offset: int = 0,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        control: bool = False,
        leader_epoch: int = NO_LEADER_EPOCH,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    ) -> None:
        self._out = BytesWriter()
        self._max_area: i64 = min(max_bytes - HEADER_SIZE, MAX_RECORD_AREA)
        self._count: i64 = 0
        self._base_timestamp: i64 = NO_TIMESTAMP
        self._max_timestamp: i64 = NO_TIMESTAMP
        self._codec = codec
        self._level = level
        self._base_offset = base_offset
        self.number(producer_id, producer_epoch, base_sequence)
        self._leader_epoch = leader_epoch
        self._attributes: i64 = _attributes_of(
            codec, timestamp_type, transactional=transactional, control=control
        )

    @property
    def count(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        return HEADER_SIZE + len(self._out)

    def append(
        self, timestamp: i64, key: bytes | None, value: bytes | None, headers: Sequence[Header] = ()
    ) -> bool:
        """Add a record, or return False if the batch would grow past max_bytes.

        The first record is always accepted, because a batch cannot be split further; RecordTooLarge if it
        exceeds MAX_RECORD_AREA. A timestamp before 1970 is rejected, as in Kafka's own builder.
        """
        if is_out_of_range(timestamp):
            raise TimestampOutOfRange(timestamp)
        base = timestamp if self._count == 0 else self._base_timestamp
        packed = b"" if not headers else pack_headers(headers)
        count: i64 = 0 if not headers else len(headers)
        body = body_size(timestamp - base, self._count, key, value, count, len(packed))
        area = len(self._out) + varint_size(body) + body
        if self._count == 0:
            if area > MAX_RECORD_AREA:
                raise RecordTooLarge(size=area, limit=MAX_RECORD_AREA)
            self._base_timestamp = timestamp
            self._max_timestamp = timestamp
        elif area > self._max_area:
            return False
        write_record(self._out, body, timestamp - base, self._count, key, value, count, packed)
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        self._count += 1
        return True

    def number(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Set the producer's id, epoch and sequence, if they were not known before."""
        assert _INT16_MIN <= producer_epoch <= _INT16_MAX, producer_epoch
        assert _INT32_MIN <= base_sequence <= INT32_MAX, base_sequence
        self._producer_id: i64 = producer_id
        self._producer_epoch: i64 = producer_epoch
        self._base_sequence: i64 = base_sequence

    def build(self) -> bytes:
        """Return the batch; more records may be appended and built again."""
        assert self._count > 0, "an empty batch has no last offset"
        signed = BytesWriter()
        write_i16_be(signed, i16(self._attributes))
        write_i32_be(signed, i32(self._count - 1))
        write_i64_be(signed, self._base_timestamp)
        write_i64_be(signed, self._max_timestamp)
        write_i64_be(signed, self._producer_id)
        write_i16_be(signed, i16(self._producer_epoch))
        write_i32_be(signed, i32(self._base_sequence))
        write_i32_be(signed, i32(self._count))
        return _sign(
            self._base_offset,
            self._leader_epoch,
            signed.getvalue(),
            self._out.getvalue(),
            self._codec,
            self._level,
        )


def plain_batch(
    records: list[tuple[bytes, bytes | None]],
    timestamp: i64,
    *,
    base_offset: i64,
    leader_epoch: i64,
) -> bytes:
    """Build one batch of keys and values with one timestamp: no codec, no producer, no headers.

    The result equals that of build_batch() for half of the work: bytes under the CRC are written at once.
    """
    if is_out_of_range(timestamp):
        raise TimestampOutOfRange(timestamp)
    count: i64 = len(records)
    assert count > 0, "an empty batch has no last offset"
    out = BytesWriter()
    write_i16_be(out, _NO_ATTRIBUTES)
    write_i32_be(out, i32(count - 1))
    write_i64_be(out, timestamp)
    write_i64_be(out, timestamp)
    write_i64_be(out, NO_PRODUCER_ID)
    write_i16_be(out, i16(NO_PRODUCER_EPOCH))
    write_i32_be(out, i32(NO_SEQUENCE))
    write_i32_be(out, i32(count))
    for delta in range(count):
        key, value = records[delta]
        write_record(out, body_size(0, delta, key, value, 0, 0), 0, delta, key, value, 0, b"")
    return _sign_plain(base_offset, leader_epoch, out.getvalue())


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> bytes:
    """Build one batch of all `records`, with consecutive offsets from `base_offset`."""
    builder = BatchBuilder(
        max_bytes=HEADER_SIZE + MAX_RECORD_AREA,
        base_offset=base_offset,
        codec=codec,
        level=level,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        control=control,
        leader_epoch=leader_epoch,
        timestamp_type=timestamp_type,
    )
    for timestamp, key, value, headers in records:
        if not builder.append(timestamp, key, value, headers):
            raise RecordTooLarge(size=builder.size, limit=MAX_RECORD_AREA)
    return builder.build()


def _attributes_of(codec: Codec, timestamp_type: TimestampType, *, transactional: bool, control: bool) -> int:
    """The attributes field."""
    bits = int(codec)
    if timestamp_type is _LOG_APPEND_TIME:
        bits |= LOG_APPEND_TIME_BIT
    if transactional:
        bits |= TRANSACTIONAL_BIT
    if control:
        bits |= CONTROL_BIT
    return bits


def seal(header: BatchHeader, area: bytes, codec: Codec, level: int | None = None) -> bytes:
    """Return the whole batch: `header` with its length and CRC filled in, then `area` compressed."""
    return _sign(
        header.base_offset, header.leader_epoch, COVERED.pack(*header[_COVERED_FROM:]), area, codec, level
    )


def _sign(
    base_offset: int, leader_epoch: int, signed: bytes, area: bytes, codec: Codec, level: int | None
) -> bytes:
    """seal() with the header fields that the CRC covers packed already."""
    packed = area if codec is _UNCOMPRESSED else compress(codec, area, level)
    # The CRC of the header part is continued over the records, so the two need not be joined first.
    crc = crc32c(packed, crc32c(signed))
    return b"".join((_head(base_offset, leader_epoch, len(packed), crc), signed, packed))


def _sign_plain(base_offset: int, leader_epoch: int, covered: bytes) -> bytes:
    """seal() for an uncompressed batch; `covered` is everything that the CRC covers."""
    return _head(base_offset, leader_epoch, len(covered) - COVERED_SIZE, crc32c(covered)) + covered


def _head(base_offset: i64, leader_epoch: i64, area_size: i64, crc: i64) -> bytes:
    """Encode the header up to and including the CRC."""
    head = BytesWriter()
    write_i64_be(head, base_offset)
    write_i32_be(head, i32(MIN_BATCH_LENGTH + area_size))
    write_i32_be(head, i32(leader_epoch))
    head.append(MAGIC)
    write_i32_be(head, i32(crc if crc <= INT32_MAX else crc - _TWO_TO_32))
    return head.getvalue()
