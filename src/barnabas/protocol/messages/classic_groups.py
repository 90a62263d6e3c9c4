"""The classic group protocol: FindCoordinator, JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from barnabas.protocol.schema.fields import array, binary, boolean, int8, int16, int32, string
from barnabas.protocol.schema.struct import request, response, struct


@request(10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """v1 key_type; v3 flexible; v4 no key, coordinator_keys"""

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array(string, "4+")


@struct
class Coordinator:
    key: str = string()
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


@response(10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """v1 throttle_time_ms, error_message; v3 flexible; v4 no error_code, no error_message, no node_id, no
    host, no port, coordinators
    """

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", null="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: list[Coordinator] = array(Coordinator, "4+")


@struct
class JoinGroupRequestProtocol:
    name: str = string()
    metadata: bytes = binary()


@request(11, versions="0-9", flexible="6+", tuned=True)
class JoinGroupRequest:
    """v1 rebalance_timeout_ms; v5 group_instance_id; v6 flexible; v8 reason"""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string("5+", null="5+", default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", null="8+", default=None, ignorable=True)


@struct
class JoinGroupResponseMember:
    member_id: str = string()
    group_instance_id: str | None = string("5+", null="5+", default=None, ignorable=True)
    metadata: bytes = binary()


@response(11, versions="0-9", flexible="6+", tuned=True)
class JoinGroupResponse:
    """v2 throttle_time_ms; v5 group_instance_id; v6 flexible; v7 protocol_type; v9 skip_assignment"""

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", null="7+", default=None, ignorable=True)
    protocol_name: str | None = string(null="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)


@struct
class SyncGroupRequestAssignment:
    member_id: str = string()
    assignment: bytes = binary()


@request(14, versions="0-5", flexible="4+", tuned=True)
class SyncGroupRequest:
    """v3 group_instance_id; v4 flexible; v5 protocol_type, protocol_name"""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", null="3+", default=None)
    protocol_type: str | None = string("5+", null="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", null="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@response(14, versions="0-5", flexible="4+", tuned=True)
class SyncGroupResponse:
    """v1 throttle_time_ms; v4 flexible; v5 protocol_type, protocol_name"""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string("5+", null="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", null="5+", default=None, ignorable=True)
    assignment: bytes = binary()


@request(12, versions="0-4", flexible="4+", tuned=True)
class HeartbeatRequest:
    """v3 group_instance_id; v4 flexible"""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", null="3+", default=None)


@response(12, versions="0-4", flexible="4+", tuned=True)
class HeartbeatResponse:
    """v1 throttle_time_ms; v4 flexible"""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()


@struct
class MemberIdentity:
    member_id: str = string()
    group_instance_id: str | None = string(null="0+", default=None)
    reason: str | None = string("5+", null="5+", default=None, ignorable=True)


@request(13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """v3 no member_id, members; v4 flexible; v5 reason"""

    group_id: str = string()
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


@struct
class MemberResponse:
    member_id: str = string()
    group_instance_id: str | None = string(null="0+")
    error_code: int = int16()


@response(13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """v1 throttle_time_ms; v3 members; v4 flexible"""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, "3+")
