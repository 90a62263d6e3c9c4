"""A fast constructor of topic partitions (compiled): a request names many."""

from typing import Final

from barnabas.base.ids import TopicPartition

_new: Final = tuple.__new__


def topic_partition(topic: str, partition: int) -> TopicPartition:
    """TopicPartition(topic, partition) at half the cost: the named tuple's own constructor is interpreted."""
    return _new(TopicPartition, (topic, partition))
