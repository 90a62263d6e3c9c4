"""Members of the classic protocol in a consumer group: it answers them as a classic group would."""

from dataclasses import replace
from typing import Any

import pytest

from barnabas.coordinators.group.consumer.member import MemberState
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import JoinGroupRequestProtocol, MemberIdentity
from support.group.consumer_stories import Consumer
from support.group.mixed_stories import (
    CLASSIC_REBALANCE_MS,
    CLASSIC_SESSION_MS,
    NO_DELAY,
    Classic,
    MixedStory,
)


def _mixed() -> tuple[MixedStory, Consumer, Classic]:
    """A stable group of one member of each protocol."""
    story = MixedStory()
    consumer = story.joins("consumer")
    classic = story.syncs(story.joins_classically(Classic("classic")))
    story.beats(consumer)
    story.beats(consumer)
    story.follows(classic)
    assert story.group.state == "Stable"
    assert len(classic.partitions()) == len(consumer.partitions()) == 3
    return story, consumer, classic


def test_a_member_without_an_id_gets_one_to_rejoin_with() -> None:
    story = MixedStory()
    story.joins("consumer")

    answer = story.asks_to_join_classically(Classic())

    assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
    assert answer.answer.member_id
    assert list(story.group.members) == ["consumer"]
    assert story.asks_to_join_classically(Classic(), version=3).error is ErrorCode.NONE


def test_a_classic_member_is_never_the_leader() -> None:
    story = MixedStory()
    story.joins("consumer")

    answer = story.asks_to_join_classically(Classic("classic")).answer

    assert (answer.leader, answer.members) == ("", [])
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert answer.generation_id == story.group.epoch == 3


def test_a_member_that_waits_for_partitions_rejoins_only_when_they_are_free() -> None:
    story = MixedStory()
    consumer = story.joins("consumer")
    classic = story.syncs(story.joins_classically(Classic("classic")))
    assert classic.partitions() == set()

    assert story.beats_classically(classic) is ErrorCode.NONE
    story.beats(consumer)
    assert story.beats_classically(classic) is ErrorCode.NONE
    story.beats(consumer)

    # Now what it waits for is free.
    assert story.beats_classically(classic) is ErrorCode.REBALANCE_IN_PROGRESS


def test_classic_members_are_restored_from_the_log() -> None:
    story, _, classic = _mixed()

    after = story.replayed()

    assert after.shard.durable() == story.shard.durable()
    assert after.group.classic_members == 1
    assert after.group.members[classic.id].classic == story.group.members[classic.id].classic


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (
            {"protocols": [JoinGroupRequestProtocol(name="mine", metadata=b"")]},
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ),
        (
            {"protocols": [JoinGroupRequestProtocol(name="range", metadata=b"\x00")]},
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ),
        ({"group_instance_id": "nobody's"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_joins_that_are_refused(said: dict[str, Any], code: ErrorCode) -> None:
    story, _, _ = _mixed()
    before = len(story.stage.records)

    answer = story.asks_to_join_classically(Classic("third"), **said)

    assert answer.error is code
    assert story.stage.records[before:] == []


def test_a_full_group_takes_no_classic_member() -> None:
    story = MixedStory(replace(NO_DELAY, consumer_size_max=1))
    story.joins("consumer")

    assert story.asks_to_join_classically(Classic("c")).error is ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"generation_id": 77}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "consumer"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "nobody's"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_name": "roundrobin"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_syncs_that_are_refused(said: dict[str, Any], code: ErrorCode) -> None:
    story, _, classic = _mixed()

    assert story.asks_to_sync(classic, **said).error is code


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"generation_id": 77}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "consumer"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_heartbeats_that_are_refused(said: dict[str, Any], code: ErrorCode) -> None:
    story, _, classic = _mixed()

    assert story.beats_classically(classic, **said) is code


