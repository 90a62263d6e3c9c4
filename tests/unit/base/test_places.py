"""Topic partitions made the short way are those made the long one."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.base.places import topic_partition

pytestmark = pytest.mark.kernel


def test_it_is_a_topic_partition_like_any_other() -> None:
    made = topic_partition("orders", 7)

    assert type(made) is TopicPartition
    assert made == TopicPartition("orders", 7)
    assert hash(made) == hash(TopicPartition("orders", 7))
    assert (made.topic, made.partition, str(made)) == ("orders", 7, "orders-7")
