"""From prepared to complete: requesting markers and recording which have been written."""

from collections.abc import Collection

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import Now, Outcome
from barnabas.coordinators.txn.ground import TxnGround
from barnabas.coordinators.txn.markers import MarkersToWrite, Marking
from barnabas.coordinators.txn.state import Txn, TxnState
from barnabas.coordinators.txn.transitions import completed


def write_end(ground: TxnGround, outcome: Outcome, transactional_id: str, txn: Txn, now: Now) -> None:
    """Write the prepared state and request the markers. Without partitions the transaction is complete at
    once."""
    ground.write(outcome, transactional_id, txn)
    if txn.partitions:
        ask_for_markers(ground, outcome, transactional_id, txn)
    else:
        ground.write(outcome, transactional_id, completed(txn, now.ms))


def ask_for_markers(ground: TxnGround, outcome: Outcome, transactional_id: str, txn: Txn) -> None:
    assert txn.is_prepared, f"no markers in state {txn.state.title}"
    ended = MarkersToWrite(
        transactional_id=transactional_id,
        producer_id=txn.producer_id,
        producer_epoch=txn.producer_epoch,
        commit=txn.state is TxnState.PREPARE_COMMIT,
        coordinator_epoch=ground.epoch,
        partitions=txn.partitions,
        transaction_version=txn.client_version,
    )
    ground.marking[transactional_id] = Marking(ended)
    outcome.answer(ground.markers, ended)


def awaited(ground: TxnGround, ended: MarkersToWrite) -> Marking | None:
    """The transaction whose markers were requested with this very object.

    Compared by identity: old clients end many transactions with one epoch, so another one may be equal.
    """
    marking = ground.marking.get(ended.transactional_id)
    return marking if marking is not None and marking.ended is ended else None


def decide_markers_written(
    ground: TxnGround, ended: MarkersToWrite, partitions: Collection[TopicPartition], now: Now
) -> Outcome:
    """Record written markers. With the last one the transaction is complete.

    A late report for a transaction that is already complete changes nothing.
    """
    outcome = Outcome()
    marking = awaited(ground, ended)
    if marking is not None:
        marking.missing.difference_update(partitions)
        if not marking.missing:
            txn = ground.txns[ended.transactional_id]
            ground.write(outcome, ended.transactional_id, completed(txn, now.ms))
    return outcome
