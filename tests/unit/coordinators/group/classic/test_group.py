"""Checks of requests to a classic group, and its description."""

import pytest

from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.group import CLASSIC, Group, GroupError
from barnabas.protocol.error_codes import ErrorCode
from support.group.stories import RANGE, SESSION_MS, START_MS, Member, Story, subscription

pytestmark = pytest.mark.kernel


def commit(group: Story, member: Member | None = None, *, is_txn: bool = False, **odd: object) -> ErrorCode:
    """What a commit of this member is answered with, if nothing else is wrong with it."""
    said = {
        "member_id": member.id if member else "",
        "instance_id": member.instance_id if member else None,
        "generation_or_epoch": member.generation if member else -1,
        **odd,
    }
    try:
        group.group.check_commit(**said, is_txn=is_txn, version=9)  # type: ignore[arg-type]
    except GroupError as error:
        return error.code
    return ErrorCode.NONE


def refusal(check: object) -> ErrorCode:
    assert callable(check)
    try:
        check()
    except GroupError as error:
        return error.code
    return ErrorCode.NONE


def in_state(state: str, **how: object) -> tuple[Story, Member]:
    """A group in that state and a member of it."""
    group = Story()
    a = group.joins("a", **how)
    if state != "PreparingRebalance":
        group.opens(a)
    if state in ("Stable", "Empty", "Dead"):
        group.syncs(a, {a.id: b"x"}, protocol_type=group.group.protocol_type)
    if state == "Empty":
        group.leaves(a)
    if state == "Dead":
        group.stage.carry_out(group.classic.abandon(ErrorCode.NOT_COORDINATOR))
    assert group.state == state
    return group, a


STATES = ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"]


def test_it_is_a_group_as_the_ground_knows_them() -> None:
    story = Story()
    group: Group = story.classic.new("g")

    assert isinstance(group, ClassicGroup)
    assert (group.kind, group.protocol_type, group.state, group.is_empty) == (CLASSIC, "", "Empty", True)
    assert group.durable() is None
    assert story.context.groups["g"] is group


# Commits


def test_a_commit_without_a_member_is_taken_by_an_empty_group_alone() -> None:
    group = Story()
    group.classic.new("g")

    assert commit(group) is ErrorCode.NONE
    assert commit(group, member_id="whoever") is ErrorCode.NONE
    assert commit(group, generation_or_epoch=0) is ErrorCode.UNKNOWN_MEMBER_ID
    group.is_stable_with("a")
    assert commit(group) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(group, is_txn=True) is ErrorCode.NONE


def test_a_commit_of_a_member_must_be_of_this_generation() -> None:
    group = Story()
    a, b = group.is_stable_with("a", Member("b", "two"))

    assert commit(group, a) is commit(group, b) is ErrorCode.NONE
    assert commit(group, a, generation_or_epoch=0) is ErrorCode.ILLEGAL_GENERATION
    assert commit(group, a, generation_or_epoch=-1) is ErrorCode.ILLEGAL_GENERATION
    assert commit(group, a, member_id="x-1") is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(group, a, instance_id="two") is ErrorCode.FENCED_INSTANCE_ID
    assert commit(group, a, instance_id="three") is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_may_commit_while_a_rebalance_is_prepared() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")
    group.joins("b")

    assert group.beats(a) is ErrorCode.REBALANCE_IN_PROGRESS
    assert commit(group, a) is ErrorCode.NONE


def test_while_the_assignment_is_awaited_only_a_transaction_commits() -> None:
    group, a = in_state("CompletingRebalance")
    a.generation = 1

    assert commit(group, a) is ErrorCode.REBALANCE_IN_PROGRESS
    assert commit(group, a, is_txn=True) is ErrorCode.NONE


def test_a_dead_group_takes_no_commits() -> None:
    group, a = in_state("Dead")

    assert commit(group, a) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert commit(group) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_commit_counts_as_a_heartbeat() -> None:
    group = Story()
    (a,) = group.is_stable_with("a")
    group.waits(SESSION_MS - 1)

    group.group.extend_session(a.id, group.stage.now)

    group.waits(SESSION_MS - 1)
    assert group.state == "Stable"
    group.waits(1)
    assert group.state == "Empty"


def test_a_commit_without_a_member_extends_no_session() -> None:
    group = Story()
    group.is_stable_with("a")
    timers = len(group.context.timers)

    group.group.extend_session("", group.stage.now)

    assert len(group.context.timers) == timers


# Administration


@pytest.mark.parametrize("state", STATES)
def test_only_an_empty_group_may_be_deleted(state: str) -> None:
    group, _ = in_state(state)
    expected = {"Empty": ErrorCode.NONE, "Dead": ErrorCode.GROUP_ID_NOT_FOUND}

    assert refusal(group.group.check_delete) is expected.get(state, ErrorCode.NON_EMPTY_GROUP)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
