"""The 61-byte header of a record batch (compiled): its layout, and functions to read and stamp it.

Every other module takes positions, formats and attribute bits from here. Compiled modules inline numbers.

Base offset, length, leader epoch and magic come before the CRC and are not covered by it, so assigning an
offset does not change the checksum. The CRC covers everything from the attributes to the end of the batch.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from barnabas.base.crc32c import crc32c
from barnabas.records.errors import CorruptBatch, UnknownCodec, UnsupportedMagic, batch_at

ByteSource: TypeAlias = bytes | bytearray | memoryview

MAGIC: Final = 2

# Position of each field in the batch.
BASE_OFFSET_AT: Final = 0
BATCH_LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
LAST_OFFSET_DELTA_AT: Final = 23
BASE_TIMESTAMP_AT: Final = 27
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_ID_AT: Final = 43
PRODUCER_EPOCH_AT: Final = 51
BASE_SEQUENCE_AT: Final = 53
COUNT_AT: Final = 57
RECORDS_AT: Final = 61

HEADER_SIZE: Final = RECORDS_AT
# batch_length counts the bytes after itself, so it excludes base offset and length.
LENGTH_EXCLUDES: Final = LEADER_EPOCH_AT
MIN_BATCH_LENGTH: Final = HEADER_SIZE - LENGTH_EXCLUDES

# The fields that the leader overwrites: base offset, length and leader epoch, before the magic.
PREFIX: Final = Struct(">qii")
PREFIX_SIZE: Final = MAGIC_AT
# The fields that the CRC covers, from the attributes on, and their number of bytes.
COVERED: Final = Struct(">hiqqqhii")
COVERED_SIZE: Final = HEADER_SIZE - ATTRIBUTES_AT
HEADER: Final = Struct(">qiibIhiqqqhii")
# Producer id, producer epoch and base sequence, at PRODUCER_ID_AT.
PRODUCER: Final = Struct(">qhi")
# Single fields: batch length and record count; base offset and timestamps; CRC; attributes.
INT32: Final = Struct(">i")
INT64: Final = Struct(">q")
CRC: Final = Struct(">I")
_INT16: Final = Struct(">h")

CODEC_BITS: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
KNOWN_ATTRIBUTES: Final = 0x7F
# A batch with none of these bits is plain: not compressed, transactional or control.
NOT_PLAIN_BITS: Final = CODEC_BITS | TRANSACTIONAL_BIT | CONTROL_BIT

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

INT32_MAX: Final = 0x7FFFFFFF
INT64_MAX: Final = 0x7FFFFFFFFFFFFFFF


class Codec(IntEnum):
    """How the record area is compressed; the low three bits of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Whether the producer or the broker sets the timestamps."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


# Indexed by the codec bits: several times cheaper than calling the enum.
CODECS: Final = tuple(Codec)


class BatchHeader(NamedTuple):
    """The fields in wire order, and values derived from them."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    # Kafka's name; it hides tuple.count(), which is never called on a header.
    count: int  # type: ignore[assignment]

    @property
    def size(self) -> int:
        """The size of the batch in bytes, including this header."""
        return LENGTH_EXCLUDES + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """The compression codec; UnknownCodec for the three unassigned values."""
        bits = self.attributes & CODEC_BITS
        if bits >= len(CODECS):
            raise UnknownCodec(
                f"compression codec {bits} does not exist", where=f"batch with base offset {self.base_offset}"
            )
        return CODECS[bits]

    @property
    def timestamp_type(self) -> TimestampType:
        if self.attributes & LOG_APPEND_TIME_BIT:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop this batch's tombstones; stored in the base timestamp. (KIP-534)"""
        return self.base_timestamp if self.has_delete_horizon else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The last record's sequence. After 2**31 - 1 comes 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & INT32_MAX


