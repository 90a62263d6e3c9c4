"""Errors for a producer's batch or a transaction marker. The server's table maps them to wire codes.

Each concerns one producer and one partition: nothing was appended, and the log is intact.
"""

from barnabas.storage.errors import StorageError


class ProducerRefused(StorageError):
    """The batch or marker does not fit the producer's state."""

    def __init__(self, producer_id: int, what: str) -> None:
        super().__init__(f"producer {producer_id}: {what}")
        self.producer_id = producer_id


class OutOfOrderSequence(ProducerRefused):
    """Earlier records are missing, or the batch is a retry that is no longer remembered."""

    def __init__(self, producer_id: int, *, sequence: int, expected: int, why: str) -> None:
        super().__init__(producer_id, f"batch starts at sequence {sequence}, expected {expected}: {why}")
        self.sequence = sequence
        self.expected = expected


class InvalidProducerEpoch(ProducerRefused):
    """The epoch is fenced: a newer instance of the producer has written, or a transaction has ended."""

    def __init__(self, producer_id: int, *, epoch: int, current: int) -> None:
        super().__init__(producer_id, f"epoch {epoch} is fenced, the current epoch is {current}")
        self.epoch = epoch
        self.current = current


class InvalidTxnState(ProducerRefused):
    """A transactional batch outside of a transaction, or a non-transactional one inside."""


class TransactionCoordinatorFenced(ProducerRefused):
    """A marker from a coordinator that was replaced."""

    def __init__(self, producer_id: int, *, coordinator_epoch: int, current: int) -> None:
        super().__init__(
            producer_id,
            f"marker of coordinator epoch {coordinator_epoch} is fenced, the current epoch is {current}",
        )
        self.coordinator_epoch = coordinator_epoch
        self.current = current
