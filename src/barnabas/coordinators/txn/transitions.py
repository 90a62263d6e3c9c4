"""State transitions of a transactional id. The callers decide whether a transition is allowed.

Every transition stores the previous producer id in prev_producer_id.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.state import (
    EPOCH_MAX,
    IDLE,
    NO_EPOCH,
    NO_ID,
    NO_PARTITIONS,
    NO_TIME,
    Txn,
    TxnState,
    is_exhausted,
    make_txn,
)

# Transactions version 2: every transaction has its own epoch. (KIP-890)
EPOCH_EACH_FROM: Final = 2
_OLD_CLIENT: Final = 0


def created(producer_id: int, timeout_ms: int, now_ms: int) -> Txn:
    return Txn(
        producer_id=producer_id,
        producer_epoch=0,
        prev_producer_id=producer_id,
        next_producer_id=NO_ID,
        next_producer_epoch=NO_EPOCH,
        last_producer_epoch=NO_EPOCH,
        timeout_ms=timeout_ms,
        state=TxnState.EMPTY,
        partitions=NO_PARTITIONS,
        start_ms=NO_TIME,
        last_update_ms=now_ms,
        client_version=_OLD_CLIENT,
    )


def begun_anew(
    txn: Txn, *, producer_id: int, producer_epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
) -> Txn:
    """A new producer owns the id, with this producer id and epoch. No transaction is open."""
    assert txn.state in IDLE, f"{txn.state.title} is not complete"
    return txn._replace(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        prev_producer_id=txn.producer_id,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        state=TxnState.EMPTY,
        partitions=NO_PARTITIONS,
        start_ms=NO_TIME,
        last_update_ms=now_ms,
    )


def given_new_id(txn: Txn, producer_id: int, now_ms: int) -> Txn:
    """The transaction is complete and used the last epoch, so the producer gets a new id."""
    return txn._replace(
        producer_id=producer_id, producer_epoch=0, prev_producer_id=txn.producer_id, last_update_ms=now_ms
    )


def kept(txn: Txn, *, next_id: int, next_epoch: int, now_ms: int) -> Txn:
    """The producer has restarted and will end the ongoing transaction with this id and epoch."""
    assert txn.state is TxnState.ONGOING, f"{txn.state.title} cannot be kept"
    return txn._replace(
        prev_producer_id=txn.producer_id,
        next_producer_id=next_id,
        next_producer_epoch=next_epoch,
        last_update_ms=now_ms,
    )


def with_partitions(txn: Txn, added: Iterable[TopicPartition], client_version: int, now_ms: int) -> Txn:
    return make_txn(
        producer_id=txn.producer_id,
        producer_epoch=txn.producer_epoch,
        prev_producer_id=txn.producer_id,
        next_producer_id=txn.next_producer_id,
        next_producer_epoch=txn.next_producer_epoch,
        last_producer_epoch=txn.last_producer_epoch,
        timeout_ms=txn.timeout_ms,
        state=TxnState.ONGOING,
        partitions=txn.partitions.union(added),
        start_ms=now_ms if txn.state in IDLE else txn.start_ms,
        last_update_ms=now_ms,
        client_version=client_version,
    )


def prepared_by_old_client(txn: Txn, *, commit: bool, now_ms: int) -> Txn:
    """The producer keeps its epoch over many transactions."""
    return make_txn(
        producer_id=txn.producer_id,
        producer_epoch=txn.producer_epoch,
        prev_producer_id=txn.producer_id,
        next_producer_id=NO_ID,
        next_producer_epoch=txn.next_producer_epoch,
        last_producer_epoch=txn.last_producer_epoch,
        timeout_ms=txn.timeout_ms,
        state=TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT,
        partitions=txn.partitions,
        start_ms=txn.start_ms,
        last_update_ms=now_ms,
        client_version=_OLD_CLIENT,
    )


def fenced_by_old_server(txn: Txn, now_ms: int) -> Txn:
    """Prepared to abort, with a bumped epoch that no producer has."""
    fenced = txn._replace(producer_epoch=min(txn.producer_epoch + 1, EPOCH_MAX), last_producer_epoch=NO_EPOCH)
    return prepared_by_old_client(fenced, commit=False, now_ms=now_ms)


def prepared(txn: Txn, *, commit: bool, new_id: int | None, now_ms: int) -> Txn:
    """Every end bumps the epoch, so that late requests have a stale one. (KIP-890)

    If epochs are exhausted the producer continues with the new id. Without a new id, the reserved epoch is
    used, which no producer gets: see LAST_FENCE in ending.py.
    """
    assert txn.producer_epoch < EPOCH_MAX or not commit, "no producer was given this epoch"
    next_id, next_epoch = _after(txn, new_id)
    return make_txn(
        producer_id=txn.producer_id,
        producer_epoch=min(txn.producer_epoch + 1, EPOCH_MAX),
        # A kept transaction may be ended with another producer id than that of its records.
        prev_producer_id=txn.owner[0],
        next_producer_id=next_id,
        next_producer_epoch=next_epoch,
        last_producer_epoch=txn.producer_epoch,
        timeout_ms=txn.timeout_ms,
        state=TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT,
        partitions=txn.partitions,
        # If no transaction was open, it starts and ends now.
        start_ms=now_ms if txn.state in IDLE else txn.start_ms,
        last_update_ms=now_ms,
        client_version=EPOCH_EACH_FROM,
    )


def _after(txn: Txn, new_id: int | None) -> tuple[int, int]:
    """The producer's next id and epoch, if they differ from those of the markers."""
    producer_id, epoch = txn.owner
    if is_exhausted(epoch) and new_id is not None:
        # Kafka writes no epoch here: 0 is implied.
        return new_id, NO_EPOCH
    # The epoch that ends a kept transaction is also used up: its EndTxn may arrive late.
    return (producer_id, min(epoch + 1, EPOCH_MAX)) if txn.is_kept else (NO_ID, NO_EPOCH)


def completed(txn: Txn, now_ms: int) -> Txn:
    """All markers are written."""
    assert txn.is_prepared, f"cannot complete a transaction in state {txn.state.title}"
    producer_id, epoch = continued_with(txn)
    is_commit = txn.state is TxnState.PREPARE_COMMIT
    return make_txn(
        producer_id=producer_id,
        producer_epoch=epoch,
        prev_producer_id=_ended_with(txn),
        next_producer_id=NO_ID,
        next_producer_epoch=NO_EPOCH,
        last_producer_epoch=txn.last_producer_epoch,
        timeout_ms=txn.timeout_ms,
        state=TxnState.COMPLETE_COMMIT if is_commit else TxnState.COMPLETE_ABORT,
        partitions=NO_PARTITIONS,
        start_ms=txn.start_ms,
        last_update_ms=now_ms,
        client_version=txn.client_version,
    )


def continued_with(txn: Txn) -> tuple[int, int]:
    """Producer id and epoch after this prepared transaction."""
    if txn.client_version < EPOCH_EACH_FROM or txn.next_producer_id == NO_ID:
        return txn.producer_id, txn.producer_epoch
    return txn.next_producer_id, max(txn.next_producer_epoch, 0)


def _ended_with(txn: Txn) -> int:
    if txn.client_version >= EPOCH_EACH_FROM:
        return txn.prev_producer_id
    return txn.producer_id