def read_header(data: ByteSource, at: int = 0) -> BatchHeader:
    """Read the header at `at`, and nothing after its 61 bytes."""
    if len(data) - at < HEADER_SIZE:
        _refuse_short(data, at)
    header = BatchHeader._make(HEADER.unpack_from(data, at))
    if header.magic != MAGIC:
        raise UnsupportedMagic(f"magic {header.magic} is not {MAGIC}", where=batch_at(at))
    if header.batch_length < MIN_BATCH_LENGTH:
        raise CorruptBatch(
            f"batch length {header.batch_length} is below the minimum of {MIN_BATCH_LENGTH}",
            where=batch_at(at),
        )
    return header


def _refuse_short(data: ByteSource, at: int) -> None:
    have = max(0, len(data) - at)
    # A message of an older format may be shorter than our header: report its magic if it is there.
    if have > MAGIC_AT and data[at + MAGIC_AT] != MAGIC:
        raise UnsupportedMagic(f"magic {data[at + MAGIC_AT]} is not {MAGIC}", where=batch_at(at))
    raise CorruptBatch(f"{have} bytes are left, a batch header has {HEADER_SIZE}", where=batch_at(at))


def batch_headers(data: ByteSource) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch. The buffer must contain only whole batches."""
    at = 0
    end = len(data)
    while at < end:
        header = read_header(data, at)
        if header.size > end - at:
            raise CorruptBatch(
                f"batch size {header.size} exceeds the {end - at} bytes left", where=batch_at(at)
            )
        yield at, header
        at += header.size


class WholeBatches(NamedTuple):
    """Number and total size of the complete batches in a buffer."""

    batches: int
    size: int


def whole_batches(data: ByteSource) -> WholeBatches:
    """Count the complete batches at the start of a buffer that may end inside a batch.

    A fetch response is cut at a byte limit, so a partial batch at the end is not an error for a consumer. An
    impossible length is.
    """
    at = 0
    batches = 0
    end = len(data)
    while end - at >= LENGTH_EXCLUDES:
        length: int = INT32.unpack_from(data, at + BATCH_LENGTH_AT)[0]
        if length < MIN_BATCH_LENGTH:
            raise CorruptBatch(
                f"batch length {length} is below the minimum of {MIN_BATCH_LENGTH}", where=batch_at(at)
            )
        if LENGTH_EXCLUDES + length > end - at:
            break
        at += LENGTH_EXCLUDES + length
        batches += 1
    return WholeBatches(batches, at)


def stamp(
    buffer: bytearray | memoryview,
    at: int,
    *,
    base_offset: int,
    leader_epoch: int,
    log_append_time_ms: int | None = None,
    max_timestamp: int | None = None,
) -> None:
    """Write the leader's fields into the batch at `at`, which must be checked already.

    A log append time changes the timestamp type and the max timestamp as well; `max_timestamp` only corrects
    the latter. Then the CRC is recomputed. The records stay unchanged: with a log append time, readers take
    every record's timestamp from the max timestamp.
    """
    INT64.pack_into(buffer, at + BASE_OFFSET_AT, base_offset)
    INT32.pack_into(buffer, at + LEADER_EPOCH_AT, leader_epoch)
    if log_append_time_ms is not None:
        (attributes,) = _INT16.unpack_from(buffer, at + ATTRIBUTES_AT)
        _INT16.pack_into(buffer, at + ATTRIBUTES_AT, attributes | LOG_APPEND_TIME_BIT)
        max_timestamp = log_append_time_ms
    if max_timestamp is None:
        return
    INT64.pack_into(buffer, at + MAX_TIMESTAMP_AT, max_timestamp)
    (length,) = INT32.unpack_from(buffer, at + BATCH_LENGTH_AT)
    crc = crc32c_of(buffer, at + ATTRIBUTES_AT, at + LENGTH_EXCLUDES + length)
    CRC.pack_into(buffer, at + CRC_AT, crc)


def crc32c_of(data: ByteSource, start: int, end: int) -> int:
    """Compute the CRC-32C of data[start:end], which a batch has from its attributes on."""
    # A slice of bytes would copy the batch, a slice of a memoryview does not.
    return crc32c(memoryview(data)[start:end])


def pack_header(header: BatchHeader) -> bytes:
    """Encode `header` with its own CRC."""
    return HEADER.pack(*header)
