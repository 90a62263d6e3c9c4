"""Topic partitions made by the dozen (compiled): a request names many."""

from barnabas.base.ids import TopicPartition


def topic_partition(topic: str, partition: int) -> TopicPartition:
    """The same as TopicPartition(topic, partition), whose constructor is interpreted: at half its price."""
    return tuple.__new__(TopicPartition, (topic, partition))
