"""Administration of groups: DescribeGroups, ListGroups, DeleteGroups."""

from barnabas.protocol.schema.fields import array, binary, boolean, int16, int32, string
from barnabas.protocol.schema.struct import request, response, struct


@request(15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """v3 include_authorized_operations; v5 flexible"""

    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean("3+")


@struct
class DescribedGroupMember:
    member_id: str = string()
    group_instance_id: str | None = string("4+", null="4+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = binary()
    member_assignment: bytes = binary()


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string("6+", null="6+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32("3+", default=-2147483648)


@response(15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """v1 throttle_time_ms; v3 authorized_operations; v4 group_instance_id; v5 flexible; v6 error_message"""

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)


@request(16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    """v3 flexible; v4 states_filter; v5 types_filter"""

    states_filter: list[str] = array(string, "4+")
    types_filter: list[str] = array(string, "5+")


@struct
class ListedGroup:
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


@response(16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """v1 throttle_time_ms; v3 flexible; v4 group_state; v5 group_type"""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)


@request(42, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    """v2 flexible"""

    groups_names: list[str] = array(string)


@struct
class DeletableGroupResult:
    group_id: str = string()
    error_code: int = int16()


@response(42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    """v2 flexible"""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
