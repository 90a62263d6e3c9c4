"""Responses to members."""

from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.classic.member import ClassicMember
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)


def joined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """The response to a member of the open generation. Only the leader, which assigns, gets the member
    list."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type or None,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member_id,
        members=_all_members(group) if group.leader == member_id else [],
    )


def join_refused(member_id: str, code: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, protocol_name=None, member_id=member_id)


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type or None, protocol_name=group.protocol, assignment=assignment
    )


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)


def _all_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    protocol = group.protocol or ""
    return [_member(member, protocol) for member in group.members.values()]


def _member(member: ClassicMember, protocol: str) -> JoinGroupResponseMember:
    return JoinGroupResponseMember(
        member_id=member.id, group_instance_id=member.instance_id, metadata=member.metadata(protocol)
    )
