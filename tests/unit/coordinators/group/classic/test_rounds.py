"""Rebalances of a classic group: joining, opening a generation, and its assignment."""

import pytest

from barnabas.coordinators.group.settings import GroupSettings
from barnabas.protocol.error_codes import ErrorCode
from support.group.stories import REBALANCE_MS, SESSION_MS, Member, Story, subscription

pytestmark = pytest.mark.kernel

DELAY_MS = 3_000


def test_two_members_join_sync_and_are_stable() -> None:
    group = Story()

    a, b = group.joins("a"), group.joins("b")
    assert group.state == "PreparingRebalance"
    group.opens(a, b)
    assert group.state == "CompletingRebalance"
    group.settles(a, b)

    assert group.state == "Stable"
    assert group.group.generation == 1
    assert group.beats(a) is ErrorCode.NONE
    assert group.beats(b) is ErrorCode.NONE


def test_only_the_leader_gets_the_member_list() -> None:
    group = Story()
    a = group.joins("a", protocols=[("range", b"A")])
    b = group.joins("b", protocols=[("range", b"B")])
    group.opens(a, b)

    assert [(one.member_id, one.metadata) for one in a.joined.members] == [(a.id, b"A"), (b.id, b"B")]
    assert b.joined.members == []
    assert a.joined.leader == b.joined.leader == a.id
    assert (a.joined.protocol_type, a.joined.protocol_name) == ("consumer", "range")


def test_the_first_member_waits_for_others_as_long_as_the_initial_delay() -> None:
    group = Story()
    a = group.joins("a")

    group.waits(DELAY_MS - 1)
    assert a.waits
    group.waits(1)

    assert not a.waits


def test_the_initial_delay_is_extended_while_members_keep_coming() -> None:
    group = Story()
    a = group.joins("a")
    group.waits(2_000)
    b = group.joins("b")
    group.waits(2_000)
    c = group.joins("c")

    group.waits(2 * DELAY_MS - 4_000)
    assert a.waits
    assert b.waits
    group.waits(DELAY_MS)

    group.learns(a, b, c)
    assert group.group.generation == 1


def test_the_initial_delay_ends_with_the_rebalance_timeout() -> None:
    group = Story()
    first = group.joins("0", rebalance_ms=7_000)
    for second in range(1, 20):
        group.waits(1_000)
        if not first.waits:
            break
        group.joins(str(second), rebalance_ms=7_000)

    assert second == 7


def test_without_an_initial_delay_the_first_member_joins_at_once() -> None:
    group = Story(GroupSettings(initial_rebalance_delay_ms=0))
    a = group.joins("a")

    group.waits(0)

    group.learns(a)
    assert a.joined.leader == a.id


def test_a_new_member_starts_a_rebalance_and_waits_for_the_others() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")

    b = group.joins("b")

    assert group.state == "PreparingRebalance"
    assert b.waits
    assert group.beats(a) is ErrorCode.REBALANCE_IN_PROGRESS
    group.joins(a)
    group.learns(a, b)
    assert group.group.generation == 2
    group.settles(a, b)


def test_members_that_do_not_join_within_the_rebalance_timeout_are_removed() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")
    c = group.joins("c")
    group.joins(a)

    group.waits(REBALANCE_MS - 1, b)
    assert a.waits
    group.waits(1)

    group.learns(a, c)
    assert set(group.group.members) == {a.id, c.id}
    assert group.beats(b) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_longest_rebalance_timeout_holds_for_all() -> None:
    group = Story()
    a = group.joins("a", rebalance_ms=20_000)
    b = group.joins("b", rebalance_ms=50_000)
    group.opens(a, b)
    group.settles(a, b)
    c = group.joins("c", rebalance_ms=5_000)

    group.waits(49_999, a, b)
    assert c.waits
    group.waits(1)

    assert not c.waits


def test_if_the_leader_does_not_rejoin_another_member_leads() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")
    assert group.group.leader == a.id
    c = group.joins("c")
    group.joins(b)

    group.waits(REBALANCE_MS, a)

    group.learns(b, c)
    assert b.joined.leader == b.id
    assert len(b.joined.members) == 2


def test_a_rebalance_refuses_pending_syncs() -> None:
    group = Story()
    a, b = group.joins("a"), group.joins("b")
    group.opens(a, b)
    waiting = group.syncs(b)
    assert waiting.waits

    group.joins("c")

    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert group.syncs(a, {a.id: b"x"}).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_do_not_sync_within_the_rebalance_timeout_are_removed() -> None:
    group = Story()
    a, b = group.joins("a"), group.joins("b")
    group.opens(a, b)
    assert group.syncs(a, {a.id: b"x", b.id: b"y"}).error is ErrorCode.NONE
    assert group.state == "Stable"

    group.waits(REBALANCE_MS - 6_000, a, b)
    assert set(group.group.members) == {a.id, b.id}
    group.waits(6_000, a, b)

    assert set(group.group.members) == {a.id}
    assert group.state == "PreparingRebalance"


