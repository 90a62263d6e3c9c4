"""Put a header in front of a finished record area (compiled): compress, count bytes, sign with the CRC."""

from struct import Struct
from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from barnabas.base.crc32c import crc32c
from barnabas.records.codecs import compress
from barnabas.records.header import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MIN_BATCH_LENGTH,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Codec,
    TimestampType,
)

# What the CRC covers of the header, which is from the sixth field on.
_SIGNED: Final = Struct(">hiqqqhii")
_SIGNED_FROM: Final = 5
_SIGNED_BYTES: Final[i64] = 40
_INT32_MAX: Final[i64] = 0x7FFFFFFF
_TWO_TO_32: Final[i64] = 1 << 32
# Members of enums are looked up by name each time otherwise.
_UNCOMPRESSED: Final = Codec.NONE
_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME


def attributes_of(codec: Codec, timestamp_type: TimestampType, *, transactional: bool, control: bool) -> int:
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
    return sign(
        header.base_offset, header.leader_epoch, _SIGNED.pack(*header[_SIGNED_FROM:]), area, codec, level
    )


def sign(
    base_offset: int, leader_epoch: int, signed: bytes, area: bytes, codec: Codec, level: int | None
) -> bytes:
    """The same for fields that the CRC covers and that are packed already."""
    packed = area if codec is _UNCOMPRESSED else compress(codec, area, level)
    # The CRC goes on from the header's part to the records, so the two need not be joined first.
    crc = crc32c(packed, crc32c(signed))
    return b"".join((_head(base_offset, leader_epoch, len(packed), crc), signed, packed))


def sign_plain(base_offset: int, leader_epoch: int, covered: bytes) -> bytes:
    """The same for a batch that is not compressed: `covered` is all that the CRC covers, in one piece."""
    return _head(base_offset, leader_epoch, len(covered) - _SIGNED_BYTES, crc32c(covered)) + covered


def _head(base_offset: i64, leader_epoch: i64, area_size: i64, crc: i64) -> bytes:
    """What is in front of what the CRC covers."""
    head = BytesWriter()
    write_i64_be(head, base_offset)
    write_i32_be(head, i32(MIN_BATCH_LENGTH + area_size))
    write_i32_be(head, i32(leader_epoch))
    head.append(MAGIC)
    write_i32_be(head, i32(crc if crc <= _INT32_MAX else crc - _TWO_TO_32))
    return head.getvalue()
