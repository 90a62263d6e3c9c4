"""The checks of a producer's batch or a transaction marker (compiled, pure).

The rules are Kafka's. Each function takes the producer's state, and returns or raises.
"""

from typing import Final

from mypy_extensions import i64

from barnabas.storage.producers.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from barnabas.storage.producers.state import SEQUENCE_MASK, ProducerState, Verification

_UNKNOWN_EPOCH: Final[i64] = -1
_LAST_EPOCH: Final[i64] = 32767
# From this transaction version on, a marker has an epoch one above that of its records. (KIP-890)
_EPOCH_PER_TXN: Final[i64] = 2


def check_epoch(producer_id: int, producer: ProducerState, epoch: i64) -> None:
    """Reject a batch from a fenced producer."""
    if epoch < producer.epoch:
        raise InvalidProducerEpoch(producer_id, epoch=epoch, current=producer.epoch)


def check_sequence(
    producer_id: int, producer: ProducerState, epoch: i64, sequence: i64, waiting: Verification | None
) -> None:
    """A client's batch continues exactly where its last one ended, and each epoch starts at 0."""
    if waiting is not None:
        _check_first_of_transaction(producer_id, producer, sequence, waiting)
    # The producer is new, or its state has expired.
    if producer.epoch == _UNKNOWN_EPOCH:
        return
    if epoch != producer.epoch:
        if sequence != 0:
            raise OutOfOrderSequence(producer_id, sequence=sequence, expected=0, why=f"epoch {epoch} is new")
        return
    # Without a batch in this epoch the last sequence is -1, and 0 comes next.
    expected = (producer.last_sequence() + 1) & SEQUENCE_MASK
    if sequence != expected:
        raise OutOfOrderSequence(
            producer_id, sequence=sequence, expected=expected, why="records in between are missing"
        )


def _check_first_of_transaction(
    producer_id: int, producer: ProducerState, sequence: i64, waiting: Verification
) -> None:
    # With an epoch per transaction, a producer whose state expired here gets a new epoch and starts at 0.
    if waiting.epoch_bump and sequence != 0 and producer.written == 0:
        raise OutOfOrderSequence(
            producer_id, sequence=sequence, expected=0, why="the state of this producer has expired"
        )
    # Batches are verified concurrently. If a later one were appended first, earlier ones would be rejected.
    if sequence > waiting.lowest_sequence:
        raise OutOfOrderSequence(
            producer_id,
            sequence=sequence,
            expected=waiting.lowest_sequence,
            why="an earlier batch awaits verification",
        )


def check_verified(
    producer_id: int,
    producer: ProducerState,
    epoch: i64,
    waiting: Verification | None,
    shown: Verification | None,
) -> None:
    """The first batch of a transaction must present the log's current verification; later ones need none."""
    if producer.txn_first_offset >= 0 and producer.epoch == epoch:
        return
    if waiting is None or waiting is not shown:
        raise InvalidTxnState(producer_id, "batch belongs to no verified transaction")


def check_transactional(producer_id: int, producer: ProducerState, transactional: bool) -> None:
    """While a transaction is open, its producer must not write outside of it."""
    if producer.txn_first_offset >= 0 and not transactional:
        raise InvalidTxnState(
            producer_id,
            f"batch is not transactional, but a transaction is open since offset {producer.txn_first_offset}",
        )


def check_marker(
    producer_id: int,
    producer: ProducerState,
    epoch: i64,
    coordinator_epoch: i64,
    transaction_version: i64,
) -> None:
    """A marker must have the producer's newest epoch and come from its newest coordinator."""
    stale = epoch < producer.epoch
    # With an epoch per transaction, a marker's epoch is above that of its records. A marker with the same
    # epoch is a late one of the previous transaction; without an open transaction it is harmless, and a retry
    # after a lost response must succeed. (KAFKA-19999) The last epoch has no successor: a marker with it can
    # only come from fencing.
    if transaction_version >= _EPOCH_PER_TXN and epoch == producer.epoch:
        stale = producer.txn_first_offset >= 0 and epoch != _LAST_EPOCH
    if stale:
        raise InvalidProducerEpoch(producer_id, epoch=epoch, current=producer.epoch)
    if coordinator_epoch < producer.coordinator_epoch:
        raise TransactionCoordinatorFenced(
            producer_id, coordinator_epoch=coordinator_epoch, current=producer.coordinator_epoch
        )
