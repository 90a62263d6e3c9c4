"""Share groups (KIP-932), membership: ShareGroupHeartbeat, ShareGroupDescribe."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, boolean, int16, int32, nested, string, uuid
from barnabas.protocol.schema.struct import request, response, struct


@request(76, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest:
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(null="0+", default=None)
    subscribed_topic_names: list[str] | None = array(string, null="0+", default=None)


@struct
class ShareGroupHeartbeatResponseTopicPartitions:
    topic_id: Uuid = uuid()
    partitions: list[int] = array(int32)


@struct
class ShareGroupHeartbeatResponseAssignment:
    topic_partitions: list[ShareGroupHeartbeatResponseTopicPartitions] = array(
        ShareGroupHeartbeatResponseTopicPartitions
    )


@response(76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    member_id: str | None = string(null="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: ShareGroupHeartbeatResponseAssignment | None = nested(
        ShareGroupHeartbeatResponseAssignment, null="0+"
    )


@request(77, versions="1", flexible="0+")
class ShareGroupDescribeRequest:
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


@struct
class ShareGroupDescribeResponseTopicPartitions:
    topic_id: Uuid = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


@struct
class ShareGroupDescribeResponseAssignment:
    topic_partitions: list[ShareGroupDescribeResponseTopicPartitions] = array(
        ShareGroupDescribeResponseTopicPartitions
    )


@struct
class Member:
    member_id: str = string()
    rack_id: str | None = string(null="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    assignment: ShareGroupDescribeResponseAssignment = nested(ShareGroupDescribeResponseAssignment)


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-2147483648)


@response(77, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
