"""Replay of the log, compacted or not, restores the state."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from barnabas.coordinators.decision.outcome import Record, StoredRecord
from barnabas.protocol.stored import consumer_groups as stored
from support.group.consumer_stories import Consumer, ConsumerStory
from support.group.stories import decoded


def _loaded(records: Iterable[Record], like: ConsumerStory) -> ConsumerStory:
    after = ConsumerStory(like.settings, topics=like.topics)
    for key, value in decoded(records):
        after.shard.apply(StoredRecord(key, value))
    return after


def _compacted(records: list[Record], *, keep_tombstones: bool) -> list[Record]:
    """The last record of every key, in its place."""
    last = {record.encoded()[0]: number for number, record in enumerate(records)}
    return [
        record
        for number, record in enumerate(records)
        if last[record.encoded()[0]] == number and (keep_tombstones or record.encoded()[1] is not None)
    ]


def _eventful() -> ConsumerStory:
    story = ConsumerStory(topics={"orders": 6, "orders-eu": 3})
    first = story.joins("first")
    static = story.joins(Consumer("static", instance_id="one"))
    story.settles(first, static)
    story.leaves(static, epoch=-2)
    static = story.joins(Consumer("static again", instance_id="one"))
    by_regex = story.joins(Consumer("by regex", topics=None, regex="orders.*"))
    story.settles(first, static, by_regex)
    story.leaves(first)
    story.joins(Consumer("late"))
    story.beats(static)
    return story


def test_replaying_the_log_restores_the_state() -> None:
    story = _eventful()

    assert story.replayed().shard.durable() == story.shard.durable()


@pytest.mark.parametrize("keep_tombstones", [True, False])
def test_replaying_a_compacted_log_restores_the_state(keep_tombstones: bool) -> None:
    story = _eventful()

    after = _loaded(_compacted(story.stage.records, keep_tombstones=keep_tombstones), story)

    assert after.shard.durable() == story.shard.durable()


def test_counts_after_loading_are_those_of_before() -> None:
    story = _eventful()

    after = _loaded(_compacted(story.stage.records, keep_tombstones=False), story)

    assert after.group.state == story.group.state
    assert after.group.static == story.group.static
    assert sorted(after.group.subscriptions) == sorted(story.group.subscriptions)
    assert after.group.subscriptions.regexes == story.group.subscriptions.regexes
    for number in range(6):
        topic = next(iter(story.group.members["static again"].assigned))
        assert after.group.ownership.holder(topic, number) == story.group.ownership.holder(topic, number)


def test_records_are_accepted_in_any_order_and_the_last_of_each_key_counts() -> None:
    story = _eventful()
    records = _compacted(story.stage.records, keep_tombstones=False)

    for seed in range(20):
        shuffled = records.copy()
        Random(seed).shuffle(shuffled)
        assert _loaded(shuffled, story).shard.durable() == story.shard.durable()


@pytest.mark.parametrize(
    "key",
    [
        stored.ConsumerGroupMetadataKey(group_id="x"),
        stored.ConsumerGroupPartitionMetadataKey(group_id="x"),
        stored.ConsumerGroupMemberMetadataKey(group_id="x", member_id="m"),
        stored.ConsumerGroupTargetAssignmentMetadataKey(group_id="x"),
        stored.ConsumerGroupTargetAssignmentMemberKey(group_id="x", member_id="m"),
        stored.ConsumerGroupCurrentMemberAssignmentKey(group_id="x", member_id="m"),
        stored.ConsumerGroupRegularExpressionKey(group_id="x", regular_expression="r"),
    ],
)
def test_tombstones_of_unknown_keys_are_ignored(key: Any) -> None:
    story = ConsumerStory()
    story.joins("a")
    before = story.shard.durable()

    story.shard.apply(StoredRecord(key, None))
    key.group_id = "g"
    if not isinstance(key, stored.ConsumerGroupMetadataKey | stored.ConsumerGroupTargetAssignmentMetadataKey):
        story.shard.apply(StoredRecord(key, None))

    assert story.shard.durable() == before


def test_a_group_that_is_deleted_is_gone_from_the_log() -> None:
    story = ConsumerStory(topics={"orders": 1, "orders-eu": 1})
    member = story.joins("a", topics=None, regex="orders.*")
    story.leaves(member)

    story.stage.ask(lambda to, _: story.shard.delete(["g"], to))

    assert "g" not in story.context.groups
    assert _compacted(story.stage.records, keep_tombstones=False) == []


def test_partitions_of_a_release_without_assignment_epochs_have_the_member_s() -> None:
    story = ConsumerStory()
    key = stored.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    value = stored.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7,
        previous_member_epoch=6,
        state=0,
        assigned_partitions=[
            stored.TopicPartitions(
                topic_id=story.context.new_uuid(), partitions=[1, 2], assignment_epochs=None
            )
        ],
        partitions_pending_revocation=[],
    )

    story.shard.apply(StoredRecord(key, value))

    assert list(story.group.members["m"].assigned.values()) == [{1: 7, 2: 7}]


def test_old_partition_metadata_is_deleted_with_the_next_epoch() -> None:
    story = ConsumerStory()
    member = story.joins("a")
    key = stored.ConsumerGroupPartitionMetadataKey(group_id="g")
    story.shard.apply(StoredRecord(key, stored.ConsumerGroupPartitionMetadataValue()))
    before = len(story.stage.records)

    story.joins("b")
    story.beats(member)

    assert story.kinds(before)[:3] == ["MemberMetadata", "Metadata", "PartitionMetadata-"]
    assert story.kinds(before).count("PartitionMetadata-") == 1


def test_members_with_equal_topics_share_them() -> None:
    story = ConsumerStory()
    story.joins("a", topics=("orders", "payments"))
    story.joins("b", topics=("payments", "orders"))

    after = story.replayed()

    for shard in (story, after):
        first, second = shard.group.members.values()
        assert first.topics is second.topics
        assert first.client_host is second.client_host


def test_a_tombstone_of_the_group_takes_it_away() -> None:
    story = ConsumerStory()
    story.leaves(story.joins("a"))

    story.shard.apply(StoredRecord(stored.ConsumerGroupMetadataKey(group_id="g"), None))

    assert "g" not in story.context.groups


def test_a_tombstone_of_the_target_epoch_takes_it_away() -> None:
    story = ConsumerStory()
    story.joins("a")

    story.shard.apply(StoredRecord(stored.ConsumerGroupTargetAssignmentMetadataKey(group_id="g"), None))

    assert (story.group.assignment_epoch, story.group.assignment_ms) == (-1, 0)


def test_a_member_without_its_assignment_holds_nothing() -> None:
    story = ConsumerStory()
    story.joins("a")
    (topic,) = story.group.members["a"].assigned
    key = stored.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a")

    story.shard.apply(StoredRecord(key, None))

    assert story.group.members["a"].epoch == -1
    assert story.group.ownership.holder(topic, 0) is None


def test_late_tombstones_of_a_replaced_member_remove_nothing_else() -> None:
    story = ConsumerStory()
    story.joins(Consumer("old", instance_id="one"))
    (topic,) = story.group.members["old"].assigned
    story.group.put_member(replace(story.group.members["old"], id="new"))

    for kind in (stored.ConsumerGroupCurrentMemberAssignmentKey, stored.ConsumerGroupMemberMetadataKey):
        story.shard.apply(StoredRecord(kind(group_id="g", member_id="old"), None))

    assert story.group.static == {"one": "new"}
    assert story.group.ownership.holder(topic, 0) == "new"
