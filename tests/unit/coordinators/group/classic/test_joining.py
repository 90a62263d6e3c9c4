"""JoinGroup of new and rejoining members of a classic group."""

import pytest

from barnabas.coordinators.group.settings import GroupSettings
from barnabas.protocol.error_codes import ErrorCode
from support.group.stories import SESSION_MS, Member, Story

pytestmark = pytest.mark.kernel


def test_a_new_member_must_rejoin_with_its_assigned_id() -> None:
    group = Story()
    a = Member("client")

    first = group.asks_to_join(a, version=4)

    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    assert first.answer.member_id.startswith("client-")
    assert group.group.pending == {first.answer.member_id}
    assert group.group.members == {}
    a.id = first.answer.member_id
    assert group.asks_to_join(a, version=4).waits
    assert group.group.pending == set()
    assert list(group.group.members) == [a.id]


@pytest.mark.parametrize("version", range(4))
def test_before_version_4_a_new_member_joins_directly(version: int) -> None:
    group = Story()
    a = Member("client")

    a.join = group.asks_to_join(a, version=version)

    assert a.waits
    group.opens(a)
    assert a.id.startswith("client-")


def test_ids_of_members_differ_also_for_one_client_id() -> None:
    group = Story()

    assert group.joins("same").id != group.joins("same").id


def test_an_unused_pending_id_expires() -> None:
    group = Story()
    a = Member("a")
    a.id = group.asks_to_join(a).answer.member_id

    group.waits(SESSION_MS - 1)
    assert group.group.pending == {a.id}
    group.waits(1)

    assert group.group.pending == set()
    assert group.asks_to_join(a).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_generation_waits_for_pending_members() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")
    b = Member("b")
    b.id = group.asks_to_join(b).answer.member_id
    group.joins(a)
    assert a.waits

    group.joins(b)

    group.learns(a, b)


def test_an_expired_pending_member_no_longer_blocks_the_generation() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")
    group.asks_to_join(Member("b"))
    group.joins(a)

    group.waits(SESSION_MS)

    group.learns(a)


def test_an_expired_pending_member_ends_even_the_initial_delay() -> None:
    group = Story(GroupSettings(initial_rebalance_delay_ms=50_000))
    group.asks_to_join(Member("b"))
    a = group.joins("a")

    group.waits(SESSION_MS)

    group.learns(a)


def test_an_unknown_member_id_is_refused_with_and_without_a_group() -> None:
    group = Story()
    stranger = Member("x")
    stranger.id = "x-1"

    without = group.asks_to_join(stranger)
    assert group.context.groups == {}
    group.is_stable_with("a")
    within = group.asks_to_join(stranger)

    assert without.error is within.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert without.answer.member_id == within.answer.member_id == "x-1"
    assert group.state == "Stable"


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, 0, -1])
def test_a_session_timeout_out_of_bounds_is_refused_before_a_group_is_made(session_ms: int) -> None:
    group = Story()

    assert group.asks_to_join(Member("a"), session_ms=session_ms).error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert group.context.groups == {}
    assert group.stage.records == []


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_a_session_timeout_at_the_bounds_is_taken(session_ms: int) -> None:
    group = Story()

    assert group.joins("a", session_ms=session_ms).waits


def test_an_empty_group_id_is_refused_before_anything_else() -> None:
    group = Story(group_id="")
    a = Member("a")

    assert group.asks_to_join(a, session_ms=0).error is ErrorCode.INVALID_GROUP_ID
    assert group.beats(a) is ErrorCode.INVALID_GROUP_ID
    assert group.leaves(a).error_code == ErrorCode.INVALID_GROUP_ID
    assert group.context.groups == {}


def test_a_client_id_too_long_for_a_member_id_is_refused() -> None:
    group = Story()

    refused = group.asks_to_join(Member("c" * 32_767))

    assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert group.group.pending == set()


# Protocols


def test_the_most_preferred_common_protocol_is_chosen() -> None:
    group = Story()
    a = group.joins("a", protocols=[("only-a", b""), ("range", b"ra"), ("sticky", b"sa")])
    b = group.joins("b", protocols=[("sticky", b"sb"), ("range", b"rb")])
    c = group.joins("c", protocols=[("sticky", b"sc"), ("range", b"rc"), ("only-c", b"")])
    group.opens(a, b, c)

    assert group.group.protocol == "sticky"
    assert [one.metadata for one in a.joined.members] == [b"sa", b"sb", b"sc"]


@pytest.mark.parametrize("is_old", [False, True])
def test_a_member_without_a_common_protocol_is_rejected(is_old: bool) -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b", protocols=[("range", b""), ("sticky", b"")])
    who = b if is_old else Member("new")

    refused = group.asks_to_join(who, protocols=[("other", b"")])

    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refused.answer.member_id == who.id
    assert group.state == "Stable"
    assert group.beats(a) is ErrorCode.NONE


