"""Validation of requests to classic groups, in Kafka's order."""

from collections.abc import Mapping
from typing import Final

from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.classic.states import DEAD, EMPTY, PREPARING
from barnabas.coordinators.group.group import Group, GroupError
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import JoinGroupRequest, SyncGroupRequest

# From this version of SyncGroup on protocol type and name are required. (KIP-559)
_PROTOCOL_SAID_FROM: Final = 5
_STRING_BYTES_MAX: Final = 2**15 - 1
# Limit of the metadata of all classic members in one partition of __consumer_offsets. Above it, only members
# with little metadata may join, less than the broker's own data of a member.
METADATA_BYTES_MAX: Final = 32 << 20
SMALL_METADATA_BYTES: Final = 16 << 10


def check_group_id(group_id: str) -> None:
    if not group_id:
        raise GroupError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")


def check_join(request: JoinGroupRequest, settings: GroupSettings) -> None:
    check_group_id(request.group_id)
    least_ms, most_ms = settings.session_timeout_ms_min, settings.session_timeout_ms_max
    if not least_ms <= request.session_timeout_ms <= most_ms:
        raise GroupError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"session timeout {request.session_timeout_ms} ms is out of range ({least_ms} to {most_ms})",
        )


def check_member_id(member_id: str) -> None:
    """A generated id may be too long for a message if the client id or instance id nearly is."""
    if len(member_id.encode()) > _STRING_BYTES_MAX:
        raise GroupError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"member id of {len(member_id)} characters is too long"
        )


def check_sync(request: SyncGroupRequest, version: int) -> None:
    is_said = request.protocol_type is not None and request.protocol_name is not None
    if version >= _PROTOCOL_SAID_FROM and not is_said:
        raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name must be given")
    check_group_id(request.group_id)


def check_sync_to(group: ClassicGroup, request: SyncGroupRequest) -> None:
    group.check_alive()
    group.check_member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    if _differ(request.protocol_type, group.protocol_type or None) or _differ(
        request.protocol_name, group.protocol
    ):
        raise GroupError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"group {group.id} uses protocol type {group.protocol_type}, protocol {group.protocol}",
        )
    if group.state == PREPARING:
        raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.id} is rebalancing; rejoin")


def check_metadata(request: JoinGroupRequest, groups: Mapping[str, Group]) -> None:
    """Limit the memory for metadata, which is held for the whole session without being committed."""
    size = sum(len(protocol.metadata) for protocol in request.protocols)
    if size <= SMALL_METADATA_BYTES:
        return
    group = groups.get(request.group_id)
    member = group.members.get(request.member_id) if isinstance(group, ClassicGroup) else None
    if member is not None:
        size -= sum(len(metadata) for _, metadata in member.protocols)
    kept = sum(one.metadata_bytes for one in groups.values() if isinstance(one, ClassicGroup))
    if kept + size > METADATA_BYTES_MAX:
        raise GroupError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"member metadata would be {kept + size} bytes, but the limit is {METADATA_BYTES_MAX}",
        )


def has_room_for(group: ClassicGroup, member_id: str, size_max: int) -> bool:
    """During a rebalance only members that have joined count: the first ones get the places."""
    if group.state in (EMPTY, DEAD):
        return True
    member = group.members.get(member_id)
    if group.state == PREPARING:
        return (member is not None and member.joining is not None) or group.joining_count < size_max
    return member is not None or len(group.members) < size_max


def _differ(said: str | None, held: str | None) -> bool:
    return said is not None and held is not None and said != held
