"""Membership in a group of the consumer protocol, without a broker."""

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.consumer.settings import parse_consumer_settings
from barnabas.client.group.effects import Assign, Fail, ResolveTopicIds, Revoke, Wait
from barnabas.client.group.errors import FencedInstance, GroupFailed
from barnabas.client.group.modern import ConsumerMembership
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

A0, A1, A2 = (TopicPartition("a", number) for number in range(3))
A_ID = Uuid(b"a" * 16)


def new(**settings: object) -> ConsumerMembership:
    named = {"bootstrap_servers": "h:1", "group_id": "g", "group_protocol": "consumer", **settings}
    membership = ConsumerMembership(parse_consumer_settings(None, named), "g", "rack", "me")
    membership.subscribe(frozenset("a"))
    return membership


def told(epoch: int = 1, numbers: list[int] | None = None) -> ConsumerGroupHeartbeatResponse:
    """A successful response, with or without a target."""
    rows = (
        []
        if not numbers
        else [ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=A_ID, partitions=numbers)]
    )
    assignment = None if numbers is None else ConsumerGroupHeartbeatResponseAssignment(topic_partitions=rows)
    return ConsumerGroupHeartbeatResponse(
        error_code=0, member_id="me", member_epoch=epoch, heartbeat_interval_ms=3000, assignment=assignment
    )


def refused(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message="because")


def settled(*numbers: int, **settings: object) -> ConsumerMembership:
    """A member that owns these partitions and has acknowledged them."""
    membership = new(**settings)
    membership.answered(membership.next_heartbeat(), told(1, list(numbers)))
    membership.topic_ids_resolved({A_ID: "a"})
    effect = membership.next_effect
    assert isinstance(effect, Assign)
    membership.partitions_assigned(effect.tps)
    membership.answered(membership.next_heartbeat(), told(1))
    assert membership.next_effect == Wait()
    return membership


def test_the_first_heartbeat_has_all_fields() -> None:
    membership = new(group_remote_assignor="uniform", group_instance_id="i")

    beat = membership.next_heartbeat()

    assert (beat.group_id, beat.member_id, beat.member_epoch, beat.instance_id) == ("g", "me", 0, "i")
    assert (beat.rack_id, beat.rebalance_timeout_ms, beat.server_assignor) == ("rack", 300_000, "uniform")
    assert (beat.subscribed_topic_names, beat.subscribed_topic_regex, beat.topic_partitions) == (
        ["a"],
        None,
        [],
    )


def test_a_heartbeat_without_news_is_short() -> None:
    membership = settled(0)

    beat = membership.next_heartbeat()

    assert (beat.member_epoch, beat.rebalance_timeout_ms, beat.rack_id) == (1, -1, None)
    assert (beat.subscribed_topic_names, beat.topic_partitions, beat.server_assignor) == (None, None, None)
    assert not membership.is_heartbeat_due


def test_a_target_is_carried_out_and_acknowledged() -> None:
    membership = new()
    membership.answered(membership.next_heartbeat(), told(5, [0, 1]))

    assert membership.next_effect == ResolveTopicIds(frozenset((A_ID,)))
    membership.topic_ids_resolved({A_ID: "a"})
    assert membership.next_effect == Assign(frozenset((A0, A1)), frozenset((A0, A1)))
    assert not membership.is_settled
    membership.partitions_assigned(frozenset((A0, A1)))

    assert (membership.is_heartbeat_due, membership.is_settled) == (True, True)
    beat = membership.next_heartbeat()
    assert beat.topic_partitions is not None
    assert [(one.topic_id, one.partitions) for one in beat.topic_partitions] == [(A_ID, [0, 1])]
    assert beat.member_epoch == 5


def test_partitions_are_revoked_before_new_ones_are_taken() -> None:
    membership = settled(0, 1)

    membership.answered(membership.next_heartbeat(), told(2, [1, 2]))

    assert membership.next_effect == Revoke(frozenset((A0,)))
    membership.partitions_revoked(frozenset((A0,)))
    assert membership.next_effect == Assign(frozenset((A1, A2)), frozenset((A2,)))


def test_a_smaller_assignment_calls_the_user_back() -> None:
    membership = settled(0, 1)

    membership.answered(membership.next_heartbeat(), told(2, [1]))
    membership.partitions_revoked(frozenset((A0,)))

    assert membership.next_effect == Assign(frozenset((A1,)), frozenset())