def test_a_protocol_that_only_some_support_is_not_enough() -> None:
    group = Story()
    group.joins("a", protocols=[("range", b""), ("sticky", b"")])
    group.joins("b", protocols=[("range", b"")])

    refused = group.asks_to_join(Member("c"), protocols=[("sticky", b"")])

    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_another_protocol_type_is_refused() -> None:
    group = Story()
    group.joins("a")

    refused = group.asks_to_join(Member("b"), protocol_type="connect")

    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("how", [{"protocol_type": ""}, {"protocols": []}])
def test_a_member_without_protocols_or_type_is_refused_by_an_empty_group_too(how: dict[str, str]) -> None:
    group = Story()

    refused = group.asks_to_join(Member("a"), **how)  # type: ignore[arg-type]

    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert group.state == "Empty"


def test_a_duplicate_protocol_counts_once() -> None:
    group = Story()
    a = group.joins("a", protocols=[("range", b"1"), ("range", b"2")])
    b = group.joins("b", protocols=[("range", b"3")])
    group.opens(a, b)

    assert a.joined.members[0].metadata == b"1"
    group.leaves(a)
    group.joins(b)
    group.learns(b)


def test_a_member_with_other_protocols_changes_the_common_protocols() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b", protocols=[("range", b""), ("sticky", b"")])
    group.joins(a, protocols=[("sticky", b"")])

    refused = group.asks_to_join(b, protocols=[("range", b"")])
    group.joins(b, protocols=[("sticky", b"")])

    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    group.learns(a, b)
    assert group.group.protocol == "sticky"


# Joining again


def test_an_unchanged_follower_rejoins_in_the_current_generation() -> None:
    group = Story()
    _, b = group.is_stable_with("a", "b")

    group.joins(b)

    assert b.joined.generation_id == 1
    assert b.joined.members == []
    assert b.joined.skip_assignment is False
    assert group.state == "Stable"


def test_a_leader_that_rejoins_a_stable_group_starts_a_rebalance() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")

    group.joins(a)

    assert a.waits
    assert group.state == "PreparingRebalance"
    assert group.beats(b) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_follower_with_changed_metadata_starts_a_rebalance() -> None:
    group = Story()
    _, b = group.is_stable_with("a", "b")

    group.joins(b, protocols=[("range", b"changed")])

    assert b.waits
    assert group.state == "PreparingRebalance"


def test_an_unchanged_rejoin_in_completing_gets_the_same_response() -> None:
    group = Story()
    a, b = group.joins("a"), group.joins("b")
    group.opens(a, b)
    first = a.joined

    group.joins(a)
    group.joins(b)

    assert a.joined == first
    assert b.joined.members == []
    assert group.state == "CompletingRebalance"


def test_changed_metadata_in_completing_starts_a_rebalance() -> None:
    group = Story()
    a, b = group.joins("a"), group.joins("b")
    group.opens(a, b)

    group.joins(b, protocols=[("range", b"changed")])

    assert b.waits
    assert group.state == "PreparingRebalance"
    group.joins(a)
    group.learns(a, b)
    assert a.joined.generation_id == 2


def test_a_retried_join_replaces_the_first() -> None:
    group = Story()
    a, b = group.is_stable_with("a", "b")
    group.joins("c")
    group.joins(a)
    first = a.join

    group.joins(a)

    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert a.waits
    assert group.group.joining_count == 2
    group.joins(b)
    group.learns(a, b)


def test_new_timeouts_are_taken_over_with_a_rejoin() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")

    group.joins(a, session_ms=20_000, rebalance_ms=5_000)

    member = group.group.members[a.id]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 5_000)


def test_in_version_0_the_session_timeout_is_the_rebalance_timeout() -> None:
    group = Story()
    a = group.joins("a", version=0, session_ms=8_000, rebalance_ms=-1)
    group.opens(a)

    assert group.group.members[a.id].rebalance_timeout_ms == 8_000


# Size


def test_a_full_group_refuses_new_members() -> None:
    group = Story(GroupSettings(classic_size_max=2))
    a, b = group.is_stable_with("a", "b")

    refused = group.asks_to_join(Member("c"))

    assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.answer.member_id == ""
    assert group.state == "Stable"
    group.joins(a)
    group.joins(b)
    group.learns(a, b)


def test_during_a_rebalance_the_first_members_get_the_places() -> None:
    group = Story(GroupSettings(classic_size_max=2))
    a = group.joins("a")
    b = group.joins("b")
    late = group.asks_to_join(Member("c"))
    group.opens(a, b)

    assert late.error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_loaded_group_that_is_too_large_rebalances_and_keeps_the_first_members() -> None:
    before = Story()
    a, b, c = before.is_stable_with("a", "b", "c")
    before.settings = GroupSettings(classic_size_max=2)
    group = before.replayed()
    assert group.state == "PreparingRebalance"
    assert group.beats(a) is ErrorCode.REBALANCE_IN_PROGRESS

    group.joins(c)
    group.joins(b)
    group.joins(a)

    assert a.join.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    group.learns(b, c)
    assert set(group.group.members) == {b.id, c.id}
