"""A classic group that becomes a consumer group when the first member of that protocol joins."""

from dataclasses import replace

import pytest

from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import MemberIdentity
from support.group.consumer_stories import Consumer, topic_id
from support.group.mixed_stories import NO_DELAY, Classic, MixedStory, assignment

ALL = {"orders": [0, 1, 2, 3, 4, 5]}


def _upgraded() -> tuple[MixedStory, Classic, Consumer]:
    story = MixedStory()
    classic = Classic()
    story.is_classic_with(classic, parts=[ALL])
    return story, classic, story.joins("new")


def test_classic_members_keep_their_partitions_after_an_upgrade() -> None:
    story, classic, new = _upgraded()

    member = story.group.members[classic.id]
    assert member.classic is not None
    assert member.epoch == classic.generation == 1
    assert member.assigned == {topic_id("orders"): dict.fromkeys(range(6), 1)}
    assert new.epoch == 2
    assert new.partitions() == set()


def test_the_records_of_the_classic_group_are_replaced() -> None:
    story = MixedStory()
    classic = Classic()
    story.is_classic_with(classic, parts=[ALL])
    before = len(story.stage.records)

    story.joins("new")

    assert story.kinds(before) == [
        "GroupMetadata-",
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]
    assert story.replayed().shard.durable() == story.shard.durable()


def test_partitions_go_from_a_classic_member_to_a_new_one() -> None:
    story, classic, new = _upgraded()

    assert story.beats_classically(classic) is ErrorCode.REBALANCE_IN_PROGRESS
    story.joins_classically(classic)
    # It is to give up its share first, and is told what to keep.
    assert classic.generation == 1
    story.syncs(classic)
    assert len(classic.partitions()) == 3
    story.beats(new)
    assert new.partitions() == set()
    story.follows(classic)
    story.beats(new)

    assert classic.generation == new.epoch == 2
    assert classic.partitions() | new.partitions() == set(range(6))
    assert not classic.partitions() & new.partitions()
    assert story.group.state == "Stable"
    assert story.beats_classically(classic) is ErrorCode.NONE


def test_pending_requests_of_the_classic_group_get_rebalance_in_progress() -> None:
    story = MixedStory()
    first, second = Classic(), Classic()
    story.is_classic_with(first, parts=[ALL])
    second.id = story.asks_to_join_classically(second).answer.member_id
    waiting = story.asks_to_join_classically(second)
    assert waiting.waits

    story.joins("new")

    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert set(story.group.members) == {first.id, second.id, "new"}


def test_a_classic_member_is_taken_out_when_its_own_session_ends() -> None:
    story, classic, new = _upgraded()

    story.waits(9_000, new)
    assert classic.id in story.group.members
    story.waits(2_000, new)

    assert list(story.group.members) == ["new"]
    assert new.partitions() == set(range(6))


def test_a_static_member_upgrades_in_place() -> None:
    story = MixedStory()
    classic = Classic(instance_id="one")
    story.is_classic_with(classic, parts=[ALL])

    back = story.joins(Consumer("back", instance_id="one"))

    assert back.partitions() == set(range(6))
    assert list(story.group.members) == ["back"]
    assert story.group.classic_members == 0


def test_an_empty_classic_group_is_replaced() -> None:
    story = MixedStory()
    classic = Classic()
    story.is_classic_with(classic, parts=[ALL])
    before = len(story.stage.records)
    story.leaves_classically(MemberIdentity(member_id=classic.id))

    new = story.joins("new")

    assert new.partitions() == set(range(6))
    assert "GroupMetadata-" in story.kinds(before)
    assert isinstance(story.context.groups["g"], ConsumerGroup)
    assert story.replayed().shard.durable() == story.shard.durable()


def test_a_group_that_has_nothing_but_offsets_is_replaced() -> None:
    story = MixedStory()
    story.shard.classic.new("g")

    new = story.joins("new")

    assert new.partitions() == set(range(6))