def test_a_sync_for_an_old_assignment_gets_rebalance_in_progress() -> None:
    story, _, classic = _mixed()
    story.joins("third")

    assert story.asks_to_sync(classic).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_does_not_rejoin_in_time_is_removed() -> None:
    story, consumer, classic = _mixed()
    third = story.joins("third")
    assert story.beats_classically(classic) is ErrorCode.REBALANCE_IN_PROGRESS

    for _ in range(CLASSIC_REBALANCE_MS // 1_000 - 1):
        story.stage.pass_time(1_000)
        story.beats_classically(classic)
        story.beats(consumer, third)
    assert classic.id in story.group.members
    story.stage.pass_time(1_000)

    assert classic.id not in story.group.members


def test_a_member_that_does_not_sync_in_time_is_removed() -> None:
    story = MixedStory()
    consumer = story.joins("consumer")
    classic = story.joins_classically(Classic("classic"))

    for _ in range(CLASSIC_REBALANCE_MS // 1_000):
        story.stage.pass_time(1_000)
        story.beats_classically(classic)
        story.beats(consumer)

    assert list(story.group.members) == ["consumer"]


def test_a_member_that_has_synced_stays() -> None:
    story, consumer, classic = _mixed()

    for _ in range(2 * CLASSIC_REBALANCE_MS // 1_000):
        story.stage.pass_time(1_000)
        story.beats_classically(classic)
        story.beats(consumer)

    assert len(story.group.members) == 2


def test_members_of_either_protocol_leave_by_leave_group() -> None:
    story, _, classic = _mixed()
    story.joins(Consumer("static", instance_id="one"))

    answer = story.leaves_classically(
        MemberIdentity(member_id=classic.id),
        MemberIdentity(member_id="nobody"),
        MemberIdentity(member_id="", group_instance_id="one"),
        MemberIdentity(member_id="other", group_instance_id="one"),
        MemberIdentity(member_id="", group_instance_id="two"),
    )

    assert [one.error_code for one in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert list(story.group.members) == ["consumer"]


def test_old_versions_of_leave_group_have_one_member_and_one_error() -> None:
    story, _, classic = _mixed()

    assert story.leaves_classically(MemberIdentity(member_id="x"), version=2).error_code == 25
    answer = story.leaves_classically(MemberIdentity(member_id=classic.id), version=0)

    assert (answer.error_code, answer.members) == (0, [])


def test_a_static_classic_member_that_restarts_takes_its_place() -> None:
    story = MixedStory()
    consumer = story.joins("consumer")
    one = story.syncs(story.joins_classically(Classic(instance_id="one")))
    story.beats(consumer)
    story.beats(consumer)
    story.follows(one)
    had = one.partitions()

    again = story.syncs(story.joins_classically(Classic(instance_id="one")))

    assert again.id != one.id
    assert again.partitions() == had
    assert story.beats_classically(one) is ErrorCode.FENCED_INSTANCE_ID
    assert story.group.state == "Stable"


def test_the_timers_of_a_static_member_that_is_replaced_are_gone() -> None:
    story = MixedStory()
    story.joins("consumer")
    one = story.joins_classically(Classic(instance_id="one"))
    assert ("classic-member-sync", "g", one.id) in story.context.timers

    story.joins_classically(Classic(instance_id="one"))

    for kind in ("session", "classic-member-sync"):
        assert (kind, "g", one.id) not in story.context.timers


def test_version_0_uses_the_session_timeout_for_rebalances() -> None:
    story = MixedStory()
    story.joins("consumer")

    story.asks_to_join_classically(Classic("classic"), version=0, rebalance_timeout_ms=-1)

    assert story.group.members["classic"].rebalance_timeout_ms == CLASSIC_SESSION_MS


def test_a_member_that_must_revoke_partitions_gets_rebalance_in_progress() -> None:
    story, _, classic = _mixed()
    member = story.group.members[classic.id]
    story.group.put_member(replace(member, state=MemberState.UNREVOKED))

    assert story.beats_classically(classic) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_duplicate_protocol_counts_once() -> None:
    story = MixedStory()
    story.joins("consumer")
    twice = [JoinGroupRequestProtocol(name="range", metadata=Classic().metadata())] * 2

    story.asks_to_join_classically(Classic("first"), protocols=twice)

    assert story.group.classic_protocols == {"range": 1}
    assert story.asks_to_join_classically(Classic("second")).error is ErrorCode.NONE
