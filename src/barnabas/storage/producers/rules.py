"""When a producer's batch or a transaction marker is refused (compiled, pure).

The rules are Kafka's. Each function is given what is known of the producer, and returns or raises.
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
# From here on a transaction ends with an epoch of its own, one above that of its records. (KIP-890)
_EPOCH_PER_TXN: Final[i64] = 2


def check_epoch(producer_id: int, producer: ProducerState, epoch: i64) -> None:
    """Batches of an epoch that is over come from a producer that was replaced."""
    if epoch < producer.epoch:
        raise InvalidProducerEpoch(producer_id, epoch=epoch, current=producer.epoch)


def check_sequence(
    producer_id: int, producer: ProducerState, epoch: i64, sequence: i64, waiting: Verification | None
) -> None:
    """A client's batch goes on exactly where its last one ended, and each epoch starts at 0."""
    if waiting is not None:
        _check_first_of_transaction(producer_id, producer, sequence, waiting)
    # Nothing is known: it is new, or its records were deleted and its state has expired.
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
            producer_id, sequence=sequence, expected=expected, why="records are missing in between"
        )


def _check_first_of_transaction(
    producer_id: int, producer: ProducerState, sequence: i64, waiting: Verification
) -> None:
    # With an epoch per transaction a producer that lost its state here gets a new epoch and starts at 0.
    if waiting.epoch_bump and sequence != 0 and producer.written == 0:
        raise OutOfOrderSequence(
            producer_id, sequence=sequence, expected=0, why="nothing is known of this producer"
        )
    # Batches are verified side by side. If a later one went first, the earlier ones could never follow.
    if sequence > waiting.lowest_sequence:
        raise OutOfOrderSequence(
            producer_id,
            sequence=sequence,
            expected=waiting.lowest_sequence,
            why="an earlier batch is still to be verified",
        )


def check_verified(
    producer_id: int,
    producer: ProducerState,
    epoch: i64,
    waiting: Verification | None,
    shown: Verification | None,
) -> None:
    """The first batch of a transaction shows what the log waits for; later ones are known by the first."""
    if producer.txn_first_offset >= 0 and producer.epoch == epoch:
        return
    if waiting is None or waiting is not shown:
        raise InvalidTxnState(producer_id, "the batch is not part of a transaction that was verified")


def check_transactional(producer_id: int, producer: ProducerState, transactional: bool) -> None:
    """While a transaction is open, its producer writes nothing outside of it."""
    if producer.txn_first_offset >= 0 and not transactional:
        raise InvalidTxnState(
            producer_id,
            f"a transaction is open since offset {producer.txn_first_offset}, and the batch is not of it",
        )


def check_marker(
    producer_id: int,
    producer: ProducerState,
    epoch: i64,
    coordinator_epoch: i64,
    transaction_version: i64,
) -> None:
    """A marker is of the producer's newest epoch, and from its newest coordinator."""
    stale = epoch < producer.epoch
    # Where each transaction has its epoch, a marker is newer than the records that it ends. One of the same
    # epoch is a late one of the transaction before; with nothing open it does no harm, and whoever sends
    # it again because the answer was lost must get through. (KAFKA-19999) There is none above the last epoch:
    # with that one a transaction can only have been fenced.
    if transaction_version >= _EPOCH_PER_TXN and epoch == producer.epoch:
        stale = producer.txn_first_offset >= 0 and epoch != _LAST_EPOCH
    if stale:
        raise InvalidProducerEpoch(producer_id, epoch=epoch, current=producer.epoch)
    if coordinator_epoch < producer.coordinator_epoch:
        raise TransactionCoordinatorFenced(
            producer_id, coordinator_epoch=coordinator_epoch, current=producer.coordinator_epoch
        )