@pytest.mark.parametrize("migration", ["disabled", "downgrade"])
def test_groups_are_upgraded_only_if_the_policy_allows_it(migration: str) -> None:
    story = MixedStory(replace(NO_DELAY, migration=migration))
    classic = Classic()
    story.is_classic_with(classic, parts=[ALL])

    answer = story.asks_to_join(Consumer("new"))

    assert story.error(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert story.beats_classically(classic) is ErrorCode.NONE


def test_a_heartbeat_that_is_no_join_does_not_upgrade() -> None:
    story = MixedStory()
    classic = Classic()
    story.is_classic_with(classic, parts=[ALL])

    answer = story.asks(Consumer("new"), member_epoch=3)

    assert story.error(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert story.classic_group.state == "Stable"


def test_groups_of_other_protocol_types_are_not_upgraded() -> None:
    story = MixedStory()
    worker = Classic()
    worker.id = story.asks_to_join_classically(worker, protocol_type="connect").answer.member_id
    story.asks_to_join_classically(worker, protocol_type="connect")

    answer = story.asks_to_join(Consumer("new"))

    assert story.error(answer) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_with_user_data_of_a_custom_assignor_is_not_upgraded() -> None:
    story = MixedStory()
    classic = Classic()
    story.is_classic_with(classic, parts=[ALL])
    story.classic_group.members[classic.id].assignment = assignment(ALL, user_data=b"mine")

    answer = story.asks_to_join(Consumer("new"))

    assert story.error(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert story.classic_group.state == "Stable"


def test_metadata_that_cannot_be_read_keeps_a_group_classic() -> None:
    story = MixedStory()
    classic = Classic()
    story.is_classic_with(classic, parts=[ALL])
    story.classic_group.members[classic.id].protocols = (("range", b"\x00"),)

    answer = story.asks_to_join(Consumer("new"))

    assert story.error(answer) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_that_is_too_large_is_not_upgraded() -> None:
    story = MixedStory(replace(NO_DELAY, consumer_size_max=0))
    classic = Classic()
    story.is_classic_with(classic, parts=[ALL])

    answer = story.asks_to_join(Consumer("new"))

    assert story.error(answer) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_join_that_is_refused_leaves_the_classic_group_as_it_was() -> None:
    story = MixedStory()
    classic = Classic()
    story.is_classic_with(classic, parts=[ALL])
    before = len(story.stage.records)

    answer = story.asks_to_join(Consumer("new", topics=None, regex="("))

    assert story.error(answer) is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert story.stage.records[before:] == []
    assert story.beats_classically(classic) is ErrorCode.NONE
    story.stage.pass_time(9_000)
    assert story.beats_classically(classic) is ErrorCode.NONE


def test_a_group_with_a_partition_assigned_twice_is_not_upgraded() -> None:
    story = MixedStory()
    first, second = Classic(), Classic()
    story.is_classic_with(first, second, parts=[ALL, {"orders": [5]}])

    answer = story.asks_to_join(Consumer("new"))

    assert story.error(answer) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert story.classic_group.state == "Stable"


def test_a_group_in_its_first_rebalance_is_not_upgraded() -> None:
    story = MixedStory(replace(NO_DELAY, initial_rebalance_delay_ms=3_000))
    classic = Classic()
    classic.id = story.asks_to_join_classically(classic).answer.member_id
    waiting = story.asks_to_join_classically(classic)

    answer = story.asks_to_join(Consumer("new"))

    assert story.error(answer) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert waiting.waits


def test_a_consumer_heartbeat_upgrades_a_classic_member() -> None:
    story, classic, new = _upgraded()
    story.follows(classic)
    story.follows(classic)
    story.beats(new)
    assert story.group.state == "Stable"
    over = Consumer(classic.id)
    over.epoch = classic.generation

    story.beats(over)

    assert story.group.members[classic.id].classic is None
    assert story.group.classic_members == 0
    assert story.group.classic_protocols == {}


def test_a_group_too_large_for_one_batch_stays_classic() -> None:
    # In Kafka, too. All of the new group is one batch, so that nobody reads half of it.
    story = MixedStory(batch_bytes_max=20_000)
    members = [Classic() for _ in range(100)]
    story.is_classic_with(*members, parts=[{"orders": [0]}, *([{}] * 99)])
    before = len(story.stage.records)

    answer = story.asks_to_join(Consumer("new"))

    assert story.error(answer) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(story.stage.records) == before
    assert story.classic_group.state == "Stable"
    assert story.beats_classically(members[0]) is ErrorCode.NONE


def test_a_classic_member_with_a_subscription_too_large_is_rejected() -> None:
    story = MixedStory(batch_bytes_max=100_000)
    classic = Classic()
    story.is_classic_with(classic, parts=[ALL])
    story.joins("new")
    before = len(story.stage.records)
    second = Classic(topics=tuple(f"{n:0200}" for n in range(600)))
    second.id = story.asks_to_join_classically(second).answer.member_id

    answer = story.asks_to_join_classically(second)

    assert answer.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(story.stage.records) == before
    assert second.id not in story.group.members