def test_the_sync_timeout_ends_when_all_have_synced() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")

    group.waits(2 * REBALANCE_MS, a, b)

    assert group.state == "Stable"
    assert group.group.generation == 1


def test_without_an_assignment_the_members_that_have_not_synced_are_removed() -> None:
    group = Story()
    a, b = group.joins("a"), group.joins("b")
    group.opens(a, b)
    waiting = group.syncs(b)

    group.waits(REBALANCE_MS, a)

    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert set(group.group.members) == {b.id}
    group.joins(b)
    group.learns(b)
    assert b.joined.leader == b.id


def test_an_expired_member_is_removed_and_the_others_rebalance() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")

    group.waits(SESSION_MS, a)

    assert group.state == "PreparingRebalance"
    assert group.beats(b) is ErrorCode.UNKNOWN_MEMBER_ID
    group.joins(a)
    group.learns(a)
    assert a.joined.generation_id == 2


def test_a_heartbeat_moves_the_end_of_the_session() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")

    group.waits(SESSION_MS - 1)
    assert group.beats(a) is ErrorCode.NONE
    group.waits(SESSION_MS - 1)
    assert group.state == "Stable"
    group.waits(1)

    assert group.state == "Empty"


def test_a_member_that_waits_in_a_join_needs_no_heartbeats() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")
    group.joins("c")
    group.joins(a)

    group.waits(3 * SESSION_MS, b)

    assert a.waits
    assert a.id in group.group.members


def test_a_member_that_waits_in_a_sync_needs_no_heartbeats() -> None:
    group = Story()
    a, b = group.joins("a"), group.joins("b")
    group.opens(a, b)
    waiting = group.syncs(b)

    group.waits(3 * SESSION_MS, a)
    assert waiting.waits
    assert group.syncs(a, {b.id: b"late"}).error is ErrorCode.NONE

    assert waiting.answer.assignment == b"late"
    group.waits(SESSION_MS - 1)
    assert group.beats(b) is ErrorCode.NONE


def test_the_first_join_of_a_member_has_a_timeout() -> None:
    group = Story(GroupSettings(new_member_join_timeout_ms=30_000))
    (a,) = group.is_stable_with("a", rebalance_ms=100_000)
    b = group.joins("b")

    group.waits(29_999, a)
    assert b.waits
    group.waits(1, a)

    assert b.join.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert b.joined.member_id == ""
    group.joins(a)
    group.learns(a)


def test_a_group_without_members_is_empty_in_a_new_generation() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")

    group.leaves(a)

    assert group.state == "Empty"
    assert group.group.generation == 2
    assert group.group.protocol is None
    assert group.group.protocol_type == "consumer"


def test_a_group_left_during_the_initial_delay_is_empty_after_it() -> None:
    group = Story()
    a = group.joins("a")
    group.leaves(a)
    assert a.join.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.state == "PreparingRebalance"

    group.waits(DELAY_MS)

    assert group.state == "Empty"
    assert group.group.generation == 1


def test_an_empty_group_takes_another_protocol_type() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")
    group.leaves(a)

    b = group.joins("b", protocol_type="connect", protocols=[("v1", b"")])
    group.opens(b)

    assert (b.joined.protocol_type, b.joined.protocol_name) == ("connect", "v1")


def test_a_stale_generation_is_refused() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")

    assert group.beats(a, generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert group.beats(a, generation=2) is ErrorCode.ILLEGAL_GENERATION
    assert group.syncs(a, generation_id=0).error is ErrorCode.ILLEGAL_GENERATION


def test_static_members_alone_that_do_not_join_keep_the_group_waiting() -> None:
    group = Story()
    s = Member("s", "one")
    group.is_stable_with(s)
    c = group.joins("c")
    group.leaves(c)

    group.waits(REBALANCE_MS, s)

    assert group.state == "PreparingRebalance"
    assert s.id in group.group.members
    group.joins(s)
    group.learns(s)


def test_a_thousand_members_become_stable_in_one_round() -> None:
    group = Story()
    members = [group.joins(str(number), protocols=[("range", subscription("t"))]) for number in range(1_000)]

    group.opens(*members)
    group.settles(*members)

    assert group.group.generation == 1
    assert len(members[0].joined.members) == 1_000
    shared = {id(member.protocols) for member in group.group.members.values()}
    assert len(shared) == 1
