"""The state of one transactional id. Immutable, and small, because there may be a million of them."""

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
    """One transactional id. transitions.py computes the next state from it."""

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
