"""A producer's numbers in the header of a finished batch. Pure.

The batch is encoded before it is known under which numbers it goes, and may be given others once it is known
that it was not written under the first.
"""

from struct import Struct
from typing import Final, NamedTuple

from barnabas.base.crc32c import crc32c
from barnabas.records.header import (
    ATTRIBUTES_AT,
    COUNT_AT,
    CRC_AT,
    HEADER_SIZE,
    MAX_TIMESTAMP_AT,
    PRODUCER_ID_AT,
)

FROM_0: Final = bytes(8)
_NUMBERS: Final = Struct(">qhi")
_CRC: Final = Struct(">I")
_COUNT: Final = Struct(">i")
_TIME: Final = Struct(">q")


class Identity(NamedTuple):
    """Who a producer is to the brokers."""

    producer_id: int
    epoch: int


def stamped(data: bytes, identity: Identity, sequence: int) -> bytes:
    """The same batch with these numbers, from offset 0, and the CRC that goes with them."""
    head = bytearray(data[:HEADER_SIZE])
    head[: len(FROM_0)] = FROM_0
    _NUMBERS.pack_into(head, PRODUCER_ID_AT, identity.producer_id, identity.epoch, sequence)
    records = memoryview(data)[HEADER_SIZE:]
    _CRC.pack_into(head, CRC_AT, crc32c(records, crc32c(head[ATTRIBUTES_AT:])))
    return b"".join((head, records))


def from_0(data: bytes) -> bytes:
    """The same batch from offset 0, which is all that a broker takes. The CRC does not cover it."""
    return FROM_0 + data[len(FROM_0) :]


def record_count(data: bytes) -> int:
    """How many records an encoded batch has."""
    count: int = _COUNT.unpack_from(data, COUNT_AT)[0]
    return count


def max_timestamp(data: bytes) -> int:
    """The latest timestamp in an encoded batch."""
    latest: int = _TIME.unpack_from(data, MAX_TIMESTAMP_AT)[0]
    return latest