def test_offsets_of_consumers_may_be_deleted_in_any_state(state: str, protocol_type: str) -> None:
    group, _ = in_state(state, protocol_type=protocol_type)
    expected = {"Empty": ErrorCode.NONE, "Dead": ErrorCode.GROUP_ID_NOT_FOUND}
    otherwise = ErrorCode.NONE if protocol_type == "consumer" else ErrorCode.NON_EMPTY_GROUP

    assert refusal(group.group.check_offset_delete) is expected.get(state, otherwise)


@pytest.mark.parametrize("state", STATES)
def test_any_client_may_fetch_offsets_of_a_live_group(state: str) -> None:
    group, _ = in_state(state)
    expected = ErrorCode.GROUP_ID_NOT_FOUND if state == "Dead" else ErrorCode.NONE

    assert refusal(lambda: group.group.check_fetch("whoever", 99)) is expected


@pytest.mark.parametrize("state", STATES[:-1])
def test_protocol_and_metadata_are_described_while_the_group_is_stable(state: str) -> None:
    group, a = in_state(state)

    described = group.classic.describe(group.group)

    assert (described.group_id, described.group_state) == ("g", state)
    assert described.protocol_type == "consumer"
    assert described.protocol_data == ("range" if state == "Stable" else "")
    assert len(described.members) == (0 if state == "Empty" else 1)
    for member in described.members:
        assert (member.member_id, member.client_id, member.client_host) == (a.id, "a", "/127.0.0.1")
        assert member.member_metadata == (RANGE[0][1] if state == "Stable" else b"")
        assert member.member_assignment == (b"x" if state == "Stable" else b"")


# Subscriptions and expiry


def test_a_group_is_subscribed_to_the_topics_of_its_members() -> None:
    group = Story()
    group.joins("a", protocols=[("range", subscription("orders", "bills"))])
    group.joins("b", protocols=[("range", subscription("mails", version=3))])
    group.waits(10_000)

    assert group.group.is_subscribed_to("orders")
    assert group.group.is_subscribed_to("mails")
    assert not group.group.is_subscribed_to("other")


def test_before_the_first_generation_it_may_read_anything() -> None:
    group, _ = in_state("PreparingRebalance")

    assert group.group.is_subscribed_to("whatever")


def test_subscriptions_count_until_the_next_generation() -> None:
    group = Story()
    a, b = group.joins("a"), group.joins("b", protocols=[("range", subscription("mails"))])
    group.opens(a, b)
    group.settles(a, b)
    group.leaves(b)

    assert group.group.is_subscribed_to("mails")
    group.joins(a)
    assert not group.group.is_subscribed_to("mails")


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\0\0\0\0\1", b"\0\0\xff\xff\xff\xff"])
def test_if_some_metadata_cannot_be_read_it_may_read_anything(metadata: bytes) -> None:
    group = Story()
    group.joins("a")
    group.joins("b", protocols=[("range", metadata)])
    group.waits(10_000)

    assert group.state == "CompletingRebalance"
    assert group.group.is_subscribed_to("whatever")


def test_an_empty_group_and_one_of_another_type_read_nothing() -> None:
    empty, _ = in_state("Empty")
    connect, _ = in_state("Stable", protocol_type="connect")

    assert not empty.group.is_subscribed_to("orders")
    assert not connect.group.is_subscribed_to("orders")


def test_a_loaded_group_knows_the_subscriptions_of_its_members() -> None:
    group, _ = in_state("Stable")
    after = group.replayed()

    assert after.group.is_subscribed_to("orders")
    assert not after.group.is_subscribed_to("other")


def test_offsets_of_a_group_that_never_had_members_age_from_their_commit_on() -> None:
    assert Story().classic.new("g").offsets_expire_from(5) == 5


def test_offsets_of_an_empty_group_age_from_when_it_became_empty() -> None:
    group, _ = in_state("Empty")

    assert group.group.offsets_expire_from(5) == START_MS + 6_000
    assert group.replayed().group.offsets_expire_from(5) == START_MS + 6_000


def test_offsets_age_in_a_stable_group_with_known_topics() -> None:
    stable, _ = in_state("Stable")
    preparing, _ = in_state("PreparingRebalance")
    unknown, _ = in_state("Stable", protocols=[("range", b"?")])
    connect, _ = in_state("Stable", protocol_type="connect")

    assert stable.group.offsets_expire_from(5) == 5
    assert preparing.group.offsets_expire_from(5) is None
    assert unknown.group.offsets_expire_from(5) is None
    assert connect.group.offsets_expire_from(5) is None
