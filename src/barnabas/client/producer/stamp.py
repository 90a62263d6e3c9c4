"""Writes producer id, epoch and sequence into the header of an encoded batch. Pure.

A batch may be encoded before its numbers are known, and it may get new ones once it is certain that it was
not written under the old ones.
"""

from typing import Final, NamedTuple

from barnabas.base.crc32c import crc32c
from barnabas.records.header import (
    ATTRIBUTES_AT,
    COUNT_AT,
    CRC,
    CRC_AT,
    HEADER_SIZE,
    INT32,
    INT64,
    MAX_TIMESTAMP_AT,
    PRODUCER,
    PRODUCER_ID_AT,
)

FROM_0: Final = bytes(8)


class Identity(NamedTuple):
    """Producer id and epoch."""

    producer_id: int
    epoch: int


def stamped(data: bytes, identity: Identity, sequence: int) -> bytes:
    """Return the batch with these numbers, base offset 0 and the matching CRC."""
    head = bytearray(data[:HEADER_SIZE])
    head[: len(FROM_0)] = FROM_0
    PRODUCER.pack_into(head, PRODUCER_ID_AT, identity.producer_id, identity.epoch, sequence)
    records = memoryview(data)[HEADER_SIZE:]
    CRC.pack_into(head, CRC_AT, crc32c(records, crc32c(head[ATTRIBUTES_AT:])))
    return b"".join((head, records))


def from_0(data: bytes) -> bytes:
    """Return the batch with base offset 0, which brokers require. The CRC does not cover the offset."""
    return FROM_0 + data[len(FROM_0) :]


def record_count(data: bytes) -> int:
    """Return the record count of an encoded batch."""
    count: int = INT32.unpack_from(data, COUNT_AT)[0]
    return count


def max_timestamp(data: bytes) -> int:
    """Return the max timestamp of an encoded batch."""
    latest: int = INT64.unpack_from(data, MAX_TIMESTAMP_AT)[0]
    return latest
