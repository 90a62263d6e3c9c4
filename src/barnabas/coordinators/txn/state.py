"""The state of one transactional id and its transitions. The callers decide whether a transition is allowed.

A Txn is immutable, and small, because there may be a million of them. Every transition stores the previous
producer id in prev_producer_id.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.base.ids import TopicPartition

NO_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 2**15 - 1
# The last epoch given to a producer. One is reserved, so that its transaction can still be fenced.
_LAST_EPOCH: Final = EPOCH_MAX - 1
# The timeout of externally coordinated transactions, which never time out. (KIP-939)
TWO_PHASE_TIMEOUT_MS: Final = 2**31 - 1
NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()
# Transactions version 2: every transaction has its own epoch. (KIP-890)
EPOCH_EACH_FROM: Final = 2
_OLD_CLIENT: Final = 0
_new: Final = tuple.__new__


class TxnState(IntEnum):
    """The numbers are those in the log. Dead and PrepareEpochFence are never written, so they are omitted."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def title(self) -> str:
        """As tools and clients write it: PrepareCommit."""
        return _TITLES[self]


_TITLES: Final = {
    TxnState.EMPTY: "Empty",
    TxnState.ONGOING: "Ongoing",
    TxnState.PREPARE_COMMIT: "PrepareCommit",
    TxnState.PREPARE_ABORT: "PrepareAbort",
    TxnState.COMPLETE_COMMIT: "CompleteCommit",
    TxnState.COMPLETE_ABORT: "CompleteAbort",
}
PREPARED: Final = frozenset({TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT})
# No transaction is open: one may start, or the id may expire.
IDLE: Final = frozenset({TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT})


def is_exhausted(epoch: int) -> bool:
    """Whether the next epoch needs a new producer id."""
    return epoch >= _LAST_EPOCH


class TxnProducer(NamedTuple):
    """Transactional id, producer id and epoch as sent by the producer."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class Txn(NamedTuple):
    """One transactional id. The transitions below compute the next state from it."""

    producer_id: int
    # The epoch of the producer; of the markers, once the transaction is prepared.
    producer_epoch: int
    # The producer id of the previous state, to detect a retry after the producer id has changed.
    prev_producer_id: int
    # The producer's id and epoch after the transaction completes, if the id changes. (KIP-890)
    # While ongoing: given to the producer after a restart, to end the transaction with. (KIP-939)
    next_producer_id: int
    next_producer_epoch: int
    # Not in the log: unknown after a load.
    last_producer_epoch: int
    timeout_ms: int
    state: TxnState
    partitions: frozenset[TopicPartition]
    start_ms: int
    last_update_ms: int
    # 2 if each transaction has its own epoch, 0 if not.
    client_version: int

    @property
    def is_prepared(self) -> bool:
        return self.state in PREPARED

    @property
    def is_kept(self) -> bool:
        """Prepared by a producer that has restarted since and has not yet committed or aborted it.
        (KIP-939)"""
        return self.state is TxnState.ONGOING and self.next_producer_epoch != NO_EPOCH

    @property
    def owner(self) -> tuple[int, int]:
        """The producer's current id and epoch."""
        if self.is_kept:
            return self.next_producer_id, self.next_producer_epoch
        return self.producer_id, self.producer_epoch

    def is_overdue(self, now_ms: int) -> bool:
        """Whether the transaction has exceeded its timeout."""
        return (
            self.state is TxnState.ONGOING
            and self.timeout_ms != TWO_PHASE_TIMEOUT_MS
            and self.start_ms + self.timeout_ms < now_ms
        )

    def durable(self) -> "Txn":
        """The part of the state that is in the log."""
        return self._replace(last_producer_epoch=NO_EPOCH)


def make_txn(
    *,
    producer_id: int,
    producer_epoch: int,
    prev_producer_id: int,
    next_producer_id: int,
    next_producer_epoch: int,
    last_producer_epoch: int,
    timeout_ms: int,
    state: TxnState,
    partitions: frozenset[TopicPartition],
    start_ms: int,
    last_update_ms: int,
    client_version: int,
) -> Txn:
    """A fast Txn(), whose constructor is interpreted: every transaction creates three."""
    return _new(
        Txn,
        (
            producer_id,
            producer_epoch,
            prev_producer_id,
            next_producer_id,
            next_producer_epoch,
            last_producer_epoch,
            timeout_ms,
            state,
            partitions,
            start_ms,
            last_update_ms,
            client_version,
        ),
    )


# Transitions


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
