"""Record batches of the stories: made as a producer makes them, or wrong on purpose; and read back."""

from collections.abc import Sequence
from struct import Struct
from typing import Any

from barnabas.base.errors import BarnabasError
from barnabas.records.builder import NewRecord, build_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER_SIZE,
    LENGTH_EXCLUDES,
    Codec,
    crc32c_of,
    read_header,
)

# Longer values are told by their size: the recording stays small.
VALUE_SHOWN_MAX = 40
_CRC = Struct(">I")
_INT = Struct(">i")
_SHORT = Struct(">h")

# Where fields of the header are, for those who change them.
MAGIC_AT = 16
LAST_OFFSET_DELTA_AT = 23
COUNT_AT = 57


def batch(
    *values: bytes | None,
    at_ms: int,
    keys: Sequence[bytes | None] | None = None,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """One batch; record N is N milliseconds after `at_ms`. `producer` is its id, epoch and first sequence."""
    records: list[NewRecord] = [
        (at_ms + index, keys[index] if keys else b"k%d" % index, value, ())
        for index, value in enumerate(values)
    ]
    return build_batch(
        records,
        codec=codec,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        transactional=transactional,
        control=control,
    )


def patched(data: bytes, at: int, piece: bytes, *, sign: bool = True) -> bytes:
    """The batch with other bytes at `at`; with a CRC that fits, unless the CRC is to be wrong."""
    changed = bytearray(data)
    changed[at : at + len(piece)] = piece
    if sign:
        _CRC.pack_into(changed, CRC_AT, crc32c_of(changed, ATTRIBUTES_AT, len(changed)))
    return bytes(changed)


def with_count(data: bytes, count: int) -> bytes:
    return patched(data, COUNT_AT, _INT.pack(count))


def with_last_offset_delta(data: bytes, delta: int) -> bytes:
    return patched(data, LAST_OFFSET_DELTA_AT, _INT.pack(delta))


def with_attributes(data: bytes, bits: int) -> bytes:
    return patched(data, ATTRIBUTES_AT, _SHORT.pack(bits))


def describe_batches(data: bytes) -> dict[str, Any]:
    """What is in the records of a fetch answer, batch by batch; the last one may be cut off."""
    batches: list[dict[str, Any]] = []
    at = 0
    while at < len(data):
        if len(data) - at < HEADER_SIZE:
            return {"batches": batches, "cutOff": len(data) - at}
        header = read_header(data, at)
        if header.size > len(data) - at:
            return {"batches": batches, "cutOff": len(data) - at}
        batches.append(_describe(data, at))
        at += LENGTH_EXCLUDES + header.batch_length
    return {"batches": batches}


def _describe(data: bytes, at: int) -> dict[str, Any]:
    header = read_header(data, at)
    described = {
        "baseOffset": header.base_offset,
        "sizeInBytes": header.size,
        "leaderEpoch": header.leader_epoch,
        "attributes": header.attributes,
        "lastOffsetDelta": header.last_offset_delta,
        "baseTimestamp": header.base_timestamp,
        "maxTimestamp": header.max_timestamp,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
    }
    try:
        records = decode_batch(data, at)
    except BarnabasError as error:
        return {**described, "unreadable": type(error).__name__}
    rows = [[record.offset, record.timestamp, _shown(record.key), _shown(record.value)] for record in records]
    return {**described, "records": rows}


def _shown(value: bytes | None) -> str | None:
    if value is None:
        return None
    return value.decode("latin-1") if len(value) <= VALUE_SHOWN_MAX else f"{len(value)} bytes"
