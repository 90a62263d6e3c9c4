"""Read transaction markers and apply them to the producer state.

Compiled, because every transaction writes a marker to each of its partitions.
"""

from struct import Struct
from typing import Final

from mypy_extensions import i64, mypyc_attr

from barnabas.records.control import CONTROL_KEY_VERSION, ControlType, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.errors import CorruptBatch
from barnabas.records.header import ATTRIBUTES_AT, CODEC_BITS, COUNT_AT
from barnabas.storage.files import Buffer
from barnabas.storage.intake import Batch
from barnabas.storage.producers.table import Producers
from barnabas.storage.segment.txn_index import AbortedTxn

# Version and coordinator epoch. A later version may append fields.
_VALUE: Final = Struct(">hi")
# A marker batch as brokers write it, from the record count on: the record up to its key length; the key
# (version and type); the value length, the value, and the header count.
_USUAL: Final = Struct(">i5shhBhiB")
_START: Final = b"\x20\0\0\0\x08"
_VALUE_LENGTH: Final[i64] = 0x0C
_USUAL_SIZE: Final[i64] = 78
_ABORT: Final[i64] = 0
_COMMIT: Final[i64] = 1


@mypyc_attr(acyclic=True)
class Marker:
    """The end of a transaction."""

    def __init__(self, aborted: bool, coordinator_epoch: i64) -> None:
        self.aborted: Final = aborted
        self.coordinator_epoch: Final = coordinator_epoch


def read_marker(batch: Buffer) -> Marker | None:
    """Read the marker in a checked control batch of a producer.

    None if compaction has removed the marker but kept its batch: the transaction's data is gone then.
    """
    return _usual(batch) or decode_marker(batch)


def decode_marker(batch: Buffer) -> Marker | None:
    """read_marker() without the fast path for the usual layout."""
    records = decode_batch(bytes(batch))
    if not records:
        return None
    kind = read_control_type(records[0].key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        raise CorruptBatch(f"control type {kind} is not allowed for a producer", where="transaction marker")
    value = records[0].value
    if value is None or len(value) < _VALUE.size:
        raise CorruptBatch(f"value is shorter than {_VALUE.size} bytes", where="transaction marker")
    return Marker(kind == ControlType.ABORT, _VALUE.unpack_from(value)[1])


def _usual(batch: Buffer) -> Marker | None:
    """The marker of a batch with exactly the usual layout; None for any other batch."""
    if len(batch) != _USUAL_SIZE:
        return None
    fields = _USUAL.unpack_from(batch, COUNT_AT)
    count: i64 = fields[0]
    start: bytes = fields[1]
    version: i64 = fields[2]
    kind: i64 = fields[3]
    value_length: i64 = fields[4]
    epoch: i64 = fields[6]
    headers: i64 = fields[7]
    codec: i64 = batch[ATTRIBUTES_AT + 1] & CODEC_BITS
    if (
        count != 1
        or start != _START
        or version != CONTROL_KEY_VERSION
        or (kind != _ABORT and kind != _COMMIT)
        or value_length != _VALUE_LENGTH
        or headers != 0
        or codec != 0
    ):
        return None
    return Marker(kind == _ABORT, epoch)


def complete_transaction(
    producers: Producers, batch: Batch, marker: Marker, offset: int
) -> AbortedTxn | None:
    """Complete the transaction of the marker at `offset`; return its aborted index entry, if any."""
    completed = producers.marker_appended(
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        aborted=marker.aborted,
        offset=offset,
        timestamp=batch.max_timestamp,
    )
    if completed is None or not completed.aborted:
        return None
    stable = producers.last_stable_after(completed)
    return AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)
