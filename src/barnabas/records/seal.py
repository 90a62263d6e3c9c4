"""Complete a batch (compiled): compress the record area, and prepend the header with length and CRC."""

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

# The header fields that the CRC covers: from the sixth on.
_SIGNED: Final = Struct(">hiqqqhii")
_SIGNED_FROM: Final = 5
_SIGNED_BYTES: Final[i64] = 40
_INT32_MAX: Final[i64] = 0x7FFFFFFF
_TWO_TO_32: Final[i64] = 1 << 32
# Cached, because accessing an enum member is a look-up by name.
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
    """seal() with the header fields that the CRC covers packed already."""
    packed = area if codec is _UNCOMPRESSED else compress(codec, area, level)
    # The CRC of the header part is continued over the records, so the two need not be joined first.
    crc = crc32c(packed, crc32c(signed))
    return b"".join((_head(base_offset, leader_epoch, len(packed), crc), signed, packed))


def sign_plain(base_offset: int, leader_epoch: int, covered: bytes) -> bytes:
    """seal() for an uncompressed batch; `covered` is everything that the CRC covers."""
    return _head(base_offset, leader_epoch, len(covered) - _SIGNED_BYTES, crc32c(covered)) + covered


def _head(base_offset: i64, leader_epoch: i64, area_size: i64, crc: i64) -> bytes:
    """Encode the header up to and including the CRC."""
    head = BytesWriter()
    write_i64_be(head, base_offset)
    write_i32_be(head, i32(MIN_BATCH_LENGTH + area_size))
    write_i32_be(head, i32(leader_epoch))
    head.append(MAGIC)
    write_i32_be(head, i32(crc if crc <= _INT32_MAX else crc - _TWO_TO_32))
    return head.getvalue()
