"""Membership in a classic group, without a broker: the effects after each event."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.settings import parse_consumer_settings
from barnabas.client.group.classic import ClassicMembership, Phase
from barnabas.client.group.effects import Assign, ComputeAssignment, Fail, Revoke, SendJoin, SendSync, Wait
from barnabas.client.group.errors import FencedInstance, GroupFailed
from barnabas.client.group.subscription import (
    Subscription,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)

A0, A1, A2 = (TopicPartition("a", number) for number in range(3))
NOTHING: frozenset[TopicPartition] = frozenset()


def new(strategy: str = "range", **settings: object) -> ClassicMembership:
    named = {
        "bootstrap_servers": "h:1",
        "group_id": "g",
        "partition_assignment_strategy": strategy,
        **settings,
    }
    membership = ClassicMembership(parse_consumer_settings(None, named), "g", None)
    membership.subscribe(frozenset("a"))
    return membership


def joined(generation: int = 1, *, leader: str = "other", member: str = "me") -> JoinGroupResponse:
    members = [
        JoinGroupResponseMember(
            member_id=member, metadata=encode_subscription(Subscription(topics=frozenset("a")))
        )
    ]
    return JoinGroupResponse(
        error_code=0,
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        leader=leader,
        member_id=member,
        members=members if leader == member else [],
    )


def refused(code: ErrorCode, member: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, protocol_name="", leader="", member_id=member, members=[])


def synced(*tps: TopicPartition) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=0, assignment=encode_assignment(tps))


def settle(membership: ClassicMembership, *tps: TopicPartition, generation: int = 1) -> None:
    """Run a whole rebalance, as the driver does."""
    effect = membership.next_effect
    assert isinstance(effect, Revoke)
    membership.partitions_revoked(effect.tps)
    assert isinstance(membership.next_effect, SendJoin)
    membership.join_answered(joined(generation))
    membership.sync_answered(synced(*tps))
    effect = membership.next_effect
    if isinstance(effect, Revoke):
        membership.partitions_revoked(effect.tps)
    effect = membership.next_effect
    assert isinstance(effect, Assign)
    membership.partitions_assigned(effect.tps)


def subscription_sent(membership: ClassicMembership) -> Subscription:
    effect = membership.next_effect
    assert isinstance(effect, SendJoin)
    return decode_subscription(effect.request.protocols[0].metadata)


def test_a_first_join_goes_through_its_steps() -> None:
    membership = new()

    assert membership.next_effect == Revoke(NOTHING)
    membership.partitions_revoked(NOTHING)
    effect = membership.next_effect
    assert isinstance(effect, SendJoin)
    assert (effect.request.member_id, effect.request.protocol_type) == ("", "consumer")
    assert (effect.request.session_timeout_ms, effect.request.rebalance_timeout_ms) == (45_000, 300_000)
    assert not membership.join_answered(joined(3))
    effect = membership.next_effect
    assert isinstance(effect, SendSync)
    assert (effect.request.generation_id, effect.request.assignments) == (3, [])
    assert not membership.sync_answered(synced(A0))
    assert membership.next_effect == Assign(frozenset((A0,)), frozenset((A0,)))
    membership.partitions_assigned(frozenset((A0,)))
    assert membership.next_effect == Wait()
    assert (membership.owned, membership.identity, membership.is_settled) == ({A0}, (3, "me"), True)


def test_a_new_member_rejoins_with_its_assigned_id() -> None:
    membership = new()
    membership.partitions_revoked(NOTHING)

    assert not membership.join_answered(refused(ErrorCode.MEMBER_ID_REQUIRED, "me"))

    effect = membership.next_effect
    assert isinstance(effect, SendJoin)
    assert effect.request.member_id == "me"


def test_the_leader_shares_out_before_it_syncs() -> None:
    membership = new()
    membership.partitions_revoked(NOTHING)

    membership.join_answered(joined(leader="me"))

    assert membership.next_effect == ComputeAssignment("range", {"me": Subscription(topics=frozenset("a"))})
    membership.assignment_computed({"me": [A0, A1]})
    effect = membership.next_effect
    assert isinstance(effect, SendSync)
    (sent,) = effect.request.assignments
    assert (sent.member_id, sent.assignment) == ("me", encode_assignment([A0, A1]))


def test_a_leader_skips_the_assignment_on_request() -> None:
    membership = new(group_instance_id="i")
    membership.partitions_revoked(NOTHING)
    answer = joined(leader="me")
    answer.skip_assignment = True

    membership.join_answered(answer)

    assert isinstance(membership.next_effect, SendSync)


def test_an_eager_member_gives_everything_back_before_it_joins() -> None:
    membership = new("range")
    settle(membership, A0, A1)

    membership.heartbeat_answered(1, ErrorCode.REBALANCE_IN_PROGRESS)

    assert membership.next_effect == Revoke(frozenset((A0, A1)))
    membership.partitions_revoked(frozenset((A0, A1)))
    assert subscription_sent(membership).owned == frozenset()


def test_a_cooperative_member_keeps_and_reports_its_partitions() -> None:
    membership = new("cooperative-sticky")
    settle(membership, A0, A1)

    membership.heartbeat_answered(1, ErrorCode.REBALANCE_IN_PROGRESS)

    assert membership.next_effect == Revoke(NOTHING)
    membership.partitions_revoked(NOTHING)
    sent = subscription_sent(membership)
    assert (sent.owned, sent.generation, sent.user_data) == ({A0, A1}, 1, b"\x00\x00\x00\x01")


def test_a_cooperative_member_revokes_partitions_and_rejoins() -> None:
    membership = new("cooperative-sticky")
    settle(membership, A0, A1)
    membership.rejoin("a test")
    membership.partitions_revoked(NOTHING)
    assert isinstance(membership.next_effect, SendJoin)
    membership.join_answered(joined(2))

    membership.sync_answered(synced(A1, A2))

    assert membership.next_effect == Revoke(frozenset((A0,)))
    membership.partitions_revoked(frozenset((A0,)))
    assert membership.next_effect == Assign(frozenset((A1, A2)), frozenset((A2,)))
    membership.partitions_assigned(frozenset((A1, A2)))
    assert not membership.is_settled
    assert membership.next_effect == Revoke(NOTHING)


def test_a_cooperative_member_revokes_unsubscribed_topics() -> None:
    membership = new("cooperative-sticky")
    settle(membership, A0)

    membership.subscribe(frozenset("b"))

    assert membership.next_effect == Revoke(frozenset((A0,)))


@pytest.mark.parametrize(
    ("strategies", "cooperative"),
    [
        ("cooperative-sticky", True),
        ("range,cooperative-sticky", False),
        ("cooperative-sticky,range", False),
        ("sticky", False),
    ],
)
def test_members_are_cooperative_if_all_their_assignors_are(strategies: str, cooperative: bool) -> None:
    assert new(strategies).cooperative is cooperative


def test_an_eager_sticky_member_reports_its_previous_partitions() -> None:
    membership = new("sticky")
    settle(membership, A0)
    membership.rejoin("a test")
    membership.partitions_revoked(frozenset((A0,)))

    sent = subscription_sent(membership)

    assert (sent.owned, sent.user_data) == (
        frozenset(),
        b"\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01",
    )


@pytest.mark.parametrize(
    ("code", "member"), [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "me")]
)
def test_a_removed_member_loses_its_partitions_and_joins_again(code: ErrorCode, member: str) -> None:
    membership = new("cooperative-sticky")
    settle(membership, A0, A1)
    losses = membership.losses

    membership.heartbeat_answered(1, code)

    assert (membership.is_lost, membership.losses, membership.heartbeat()) == (True, losses + 1, None)
    assert membership.next_effect == Revoke(frozenset((A0, A1)))
    membership.partitions_revoked(frozenset((A0, A1)))
    effect = membership.next_effect
    assert isinstance(effect, SendJoin)
    assert effect.request.member_id == member


def test_a_heartbeat_response_of_an_older_generation_is_ignored() -> None:
    membership = new()
    settle(membership, A0, generation=2)

    membership.heartbeat_answered(1, ErrorCode.UNKNOWN_MEMBER_ID)

    assert membership.next_effect == Wait()


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_is_not_ready_is_asked_again_after_a_while(code: ErrorCode) -> None:
    membership = new()
    membership.partitions_revoked(NOTHING)

    assert membership.join_answered(refused(code))

    assert isinstance(membership.next_effect, SendJoin)


@pytest.mark.parametrize("lost", [True, False])
def test_after_a_sync_that_failed_the_member_joins_again_and_keeps_its_id(lost: bool) -> None:
    membership = new()
    membership.partitions_revoked(NOTHING)
    membership.join_answered(joined(4))

    if lost:
        membership.sync_lost()
    else:
        membership.sync_answered(
            SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, assignment=b"")
        )

    assert membership.next_effect == Revoke(NOTHING)
    membership.partitions_revoked(NOTHING)
    assert (membership.member_id, isinstance(membership.next_effect, SendJoin)) == ("me", True)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.FENCED_INSTANCE_ID, FencedInstance),
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, GroupFailed),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, GroupFailed),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupFailed),
    ],
)
def test_a_fatal_error_lasts_until_the_next_subscribe(code: ErrorCode, kind: type[GroupFailed]) -> None:
    membership = new()
    membership.partitions_revoked(NOTHING)

    membership.join_answered(refused(code))

    effect = membership.next_effect
    assert isinstance(effect, Fail)
    assert type(effect.error) is kind
    assert (effect.error.code, effect.error.group) == (code, "g")
    membership.subscribe(frozenset("a"))
    assert membership.next_effect == Revoke(NOTHING)


def test_a_fenced_member_first_loses_its_partitions() -> None:
    membership = new(group_instance_id="i")
    settle(membership, A0)

    membership.heartbeat_answered(1, ErrorCode.FENCED_INSTANCE_ID)

    assert (membership.next_effect, membership.is_lost) == (Revoke(frozenset((A0,))), True)
    membership.partitions_revoked(frozenset((A0,)))
    assert isinstance(membership.next_effect, Fail)


def test_a_subscription_changed_during_a_join_is_sent_with_the_next_join() -> None:
    membership = new()
    membership.partitions_revoked(NOTHING)
    assert isinstance(membership.next_effect, SendJoin)

    membership.subscribe(frozenset("ab"))
    membership.join_answered(joined())
    membership.sync_answered(synced())
    membership.partitions_assigned(NOTHING)

    assert not membership.is_settled
    assert membership.next_effect == Revoke(NOTHING)


def test_no_heartbeats_are_sent_while_a_join_waits() -> None:
    membership = new()
    assert membership.heartbeat() is None
    settle(membership, A0)
    beat = membership.heartbeat()
    assert beat is not None
    assert (beat.generation_id, beat.member_id) == (1, "me")

    membership.rejoin("a test")
    assert isinstance(membership.next_effect, Revoke)
    assert membership.heartbeat() is not None
    membership.partitions_revoked(frozenset((A0,)))

    assert membership.heartbeat() is None


def test_a_sync_response_after_the_end_of_the_session_is_ignored() -> None:
    membership = new()
    membership.partitions_revoked(NOTHING)
    membership.join_answered(joined(4))
    membership.heartbeat_answered(4, ErrorCode.UNKNOWN_MEMBER_ID)

    membership.sync_answered(synced(A0))

    assert (membership.phase, membership.is_lost) == (Phase.PREPARING, True)


def test_members_leave_when_they_close_unless_they_are_static() -> None:
    membership, static = new(), new(group_instance_id="i")
    settle(membership, A0)
    settle(static, A0)

    leave = membership.leave("closed")

    assert leave is not None
    assert [(one.member_id, one.reason) for one in leave.members] == [("me", "closed")]
    assert static.leave("closed") is None
    assert new().leave("closed") is None


def test_an_unreadable_subscription_of_another_member_is_fatal() -> None:
    membership = new()
    membership.partitions_revoked(NOTHING)
    answer = joined(leader="me")
    answer.members[0].metadata = b"?"

    membership.join_answered(answer)

    assert isinstance(membership.next_effect, Fail)


def test_a_lost_member_commits_under_its_last_generation_and_member_id() -> None:
    membership = new()
    assert membership.identity == (-1, "")

    settle(membership, A0, generation=3)
    membership.left()

    assert membership.is_lost
    assert membership.identity == (3, "me")
