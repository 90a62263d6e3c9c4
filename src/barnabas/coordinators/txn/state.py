"""What is known of one transactional id: immutable, and small, because there may be a million of them."""

from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.base.ids import TopicPartition

NO_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 2**15 - 1
# The last epoch that a producer is given. One is left, so that its transaction can still be fenced.
_LAST_EPOCH: Final = EPOCH_MAX - 1
# The timeout of transactions that somebody else coordinates: they are never aborted for their age. (KIP-939)
TWO_PHASE_TIMEOUT_MS: Final = 2**31 - 1
NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()
_new: Final = tuple.__new__


class TxnState(IntEnum):
    """The numbers are those of the log. Dead and PrepareEpochFence are never written, and not here."""

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
# Nothing is under way: a transaction may begin, or the id be forgotten when it is old.
IDLE: Final = frozenset({TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT})


def is_exhausted(epoch: int) -> bool:
    """After this epoch comes a new producer id."""
    return epoch >= _LAST_EPOCH


class TxnProducer(NamedTuple):
    """Who speaks of a transaction, by its own account."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class Txn(NamedTuple):
    """One transactional id. Transitions, in transitions.py, make the next one from it."""

    producer_id: int
    # That of the producer; of the markers, once a transaction is prepared.
    producer_epoch: int
    # That of the state before this one: with it a retry is known after the producer id has changed.
    prev_producer_id: int
    # What the producer goes on with when the transaction is complete, if it is another id. (KIP-890)
    # While it is ongoing: what its producer was given after a restart, and ends it with. (KIP-939)
    next_producer_id: int
    next_producer_epoch: int
    # Not in the log: after a load nobody knows it.
    last_producer_epoch: int
    timeout_ms: int
    state: TxnState
    partitions: frozenset[TopicPartition]
    start_ms: int
    last_update_ms: int
    # 2 if an epoch is for one transaction only, 0 if not.
    client_version: int

    @property
    def is_prepared(self) -> bool:
        return self.state in PREPARED

    @property
    def is_kept(self) -> bool:
        """It was prepared by a producer that has restarted since, and waits for its decision. (KIP-939)"""
        return self.state is TxnState.ONGOING and self.next_producer_epoch != NO_EPOCH

    @property
    def owner(self) -> tuple[int, int]:
        """Producer id and epoch that its producer speaks with."""
        if self.is_kept:
            return self.next_producer_id, self.next_producer_epoch
        return self.producer_id, self.producer_epoch

    def is_overdue(self, now_ms: int) -> bool:
        """It takes longer than its producer said that it would."""
        return (
            self.state is TxnState.ONGOING
            and self.timeout_ms != TWO_PHASE_TIMEOUT_MS
            and self.start_ms + self.timeout_ms < now_ms
        )

    def durable(self) -> "Txn":
        """What of it is in the log."""
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
    """The same as Txn(), whose constructor is interpreted: three are made for every transaction."""
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
