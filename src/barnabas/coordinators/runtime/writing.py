"""Builds batches from the records of outcomes. Pure."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, final

from mypy_extensions import mypyc_attr

from barnabas.base.errors import BarnabasError
from barnabas.coordinators.decision.outcome import EndMarker, InTransaction, Record, encode_record
from barnabas.records.builder import BatchBuilder, plain_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.header import NO_LEADER_EPOCH, Codec

_UNCOMPRESSED: Final = Codec.NONE
# Base sequence of transactional batches: coordinators do not count, and Kafka's builder requires at least 0.
_SEQUENCE: Final = 0
# Version of a marker's value.
_VERSION: Final = 0
# EndTxnMarker of protocol/stored/control.py: version and coordinator epoch.
_END_TXN_MARKER: Final = Struct(">hi")
# Upper bound of a record's size without key and value: lengths, attributes, timestamp, offset, header count.
_FRAME_BYTES_MAX: Final = 36
# Cached markers: about the number of transactions that end at the same time.
_MARKERS_MAX: Final = 16


@mypyc_attr(acyclic=True)
@final
class NextBatch:
    """Offset, leader epoch, size limit and codec of a shard's next batch.

    A batch built with it is appended unchanged. The log rewrites the offsets of any other batch.
    """

    __slots__ = ("base_offset", "bytes_max", "codec", "leader_epoch")

    def __init__(self, base_offset: int, leader_epoch: int, bytes_max: int, codec: Codec) -> None:
        self.base_offset: Final = base_offset
        self.leader_epoch: Final = leader_epoch
        # Maximum size of the batch.
        self.bytes_max: Final = bytes_max
        self.codec: Final = codec


class TooLarge(BarnabasError):
    """Records that must be written atomically do not fit in one batch."""


class OutcomeBatch:
    """Outcomes that are written as one batch. Each outcome is added completely or not at all."""

    def __init__(self, next_batch: NextBatch) -> None:
        self._bytes_max = next_batch.bytes_max
        self._builder: Final = _builder(next_batch)
        self.outcomes = 0

    def add(self, records: Sequence[Record], now_ms: int) -> bool:
        """False, without any change, if the records may not fit in the rest of the batch.

        TooLarge if they do not fit in an empty batch.
        """
        builder = self._builder
        encoded = [encode_record(record) for record in records]
        if builder.count:
            size = builder.size
            for key, value in encoded:
                size += len(key) + (0 if value is None else len(value)) + _FRAME_BYTES_MAX
            if size > self._bytes_max:
                return False
        for key, value in encoded:
            if not builder.append(now_ms, key, value):
                raise TooLarge(
                    f"atomic write exceeds the limit of {self._bytes_max} bytes (max.message.bytes)"
                )
        _check_size(builder, self._bytes_max)
        self.outcomes += 1
        return True

    def build(self) -> bytes:
        return self._builder.build()


def one_batch(records: Sequence[Record], next_batch: NextBatch, now_ms: int) -> bytes:
    """All records in one batch. TooLarge if they do not fit."""
    if next_batch.codec is not _UNCOMPRESSED:
        outcome_batch = OutcomeBatch(next_batch)
        outcome_batch.add(records, now_ms)
        return outcome_batch.build()
    encoded = [encode_record(record) for record in records]
    batch = plain_batch(
        encoded, now_ms, base_offset=next_batch.base_offset, leader_epoch=next_batch.leader_epoch
    )
    if len(batch) > next_batch.bytes_max:
        raise TooLarge(
            f"{len(batch)} bytes of records must be written atomically, "
            f"but the limit is {next_batch.bytes_max} (max.message.bytes)"
        )
    return batch


def stamped_batch(
    records: Sequence[Record], stamp: InTransaction, next_batch: NextBatch, now_ms: int
) -> bytes:
    """All records in one transactional batch. TooLarge if they do not fit."""
    builder = BatchBuilder(
        max_bytes=next_batch.bytes_max,
        base_offset=next_batch.base_offset,
        leader_epoch=next_batch.leader_epoch,
        codec=next_batch.codec,
        producer_id=stamp.producer_id,
        producer_epoch=stamp.producer_epoch,
        base_sequence=_SEQUENCE,
        transactional=True,
    )
    for record in records:
        key, value = record.encoded()
        if not builder.append(now_ms, key, value):
            raise TooLarge(
                f"transactional records exceed the limit of {next_batch.bytes_max} bytes (max.message.bytes)"
            )
    _check_size(builder, next_batch.bytes_max)
    return builder.build()


@lru_cache(maxsize=_MARKERS_MAX)
def marker_batch(marker: EndMarker, now_ms: int) -> bytes:
    """The control batch that ends a transaction; identical in all its partitions."""
    return build_control_batch(
        ControlType.COMMIT if marker.commit else ControlType.ABORT,
        _END_TXN_MARKER.pack(_VERSION, marker.coordinator_epoch),
        timestamp=now_ms,
        leader_epoch=NO_LEADER_EPOCH,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
    )


def batches(records: Iterable[Record], next_batch: NextBatch, now_ms: int) -> list[bytes]:
    """As many batches as needed, for records that need not be written atomically. The first is built for
    `next_batch`.

    Each batch is on the disk completely or not at all. TooLarge if a single record exceeds the limit.
    """
    built = []
    builder = _builder(next_batch)
    for record in records:
        key, value = record.encoded()
        if not builder.append(now_ms, key, value):
            built.append(builder.build())
            builder = _builder(next_batch)
            builder.append(now_ms, key, value)
        _check_size(builder, next_batch.bytes_max)
    built.append(builder.build())
    return built


def _check_size(builder: BatchBuilder, bytes_max: int) -> None:
    """The builder accepts the first record of a batch whatever its size."""
    if builder.size > bytes_max:
        raise TooLarge(
            f"batch size {builder.size} exceeds the limit of {bytes_max} bytes (max.message.bytes)"
        )


def _builder(next_batch: NextBatch) -> BatchBuilder:
    return BatchBuilder(
        max_bytes=next_batch.bytes_max,
        base_offset=next_batch.base_offset,
        leader_epoch=next_batch.leader_epoch,
        codec=next_batch.codec,
    )
