"""Put a header in front of a finished record area: compress, count the bytes, sign with the CRC."""

from struct import Struct
from typing import Final

from barnabas.base.crc32c import crc32c
from barnabas.records.codecs import compress
from barnabas.records.crc import crc32c_of
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BATCH_LENGTH_AT,
    CONTROL_BIT,
    CRC_AT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    MIN_BATCH_LENGTH,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Codec,
    TimestampType,
    pack_header,
)

_LENGTH: Final = Struct(">i")
_CRC: Final = Struct(">I")


def attributes_of(codec: Codec, timestamp_type: TimestampType, *, transactional: bool, control: bool) -> int:
    """The attributes field."""
    bits = int(codec)
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        bits |= LOG_APPEND_TIME_BIT
    if transactional:
        bits |= TRANSACTIONAL_BIT
    if control:
        bits |= CONTROL_BIT
    return bits


def seal(header: BatchHeader, area: bytes, codec: Codec, level: int | None = None) -> bytes:
    """Return the whole batch: `header` with its length and CRC filled in, then `area` compressed."""
    packed = compress(codec, area, level)
    head = bytearray(pack_header(header))
    _LENGTH.pack_into(head, BATCH_LENGTH_AT, MIN_BATCH_LENGTH + len(packed))
    # The CRC goes on from the header's part to the records, so the two need not be joined first.
    crc = crc32c(packed, crc32c_of(head, ATTRIBUTES_AT, HEADER_SIZE))
    _CRC.pack_into(head, CRC_AT, crc)
    return b"".join((head, packed))