def test_an_unknown_topic_id_does_not_delay_other_topics() -> None:
    membership = settled(0)
    answer = told(2, [0, 1])
    assert answer.assignment is not None
    deleted = Uuid(b"d" * 16)
    answer.assignment.topic_partitions.append(
        ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=deleted, partitions=[0])
    )

    membership.answered(membership.next_heartbeat(), answer)

    assert membership.next_effect == Assign(frozenset((A0, A1)), frozenset((A1,)))
    membership.partitions_assigned(frozenset((A0, A1)))
    assert membership.next_effect == ResolveTopicIds(frozenset((deleted,)))
    membership.answered(membership.next_heartbeat(), told(3, [0, 1]))
    membership.partitions_assigned(frozenset((A0, A1)))
    assert membership.is_settled


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_fenced_member_lets_go_of_everything_and_joins_with_the_same_id(code: ErrorCode) -> None:
    membership = settled(0, 1)
    losses = membership.losses

    assert not membership.answered(membership.next_heartbeat(), refused(code))

    assert (membership.is_lost, membership.losses, membership.is_heartbeat_due) == (True, losses + 1, False)
    assert membership.next_effect == Revoke(frozenset((A0, A1)))
    membership.partitions_revoked(frozenset((A0, A1)))
    assert (membership.is_heartbeat_due, membership.next_effect) == (True, Wait())
    beat = membership.next_heartbeat()
    assert (beat.member_epoch, beat.member_id, beat.subscribed_topic_names) == (0, "me", ["a"])
    assert beat.topic_partitions == []


def test_a_rejoining_member_sends_all_fields() -> None:
    membership = settled(0)

    membership.left()
    membership.partitions_revoked(frozenset((A0,)))

    beat = membership.next_heartbeat()
    assert (beat.member_epoch, beat.subscribed_topic_names, beat.rebalance_timeout_ms) == (0, ["a"], 300_000)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
def test_after_a_coordinator_error_the_heartbeat_is_full_again(code: ErrorCode) -> None:
    membership = settled(0)

    assert membership.answered(membership.next_heartbeat(), refused(code))

    assert membership.is_heartbeat_due
    beat = membership.next_heartbeat()
    assert (beat.member_epoch, beat.subscribed_topic_names, beat.rebalance_timeout_ms) == (1, ["a"], 300_000)
    assert beat.topic_partitions is not None
    assert [one.partitions for one in beat.topic_partitions] == [[0]]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.FENCED_INSTANCE_ID, FencedInstance),
        (ErrorCode.UNRELEASED_INSTANCE_ID, FencedInstance),
        (ErrorCode.INVALID_REGULAR_EXPRESSION, GroupFailed),
        (ErrorCode.UNSUPPORTED_ASSIGNOR, GroupFailed),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, GroupFailed),
    ],
)
def test_a_fatal_error_has_the_message_of_the_broker(code: ErrorCode, kind: type[GroupFailed]) -> None:
    membership = settled(0)

    membership.answered(membership.next_heartbeat(), refused(code))

    assert membership.next_effect == Revoke(frozenset((A0,)))
    membership.partitions_revoked(frozenset((A0,)))
    effect = membership.next_effect
    assert isinstance(effect, Fail)
    assert (type(effect.error), effect.error.message) == (kind, "because")


def test_a_new_subscription_is_sent_immediately_and_once() -> None:
    membership = settled(0)

    membership.subscribe(frozenset("ab"))

    assert membership.is_heartbeat_due
    assert membership.next_heartbeat().subscribed_topic_names == ["a", "b"]
    assert membership.next_heartbeat().subscribed_topic_names is None


def test_a_pattern_is_sent_and_withdrawn() -> None:
    membership = settled(0)

    membership.subscribe(frozenset(), "a.*")
    beat = membership.next_heartbeat()
    assert (beat.subscribed_topic_names, beat.subscribed_topic_regex) == ([], "a.*")
    membership.subscribe(frozenset("a"))

    beat = membership.next_heartbeat()
    assert (beat.subscribed_topic_names, beat.subscribed_topic_regex) == (["a"], "")


def test_the_response_to_a_leave_heartbeat_is_ignored() -> None:
    membership = settled(0)
    leave = membership.leave("closed")
    assert leave is not None
    membership.left()

    membership.answered(leave, told(-1))

    assert membership.next_effect == Revoke(frozenset((A0,)))


@pytest.mark.parametrize(("settings", "epoch"), [({}, -1), ({"group_instance_id": "i"}, -2)])
def test_static_members_leave_temporarily(settings: dict[str, object], epoch: int) -> None:
    leave = settled(0, **settings).leave("closed")

    assert leave is not None
    assert leave.member_epoch == epoch
    assert new(**settings).leave("closed") is None
