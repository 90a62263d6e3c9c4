"""Check a producer's batch before it is appended, as Kafka does, in two steps.

only_batch() finds the batch in the partition data. checked() compares the record count and the max timestamp
in its header with the records, because consumers and retention rely on them and a producer may send anything.
Compressed records are not decompressed for that: see docs/design/0007.
"""

from struct import Struct
from typing import Final

from barnabas.protocol.messages.produce import PartitionProduceData
from barnabas.records.errors import CorruptBatch, InvalidBatch, UnknownCodec
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    BATCH_LENGTH_AT,
    CODEC_BITS,
    HEADER_SIZE,
    INT64_MAX,
    LENGTH_EXCLUDES,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    RECORDS_AT,
    Codec,
)
from barnabas.records.lengths import NOT_SO, latest_delta
from barnabas.records.restamp import with_max_timestamp
from barnabas.records.validate import check_produced
from barnabas.storage.files import Buffer

_LENGTH: Final = Struct(">i")
# Base timestamp, max timestamp and, after producer id, epoch and sequence, the record count.
_FACTS: Final = Struct(">qq8x2x4xi")
# The minimum batch length in any version of the record format.
_LENGTH_MIN: Final = 14
_ZSTD_FROM: Final = 7
_UNCOMPRESSED: Final = int(Codec.NONE)
_ZSTD: Final = int(Codec.ZSTD)
# Older than any plausible timestamp.
_OLDEST: Final = 2**48 - INT64_MAX


def only_batch(records: Buffer | None, version: int) -> Buffer:
    """Return the one batch in the partition data. An incomplete batch after it is dropped, as in Kafka.

    InvalidBatch if there is none, or more than one; CorruptBatch if its length or magic is invalid.
    """
    size = _whole(records, 0)
    if size is None or records is None:
        raise InvalidBatch("partition data holds no complete batch", where="records")
    if size != len(records):
        if _whole(records, size) is not None:
            raise InvalidBatch(
                "partition data holds more than one batch; send one batch per partition", where="records"
            )
        records = records[:size]
    if records[MAGIC_AT] != MAGIC:
        raise InvalidBatch(f"magic is {records[MAGIC_AT]}, expected {MAGIC}", where="records")
    if version < _ZSTD_FROM and size >= HEADER_SIZE and _codec(records) == _ZSTD:
        raise UnknownCodec(
            f"zstd needs Produce version {_ZSTD_FROM} or later, the request has version {version}",
            where="records",
        )
    return records


def _codec(batch: Buffer) -> int:
    return batch[ATTRIBUTES_AT + 1] & CODEC_BITS


def _whole(records: Buffer | None, at: int) -> int | None:
    """The size of the batch at `at`; None if there is no complete one."""
    left = 0 if records is None else len(records) - at
    if records is None or left < LENGTH_EXCLUDES:
        return None
    (length,) = _LENGTH.unpack_from(records, at + BATCH_LENGTH_AT)
    if length < _LENGTH_MIN:
        raise CorruptBatch(f"length is {length}, the minimum is {_LENGTH_MIN}", where=f"batch at byte {at}")
    if left <= MAGIC_AT:
        return None
    if records[at + MAGIC_AT] > MAGIC:
        raise CorruptBatch(
            f"magic is {records[at + MAGIC_AT]}, expected {MAGIC}", where=f"batch at byte {at}"
        )
    size = int(length) + LENGTH_EXCLUDES
    return size if size <= left else None


def checked(batch: Buffer, data: PartitionProduceData) -> Buffer:
    """Return the batch with a correct max timestamp. InvalidBatch if its records contradict its header."""
    if len(batch) < HEADER_SIZE or _codec(batch) != _UNCOMPRESSED:
        return batch
    base, latest, count = _FACTS.unpack_from(batch, BASE_TIMESTAMP_AT)
    frame, start = _in_frame(batch, data)
    delta = latest_delta(frame, start + RECORDS_AT, start + len(batch), count)
    if delta == NOT_SO:
        # Errors of the header and the CRC take precedence.
        check_produced(batch)
        raise InvalidBatch(f"batch does not hold the {count} records that its header says", where="records")
    last = base + delta
    if base == NO_TIMESTAMP or last == latest >= NO_TIMESTAMP:
        return batch
    if not -INT64_MAX - 1 <= last <= INT64_MAX:
        raise InvalidBatch(f"max timestamp {last} is out of range (64 bits)", where="records")
    if last < _OLDEST:
        # Leave it to the log, which refuses a batch whose age does not fit into 64 bits.
        return batch
    # If all records are from before 1970, the batch has no max timestamp, as in Kafka.
    return with_max_timestamp(batch, max(last, NO_TIMESTAMP))


def _in_frame(batch: Buffer, data: PartitionProduceData) -> tuple[bytes, int]:
    """Bytes that hold the batch, and its position: the request's own if known, otherwise a copy."""
    # Only the compiled decoder records the position.
    start = getattr(data, "start", -1)
    if start >= 0 and isinstance(batch, memoryview) and isinstance(batch.obj, bytes):
        return batch.obj, start
    return bytes(batch), 0
