"""Incremental assignment of members that join while the group still reconciles."""

import pytest

from barnabas.coordinators.decision.outcome import StoredRecord
from barnabas.coordinators.group.assignors.homogeneous import owned_by, share_evenly
from barnabas.coordinators.group.assignors.spec import Assignment, TopicSpec
from barnabas.protocol.stored import consumer_groups as stored
from support.group.consumer_stories import Consumer, ConsumerStory, topic_id

ORDERS = topic_id("orders")
NAMES = [f"m{number}" for number in range(9)]


def expected(members: list[str], targets: dict[str, Assignment], partitions: int) -> dict[str, Assignment]:
    """As they are shared out when nothing is known but what each has."""
    topics = {ORDERS: TopicSpec(partitions)}
    return share_evenly(owned_by(members, targets), frozenset(topics), topics)


def put_target(story: ConsumerStory, member_id: str, *partitions: int) -> None:
    key = stored.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id=member_id)
    topic = stored.TopicPartition(topic_id=ORDERS, partitions=list(partitions))
    value = stored.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=[topic])
    story.shard.apply(StoredRecord(key, value))


@pytest.mark.parametrize("partitions", [1, 7, 30])
def test_each_that_joins_is_assigned_as_if_all_were_assigned_together(partitions: int) -> None:
    story = ConsumerStory(topics={"orders": partitions})

    for count, name in enumerate(NAMES, 1):
        targets = dict(story.group.targets) if count > 1 else {}
        story.joins(name)

        assert story.group.targets == expected(NAMES[:count], targets, partitions)
        assert count == 1 or story.group.shares is not None, "it was not by counts"
    assert story.replayed().shard.durable() == story.shard.durable()


def test_partitions_of_a_leaving_member_go_to_new_members() -> None:
    story = ConsumerStory(topics={"orders": 7})
    members = [story.joins(name) for name in NAMES[:4]]

    story.leaves(members[1])
    targets = dict(story.group.targets)
    story.joins("late")

    assert story.group.targets == expected(["m0", "m2", "m3", "late"], targets, 7)


def test_counts_are_dropped_when_all_members_have_their_targets() -> None:
    story = ConsumerStory(topics={"orders": 7})
    members = [story.joins(name) for name in NAMES[:3]]
    assert story.group.shares is not None

    story.settles(*members)

    assert story.group.shares is None
    targets = dict(story.group.targets)
    story.joins("late")
    assert story.group.targets == expected(["m0", "m1", "m2", "late"], targets, 7)


def test_a_target_without_a_member_invalidates_the_counts() -> None:
    story = ConsumerStory(topics={"orders": 7})
    story.joins("m0")
    story.joins("m1")

    put_target(story, "stranger", 1)

    assert story.group.shares is None


def test_a_target_that_exists_before_the_join_is_kept_where_valid() -> None:
    story = ConsumerStory(topics={"orders": 7})
    story.joins("m0")
    story.joins("m1")
    put_target(story, "late", 6)
    story.joins("m2")
    targets = dict(story.group.targets)

    story.joins("late")

    assert story.group.targets == expected(["m0", "m1", "m2", "late"], targets, 7)
    targets = dict(story.group.targets)
    story.joins("last")
    assert story.group.targets == expected(["m0", "m1", "m2", "late", "last"], targets, 7)


def test_a_returning_static_member_keeps_its_position() -> None:
    story = ConsumerStory(topics={"orders": 4})
    first = story.joins(Consumer("m0", instance_id="one"))
    second = story.joins("m1")
    story.settles(first, second)
    story.leaves(first, epoch=-2)
    story.has_topics({"orders": 7})
    targets = {"m1": story.group.targets["m1"], "m2": story.group.targets["m0"]}

    story.joins(Consumer("m2", instance_id="one"))

    assert story.group.targets == expected(["m1", "m2"], targets, 7)


def test_a_partition_with_two_owners_goes_to_the_first_of_them() -> None:
    story = ConsumerStory(topics={"orders": 4})
    story.joins("m0")
    story.joins("m1")

    put_target(story, "m1", 0, 1)
    targets = dict(story.group.targets)
    story.joins("m2")

    assert story.group.targets == expected(["m0", "m1", "m2"], targets, 4)
    assert _numbers(story) == [0, 1, 2, 3]


def test_equal_member_metadata_is_interned() -> None:
    story = ConsumerStory(topics={"orders": 4})
    for name in NAMES[:3]:
        story.joins(Consumer(name, topics=["".join(["or", "ders"])]))

    first, *others = story.group.members.values()

    for other in others:
        assert other.topics is first.topics
        assert other.client_host is first.client_host


def _numbers(story: ConsumerStory) -> list[int]:
    none: frozenset[int] = frozenset()
    return sorted(number for target in story.group.targets.values() for number in target.get(ORDERS, none))
