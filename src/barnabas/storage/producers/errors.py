"""Why a producer's batch or a transaction marker is refused. The server's table gives each its wire code.

All of them are answers to one producer about one partition: nothing was appended, and the log is well.
"""

from barnabas.storage.errors import StorageError


class ProducerRefused(StorageError):
    """What this producer sent does not go on from what it sent before."""

    def __init__(self, producer_id: int, what: str) -> None:
        super().__init__(f"producer {producer_id}: {what}")
        self.producer_id = producer_id


class OutOfOrderSequence(ProducerRefused):
    """Records before these are missing, or these were written so long ago that nothing is known of them."""

    def __init__(self, producer_id: int, *, sequence: int, expected: int, why: str) -> None:
        super().__init__(producer_id, f"the batch starts at sequence {sequence}, not {expected}: {why}")
        self.sequence = sequence
        self.expected = expected


class InvalidProducerEpoch(ProducerRefused):
    """A newer instance of the producer has written, or a transaction has ended: the sender is a zombie."""

    def __init__(self, producer_id: int, *, epoch: int, current: int) -> None:
        super().__init__(producer_id, f"epoch {epoch} is out of date, the log has seen epoch {current}")
        self.epoch = epoch
        self.current = current


class InvalidTxnState(ProducerRefused):
    """A transactional batch outside of a transaction, or another one inside of it."""


class TransactionCoordinatorFenced(ProducerRefused):
    """A marker from a coordinator that has been replaced."""

    def __init__(self, producer_id: int, *, coordinator_epoch: int, current: int) -> None:
        super().__init__(
            producer_id,
            f"a marker of coordinator epoch {coordinator_epoch}, the log has seen epoch {current}",
        )
        self.coordinator_epoch = coordinator_epoch
        self.current = current
