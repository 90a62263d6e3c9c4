"""Correct the max timestamp in a batch's header."""

from struct import Struct
from typing import Final

from barnabas.records.crc import ByteSource, crc32c_of
from barnabas.records.header import ATTRIBUTES_AT, CRC_AT, MAX_TIMESTAMP_AT

_INT64: Final = Struct(">q")
_CRC: Final = Struct(">I")


def with_max_timestamp(batch: ByteSource, timestamp: int) -> bytes:
    """A copy with this max timestamp and a new CRC. A batch with a wrong CRC is returned unchanged."""
    (signed,) = _CRC.unpack_from(batch, CRC_AT)
    if crc32c_of(batch, ATTRIBUTES_AT, len(batch)) != signed:
        return bytes(batch)
    copy = bytearray(batch)
    _INT64.pack_into(copy, MAX_TIMESTAMP_AT, timestamp)
    _CRC.pack_into(copy, CRC_AT, crc32c_of(copy, ATTRIBUTES_AT, len(copy)))
    return bytes(copy)
