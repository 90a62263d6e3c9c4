"""A producer's numbers in the header of a finished batch. Pure.

The batch is encoded before it is known under which numbers it goes, and may be given others once it is known
that it was not written under the first.
"""

from struct import Struct
from typing import Final, NamedTuple

from barnabas.base.crc32c import crc32c
from barnabas.records.header import ATTRIBUTES_AT, COUNT_AT, CRC_AT, MAX_TIMESTAMP_AT, PRODUCER_ID_AT

_NUMBERS: Final = Struct(">qhi")
_CRC: Final = Struct(">I")
_COUNT: Final = Struct(">i")
_TIME: Final = Struct(">q")


class Identity(NamedTuple):
    """Who a producer is to the brokers."""

    producer_id: int
    epoch: int


def stamped(data: bytes, identity: Identity, sequence: int) -> bytes:
    """The same batch with these numbers, and the CRC that goes with them."""
    batch = bytearray(data)
    _NUMBERS.pack_into(batch, PRODUCER_ID_AT, identity.producer_id, identity.epoch, sequence)
    _CRC.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
    return bytes(batch)


def record_count(data: bytes) -> int:
    """How many records an encoded batch has."""
    count: int = _COUNT.unpack_from(data, COUNT_AT)[0]
    return count


def max_timestamp(data: bytes) -> int:
    """The latest timestamp in an encoded batch."""
    latest: int = _TIME.unpack_from(data, MAX_TIMESTAMP_AT)[0]
    return latest
