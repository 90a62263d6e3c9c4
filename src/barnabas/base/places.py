"""Topic partitions made by the dozen (compiled): a request names many."""

from typing import Final

from barnabas.base.ids import TopicPartition

_new: Final = tuple.__new__


def topic_partition(topic: str, partition: int) -> TopicPartition:
    """The same as TopicPartition(topic, partition), whose constructor is interpreted: at half its price."""
    return _new(TopicPartition, (topic, partition))
