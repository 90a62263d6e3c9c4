"""What is asked of the shell when a transaction is to end: a marker in each of its partitions."""

from typing import Final, NamedTuple

from barnabas.base.ids import TopicPartition


class MarkersToWrite(NamedTuple):
    """Given to `ground.markers` when the decision is committed, and again after a load."""

    transactional_id: str
    producer_id: int
    # That of the markers: with an epoch for each transaction it is one above that of its records.
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    partitions: frozenset[TopicPartition]
    transaction_version: int


class Marking:
    """A prepared transaction, and which of its partitions have no marker yet.

    It is not in the log: after a load all are written again.
    """

    __slots__ = ("ended", "missing")

    def __init__(self, ended: MarkersToWrite) -> None:
        self.ended: Final = ended
        self.missing: Final = set(ended.partitions)
