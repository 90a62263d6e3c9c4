"""What is asked of the shell when a transaction is to end: a marker in each of its partitions."""

from typing import NamedTuple

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
