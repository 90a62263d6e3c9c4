"""From the records of an Outcome to batches. Pure."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.coordinators.decision.outcome import EndMarker, InTransaction, Record, encode_record
from barnabas.coordinators.runtime.place import Place
from barnabas.records.builder import BatchBuilder, plain_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.header import NO_LEADER_EPOCH, Codec

_UNCOMPRESSED: Final = Codec.NONE
# Of a producer's batch: coordinators do not count, and Kafka's builder takes none below 0.
_SEQUENCE: Final = 0
# Of the value of a marker.
_VERSION: Final = 0
# EndTxnMarker of protocol/stored/control.py: its version, and the epoch of the coordinator.
_END_TXN_MARKER: Final = Struct(">hi")
# Of a record, at most, besides its key and its value: lengths, attributes, time, offset, count of headers.
_FRAME_BYTES_MAX: Final = 36
# So many transactions end at about the same time, at most, whose markers are at hand.
_MARKERS_MAX: Final = 16


class TooLarge(BarnabasError):
    """Records that belong together do not fit into one batch of the log."""


class Gathered:
    """Outcomes that are written as one batch. Each is in it as a whole or not at all."""

    def __init__(self, place: Place) -> None:
        self._bytes_max = place.bytes_max
        self._builder: Final = _builder(place)
        self.outcomes = 0

    def add(self, records: Sequence[Record], now_ms: int) -> bool:
        """False, and nothing has happened, if they may not fit behind what there is.

        TooLarge if they do not fit into a batch of their own.
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
                raise TooLarge(f"records that belong together are more than {self._bytes_max} bytes")
        _check_size(builder, self._bytes_max)
        self.outcomes += 1
        return True

    def build(self) -> bytes:
        return self._builder.build()


def one_batch(records: Sequence[Record], place: Place, now_ms: int) -> bytes:
    """All of them in one batch. TooLarge if there is no way."""
    if place.codec is not _UNCOMPRESSED:
        gathered = Gathered(place)
        gathered.add(records, now_ms)
        return gathered.build()
    encoded = [encode_record(record) for record in records]
    batch = plain_batch(encoded, now_ms, base_offset=place.base_offset, leader_epoch=place.leader_epoch)
    if len(batch) > place.bytes_max:
        raise TooLarge(f"records of {len(batch)} bytes belong together, and the log takes {place.bytes_max}")
    return batch


def stamped_batch(records: Sequence[Record], stamp: InTransaction, place: Place, now_ms: int) -> bytes:
    """All of them in one batch of a transaction. TooLarge if there is no way."""
    builder = BatchBuilder(
        max_bytes=place.bytes_max,
        base_offset=place.base_offset,
        leader_epoch=place.leader_epoch,
        codec=place.codec,
        producer_id=stamp.producer_id,
        producer_epoch=stamp.producer_epoch,
        base_sequence=_SEQUENCE,
        transactional=True,
    )
    for record in records:
        key, value = record.encoded()
        if not builder.append(now_ms, key, value):
            raise TooLarge(f"records of a transaction are more than {place.bytes_max} bytes")
    _check_size(builder, place.bytes_max)
    return builder.build()


@lru_cache(maxsize=_MARKERS_MAX)
def marker_batch(marker: EndMarker, now_ms: int) -> bytes:
    """The control batch that ends a transaction: the same bytes in all of its partitions."""
    return build_control_batch(
        ControlType.COMMIT if marker.commit else ControlType.ABORT,
        _END_TXN_MARKER.pack(_VERSION, marker.coordinator_epoch),
        timestamp=now_ms,
        leader_epoch=NO_LEADER_EPOCH,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
    )


def batches(records: Iterable[Record], place: Place, now_ms: int) -> list[bytes]:
    """As many batches as it takes, for records that need not be written together. The first has the place.

    A batch is on the disk as a whole or not at all. TooLarge if a single record is.
    """
    built = []
    builder = _builder(place)
    for record in records:
        key, value = record.encoded()
        if not builder.append(now_ms, key, value):
            built.append(builder.build())
            builder = _builder(place)
            builder.append(now_ms, key, value)
        _check_size(builder, place.bytes_max)
    built.append(builder.build())
    return built


def _check_size(builder: BatchBuilder, bytes_max: int) -> None:
    """The first record of a batch is always taken."""
    if builder.size > bytes_max:
        raise TooLarge(f"a record of {builder.size} bytes, and the log takes {bytes_max}")


def _builder(place: Place) -> BatchBuilder:
    return BatchBuilder(
        max_bytes=place.bytes_max,
        base_offset=place.base_offset,
        leader_epoch=place.leader_epoch,
        codec=place.codec,
    )
