"""What a transaction marker says, and what follows from it: the one record that a log itself understands."""

from struct import Struct
from typing import Final, NamedTuple

from barnabas.records.control import ControlType, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.errors import CorruptBatch
from barnabas.storage.files import Buffer
from barnabas.storage.producers.table import Producers
from barnabas.storage.segment.batch import Batch
from barnabas.storage.segment.txn_index import AbortedTxn

# The version and the coordinator's epoch. A later version may write more behind them.
_VALUE: Final = Struct(">hi")


class Marker(NamedTuple):
    """The end of a transaction."""

    aborted: bool
    coordinator_epoch: int


def read_marker(batch: Buffer) -> Marker | None:
    """Read the marker in a checked control batch of a producer.

    None if compaction has taken the marker and left the batch: the whole transaction is gone by then.
    """
    records = decode_batch(bytes(batch))
    if not records:
        return None
    kind = read_control_type(records[0].key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        raise CorruptBatch(f"control type {kind} in the name of a producer", where="transaction marker")
    value = records[0].value
    if value is None or len(value) < _VALUE.size:
        raise CorruptBatch("too short for the coordinator's epoch", where="transaction marker")
    return Marker(kind == ControlType.ABORT, _VALUE.unpack_from(value)[1])


def complete_transaction(
    producers: Producers, batch: Batch, marker: Marker, offset: int
) -> AbortedTxn | None:
    """End the transaction that the marker at `offset` is for; what the aborted index is to say of it."""
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
