"""The assignment of a classic group's generation: who brings it, who gets it, and when it is refused."""

import pytest

from barnabas.protocol.error_codes import ErrorCode
from support.group.stories import Member, Story

pytestmark = pytest.mark.kernel


def opened() -> tuple[Story, Member, Member]:
    """A leader and a follower whose generation awaits its assignment."""
    group = Story()
    leader, follower = group.joins("leader"), group.joins("follower")
    group.opens(leader, follower)
    return group, leader, follower


def test_followers_wait_for_the_leader() -> None:
    group, leader, follower = opened()
    waiting = group.syncs(follower)
    assert waiting.waits

    brought = group.syncs(leader, {leader.id: b"1", follower.id: b"2"})

    assert (brought.answer.assignment, waiting.answer.assignment) == (b"1", b"2")
    assert (waiting.answer.protocol_type, waiting.answer.protocol_name) == ("consumer", "range")


def test_a_sync_after_the_leaders_is_answered_immediately() -> None:
    group, leader, follower = opened()
    group.syncs(leader, {follower.id: b"2"})

    assert group.syncs(follower).answer.assignment == b"2"


def test_members_omitted_by_the_leader_get_nothing_and_unknown_ones_are_ignored() -> None:
    group, leader, follower = opened()

    assert group.syncs(leader, {"stranger": b"3"}).answer.assignment == b""

    assert group.syncs(follower).answer.assignment == b""
    assert {one.member_id for one in group.values[-1].members} == {leader.id, follower.id}


def test_an_assignment_from_a_follower_is_ignored() -> None:
    group, leader, follower = opened()

    waiting = group.syncs(follower, {follower.id: b"all"})
    group.syncs(leader, {follower.id: b"little"})

    assert waiting.answer.assignment == b"little"


def test_in_a_stable_group_an_assignment_of_the_leader_is_ignored() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")
    written = len(group.stage.records)

    assert group.syncs(a, {a.id: b"all"}).answer.assignment == b"a"

    assert group.syncs(b).answer.assignment == b"b"
    assert len(group.stage.records) == written


def test_a_retried_sync_replaces_the_first() -> None:
    group, leader, follower = opened()
    first = group.syncs(follower)

    second = group.syncs(follower)
    group.syncs(leader, {follower.id: b"2"})

    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.answer.assignment == b"2"


@pytest.mark.parametrize(
    ("odd", "code"),
    [
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": -1, "protocol_name": "sticky"}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_an_inconsistent_sync_is_refused(odd: dict[str, object], code: ErrorCode) -> None:
    group, leader, _ = opened()

    assert group.syncs(leader, {leader.id: b"1"}, **odd).error is code
    assert group.state == "CompletingRebalance"


def test_before_version_5_no_protocol_is_said() -> None:
    group, leader, _ = opened()

    synced = group.syncs(leader, {leader.id: b"1"}, version=4, protocol_type=None, protocol_name=None)

    assert synced.answer.assignment == b"1"


def test_unknown_members_are_refused_in_every_state() -> None:
    group, _, _ = opened()
    stranger = Member("x")
    stranger.id, stranger.generation = "x-1", 1

    assert group.syncs(stranger).error is ErrorCode.UNKNOWN_MEMBER_ID
    empty = Story()
    empty.classic.new("g")
    assert empty.syncs(stranger, protocol_name="range").error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("group_id", "code"), [("g", ErrorCode.UNKNOWN_MEMBER_ID), ("", ErrorCode.INVALID_GROUP_ID)]
)
def test_a_sync_with_an_unknown_group_is_refused(group_id: str, code: ErrorCode) -> None:
    group = Story(group_id=group_id)

    assert group.syncs(Member("x"), protocol_name="range").error is code
    assert group.context.groups == {}


def test_old_assignments_are_dropped_if_the_new_one_does_not_arrive() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")
    group.joins(a)
    group.joins(b)
    group.learns(a, b)
    assert [one.member_assignment for one in group.classic.describe(group.group).members] == [b"a", b"b"]

    group.leaves(b)

    assert [one.member_assignment for one in group.classic.describe(group.group).members] == [b""]


def test_an_assignment_too_large_for_the_log_is_rejected() -> None:
    group, leader, follower = opened()
    waiting = group.syncs(follower)
    written = len(group.stage.records)

    refused = group.syncs(leader, {leader.id: bytes(600_000), follower.id: bytes(500_000)})

    assert refused.error is waiting.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(group.stage.records) == written
    assert group.state == "PreparingRebalance"
    group.joins(leader)
    group.joins(follower)
    group.learns(leader, follower)
    group.settles(leader, follower)


def test_an_assignment_that_just_fits_is_taken() -> None:
    group, leader, _ = opened()

    assert group.syncs(leader, {leader.id: bytes(1_047_000)}).error is ErrorCode.NONE
