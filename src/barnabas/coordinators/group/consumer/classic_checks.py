"""Validation of classic requests to a consumer group. The order is Kafka's."""

from typing import Final

from barnabas.coordinators.group.consumer.checks import known_instance
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import ConsumerMember
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import JoinGroupRequest, MemberIdentity, SyncGroupRequest

PROTOCOL_TYPE: Final = "consumer"


def check_protocols(group: ConsumerGroup, request: JoinGroupRequest) -> None:
    """The member must share a protocol with all classic members."""
    if request.protocol_type == PROTOCOL_TYPE and any(
        group.classic_protocols.get(one.name, 0) == group.classic_members for one in request.protocols
    ):
        return
    raise GroupError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Group {group.id} supports none of the member's protocols."
    )


def classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = known_instance(group, instance_id, member_id)
    if member.classic is None:
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.id} uses the consumer protocol.")
    return member


def leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    # Administrators do not know the member id.
    member_id = identity.member_id or group.static.get(identity.group_instance_id, "")
    return known_instance(group, identity.group_instance_id, member_id)


def check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.epoch:
        raise GroupError(
            ErrorCode.ILLEGAL_GENERATION,
            f"Generation is {generation}, expected the member epoch {member.epoch}.",
        )


def check_protocol(member: ConsumerMember, request: SyncGroupRequest) -> None:
    assert member.classic is not None
    name, _ = member.classic.protocols[0]
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        raise GroupError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {member.id} joined with type {PROTOCOL_TYPE}, protocol {name}.",
        )
