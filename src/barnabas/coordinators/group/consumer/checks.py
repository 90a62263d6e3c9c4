"""Validation of heartbeats, alone and against their group. The order is Kafka's."""

from collections.abc import Sequence

from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import AWAY, JOINING, LEAVING, ConsumerMember
from barnabas.coordinators.group.consumer.reconcile import Owned, is_part_of
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Checks that need only the request."""
    # In version 0 the coordinator generates the id of a joining member.
    if version >= 1 or request.member_epoch > JOINING or request.member_epoch == LEAVING:
        _check_not_blank(request.member_id, "MemberId")
    _check_not_blank(request.group_id, "GroupId")
    _check_not_blank(request.instance_id, "InstanceId")
    _check_not_blank(request.rack_id, "RackId")
    if request.member_epoch == JOINING:
        _check_join(request)
    elif request.member_epoch == AWAY and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif request.member_epoch < AWAY:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise GroupError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def check_room(group: ConsumerGroup, member_id: str, size_max: int) -> None:
    """Refuse a new member if the group is full."""
    if len(group.members) >= size_max and member_id not in group.members:
        raise GroupError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"Group {group.id} has reached its maximum of {size_max} members.",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned) -> None:
    """Accept the previous epoch if the response with the new one was lost: then the member owns nothing
    new."""
    if epoch in (JOINING, member.epoch):
        return
    if epoch < member.epoch and epoch == member.previous_epoch and is_part_of(owned, member.assigned):
        return
    compared = "greater" if epoch > member.epoch else "smaller"
    raise GroupError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {compared} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def known_instance(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The static member with this instance id, if it has this member id."""
    member = group.static_member(instance_id)
    if member is None:
        raise GroupError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown in group {group.id}."
        )
    if member.id != member_id:
        raise GroupError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Member {member_id} with instance id {instance_id} was fenced by member {member.id}.",
        )
    return member


def check_released(member: ConsumerMember, member_id: str) -> None:
    """An instance id can be taken over only from a member that has left temporarily."""
    if member.epoch != AWAY:
        raise GroupError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {member.instance_id} cannot join the group "
            f"because the instance id is owned by member {member.id}.",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        )


def _check_not_blank(text: str | None, field: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{field} can't be empty.")


def _invalid(message: str) -> GroupError:
    return GroupError(ErrorCode.INVALID_REQUEST, message)
