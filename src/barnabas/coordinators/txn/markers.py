"""The request to the shell to write the markers of an ended transaction."""

from typing import Final, NamedTuple

from barnabas.base.ids import TopicPartition


class MarkersToWrite(NamedTuple):
    """Sent to `ground.markers` when the decision is committed, and again after a load."""

    transactional_id: str
    producer_id: int
    # The epoch of the markers: with transactions version 2 it is one above that of the records.
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    partitions: frozenset[TopicPartition]
    transaction_version: int


class Marking:
    """A prepared transaction and its partitions without a marker.

    Only in memory: after a load all markers are written again.
    """

    __slots__ = ("ended", "missing")

    def __init__(self, ended: MarkersToWrite) -> None:
        self.ended: Final = ended
        self.missing: Final = set(ended.partitions)
