"""Merging results about the partitions of the same topics."""

from barnabas.protocol.messages.group_offsets import OffsetDeleteResponsePartition, OffsetDeleteResponseTopic
from barnabas.server.requests.combining import merged_by_topic


def topic(name: str, *partitions: int) -> OffsetDeleteResponseTopic:
    rows = [OffsetDeleteResponsePartition(partition_index=one, error_code=0) for one in partitions]
    return OffsetDeleteResponseTopic(name=name, partitions=rows)


def test_a_topic_in_both_lists_keeps_its_first_position() -> None:
    first, then = [topic("a", 7), topic("b", 8)], [topic("c", 1), topic("b", 2, 3)]

    assert merged_by_topic(first, then) == [topic("a", 7), topic("b", 8, 2, 3), topic("c", 1)]


def test_merging_does_not_change_its_arguments() -> None:
    first, then = [topic("a", 7)], [topic("a", 1)]

    merged_by_topic(first, then)

    assert (first, then) == ([topic("a", 7)], [topic("a", 1)])
