"""A batch whose header did not know its latest record, put right."""

from struct import Struct
from typing import Final

from barnabas.records.crc import ByteSource, crc32c_of
from barnabas.records.header import ATTRIBUTES_AT, CRC_AT, MAX_TIMESTAMP_AT

_INT64: Final = Struct(">q")
_CRC: Final = Struct(">I")


def with_max_timestamp(batch: ByteSource, timestamp: int) -> bytes:
    """A copy that says so, signed anew. A batch whose CRC is wrong stays as wrong as it was."""
    (signed,) = _CRC.unpack_from(batch, CRC_AT)
    if crc32c_of(batch, ATTRIBUTES_AT, len(batch)) != signed:
        return bytes(batch)
    copy = bytearray(batch)
    _INT64.pack_into(copy, MAX_TIMESTAMP_AT, timestamp)
    _CRC.pack_into(copy, CRC_AT, crc32c_of(copy, ATTRIBUTES_AT, len(copy)))
    return bytes(copy)
