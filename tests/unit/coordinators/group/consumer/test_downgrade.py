"""Downgrade of a consumer group to a classic one when its last member of the consumer protocol leaves."""

from dataclasses import replace

import pytest

from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.stored.consumer_protocol import ConsumerProtocolAssignment
from barnabas.protocol.stored.framing import decode_versioned
from support.group.consumer_stories import SESSION_MS, Consumer
from support.group.mixed_stories import NO_DELAY, Classic, MixedStory


def _mixed(settings: GroupSettings = NO_DELAY, **consumer: str) -> tuple[MixedStory, Consumer, Classic]:
    story = MixedStory(settings)
    modern = story.joins("consumer", **consumer)
    classic = story.syncs(story.joins_classically(Classic("classic")))
    story.beats(modern)
    story.beats(modern)
    story.follows(classic)
    assert story.group.state == "Stable"
    return story, modern, classic


def _assigned(group: ClassicGroup, member_id: str) -> set[int]:
    read, _ = decode_versioned(ConsumerProtocolAssignment, group.members[member_id].assignment)
    return {number for given in read.assigned_partitions for number in given.partitions}


def test_downgrading_the_last_consumer_member_starts_a_rebalance() -> None:
    story, modern, classic = _mixed()
    epoch = story.group.epoch

    assert story.leaves(modern).error_code == 0

    group = story.classic_group
    assert (group.state, group.generation, group.protocol) == ("PreparingRebalance", epoch, "range")
    assert list(group.members) == [classic.id]
    assert _assigned(group, classic.id) == classic.partitions()
    assert story.beats_classically(classic) is ErrorCode.REBALANCE_IN_PROGRESS
    rejoined = story.asks_to_join_classically(classic)
    assert rejoined.error is ErrorCode.NONE
    assert rejoined.answer.generation_id == epoch + 1
    assert rejoined.answer.leader == classic.id


def test_the_log_has_only_the_classic_group() -> None:
    story, modern, _ = _mixed()
    before = len(story.stage.records)

    story.leaves(modern)

    assert story.kinds(before) == [
        "CurrentMemberAssignment-",
        "CurrentMemberAssignment-",
        "TargetAssignmentMember-",
        "TargetAssignmentMember-",
        "TargetAssignmentMetadata-",
        "MemberMetadata-",
        "MemberMetadata-",
        "PartitionMetadata-",
        "Metadata-",
        "GroupMetadata",
    ]
    after = story.replayed()
    assert after.shard.durable() == story.shard.durable()
    assert after.context.groups["g"].state == "Stable"


def test_an_expired_session_downgrades_too() -> None:
    story, _, classic = _mixed()

    for _ in range(SESSION_MS // 1_000):
        story.stage.pass_time(1_000)
        story.beats_classically(classic)

    assert story.classic_group.state == "PreparingRebalance"
    assert list(story.classic_group.members) == [classic.id]


def test_sessions_continue_after_a_downgrade() -> None:
    story, modern, classic = _mixed()
    story.leaves(modern)
    story.asks_to_join_classically(classic)
    story.syncs_as_leader(classic)

    story.stage.pass_time(9_000)
    assert story.beats_classically(classic) is ErrorCode.NONE
    story.stage.pass_time(10_000)

    assert story.classic_group.is_empty


def test_no_timer_of_the_consumer_group_is_left() -> None:
    story, modern, classic = _mixed()

    story.leaves(modern)

    for kind in ("session", "rebalance", "classic-member-join", "classic-member-sync"):
        for member_id in (modern.id, classic.id):
            assert (kind, "g", member_id) not in story.context.timers


@pytest.mark.parametrize("migration", ["disabled", "upgrade"])
def test_groups_are_downgraded_only_if_the_policy_allows_it(migration: str) -> None:
    story, modern, classic = _mixed(replace(NO_DELAY, migration=migration))

    story.leaves(modern)

    assert list(story.group.members) == [classic.id]


def test_a_group_too_large_for_the_classic_protocol_stays_a_consumer_group() -> None:
    story, modern, classic = _mixed(replace(NO_DELAY, classic_size_max=0))

    story.leaves(modern)

    assert list(story.group.members) == [classic.id]


def test_the_last_member_of_all_leaves_an_empty_consumer_group() -> None:
    story = MixedStory()
    modern = story.joins("consumer")

    story.leaves(modern)

    assert story.group.is_empty


def test_a_static_member_downgrades_without_a_rebalance() -> None:
    story, modern, classic = _mixed(instance_id="one")
    epoch, had = story.group.epoch, modern.partitions()

    back = story.joins_classically(Classic(instance_id="one"))

    group = story.classic_group
    assert (group.state, group.generation) == ("Stable", epoch)
    assert back.generation == epoch
    assert set(group.members) == {classic.id, back.id}
    assert _assigned(group, back.id) == had
    assert story.syncs(back).partitions() == had
    assert story.beats_classically(classic) is ErrorCode.NONE
    assert story.replayed().shard.durable() == story.shard.durable()


def test_a_downgrading_restart_with_another_subscription_starts_a_rebalance() -> None:
    story, _, classic = _mixed(instance_id="one")

    back = story.joins_classically(Classic(instance_id="one", topics=("orders", "payments")))

    # It has no generation of this group yet.
    assert back.generation == 0
    assert story.classic_group.state == "PreparingRebalance"
    assert story.beats_classically(classic) is ErrorCode.REBALANCE_IN_PROGRESS
    assert story.replayed().shard.durable() == story.shard.durable()


def test_a_static_member_rejoining_with_its_id_downgrades_too() -> None:
    story, modern, classic = _mixed(instance_id="one")
    had = modern.partitions()

    back = story.joins_classically(Classic(modern.id, instance_id="one"))

    group = story.classic_group
    assert back.id == modern.id
    assert set(group.members) == {classic.id, modern.id}
    assert story.syncs(back).partitions() == had
    assert story.beats_classically(classic) is ErrorCode.NONE
    assert story.replayed().shard.durable() == story.shard.durable()


def test_a_group_is_upgraded_and_downgraded_again() -> None:
    story, modern, classic = _mixed()
    story.leaves(modern)
    story.asks_to_join_classically(classic)
    story.syncs_as_leader(classic)

    again = story.joins("consumer")
    story.follows(classic)
    story.follows(classic)
    story.beats(again)

    assert story.group.state == "Stable"
    assert classic.partitions() | again.partitions() == set(range(6))
    assert story.replayed().shard.durable() == story.shard.durable()


def test_unrevoked_partitions_stay_with_their_member_during_repeated_migrations() -> None:
    """The group becomes classic, and a consumer group again, before its members have joined."""
    story, modern, first = _mixed()
    # The second one is to have some of what the first one reads, and the first has not heard of it.
    second = story.joins_classically(Classic("second"))
    reads = first.partitions()
    assert not story.group.members[second.id].assigned

    story.leaves(modern)
    assert _assigned(story.classic_group, first.id) == reads
    assert _assigned(story.classic_group, second.id) == set()
    again = story.joins("again")

    held = {number for numbers in story.group.members[first.id].assigned.values() for number in numbers}
    assert held == reads
    assert not reads & second.partitions()
    assert not reads & again.partitions()
