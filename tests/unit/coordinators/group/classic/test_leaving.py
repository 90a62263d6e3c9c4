"""LeaveGroup of a classic group, by members and by administrators."""

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import MemberIdentity
from support.group.stories import Member, Story

pytestmark = pytest.mark.kernel

UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leaving_member_is_removed_and_the_others_rebalance() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")

    answer = group.leaves(a)

    assert [(one.member_id, one.error_code) for one in answer.members] == [(a.id, 0)]
    assert group.beats(b) is ErrorCode.REBALANCE_IN_PROGRESS
    group.joins(b)
    group.learns(b)
    assert b.joined.leader == b.id


@pytest.mark.parametrize("version", range(3))
def test_before_version_3_the_member_error_is_at_the_top_level(version: int) -> None:
    group = Story()
    (a,) = group.is_stable_with("a")
    stranger = Member("x")
    stranger.id = "x-1"

    refused = group.leaves(stranger, version=version)
    left = group.leaves(a, version=version)

    assert (refused.error_code, refused.members) == (UNKNOWN, [])
    assert (left.error_code, left.members) == (0, [])
    assert group.state == "Empty"


def test_several_leave_in_one_request_and_each_has_its_own_error() -> None:
    group = Story()
    a, _, c = group.is_stable_with("a", Member("b", "two"), "c")
    generation = group.group.generation

    answer = group.leaves(
        a,
        MemberIdentity(member_id="", group_instance_id="two"),
        MemberIdentity(member_id=c.id, group_instance_id="two"),
        MemberIdentity(member_id="x-1", group_instance_id=None),
        MemberIdentity(member_id="", group_instance_id="three"),
        MemberIdentity(member_id="", group_instance_id=None),
        a,
    )

    assert answer.error_code == 0
    assert [one.error_code for one in answer.members] == [0, 0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]
    assert answer.members[1].group_instance_id == "two"
    assert set(group.group.members) == {c.id}
    assert group.group.generation == generation


def test_a_request_without_a_leaving_member_starts_no_rebalance() -> None:
    group = Story()
    group.is_stable_with("a")

    group.leaves(MemberIdentity(member_id="x-1"))
    group.leaves()

    assert group.state == "Stable"


def test_leaving_an_unknown_group_is_refused() -> None:
    group = Story()

    answer = group.leaves(MemberIdentity(member_id="x-1"), MemberIdentity(group_instance_id="one"))

    assert answer.error_code == 0
    assert [one.error_code for one in answer.members] == [UNKNOWN, UNKNOWN]
    assert group.leaves(MemberIdentity(member_id="x-1"), version=1).error_code == UNKNOWN


def test_a_pending_join_of_a_leaving_member_is_refused() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")
    group.joins(a)

    group.leaves(a)

    assert a.join.error is UNKNOWN
    assert a.joined.member_id == ""
    group.joins(b)
    group.learns(b)


def test_a_pending_sync_of_a_leaving_member_is_refused() -> None:
    group = Story()
    a, b = group.joins("a"), group.joins("b")
    group.opens(a, b)
    waiting = group.syncs(b)

    group.leaves(b)

    assert waiting.error is UNKNOWN


def test_the_last_awaited_member_may_leave() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")
    group.joins(a)

    group.leaves(b)

    group.learns(a)


def test_a_pending_member_may_leave() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")
    b = Member("b")
    b.id = group.asks_to_join(b).answer.member_id
    group.joins(a)
    assert a.waits

    answer = group.leaves(b)

    assert answer.members[0].error_code == 0
    assert group.group.pending == set()
    group.learns(a)


def test_all_may_leave_at_once() -> None:
    group = Story()
    members = group.is_stable_with("a", "b", "c")

    group.leaves(*members)

    assert group.state == "Empty"
    assert group.group.leader is None
    assert group.replayed().state == "Empty"
    assert len(group.context.timers) == 0
