"""The consumer group protocol of KIP-848: ConsumerGroupHeartbeat, ConsumerGroupDescribe."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, boolean, int8, int16, int32, nested, string, uuid
from barnabas.protocol.schema.struct import request, response, struct


@struct
class ConsumerGroupHeartbeatTopicPartitions:
    topic_id: Uuid = uuid()
    partitions: list[int] = array(int32)


@request(68, versions="0-1", flexible="0+", tuned=True)
class ConsumerGroupHeartbeatRequest:
    """v1 subscribed_topic_regex"""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(null="0+", default=None)
    rack_id: str | None = string(null="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array(string, null="0+", default=None)
    subscribed_topic_regex: str | None = string("1+", null="1+", default=None)
    server_assignor: str | None = string(null="0+", default=None)
    topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] | None = array(
        ConsumerGroupHeartbeatTopicPartitions, null="0+", default=None
    )


@struct
class ConsumerGroupHeartbeatResponseTopicPartitions:
    topic_id: Uuid = uuid()
    partitions: list[int] = array(int32)


@struct
class ConsumerGroupHeartbeatResponseAssignment:
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = array(
        ConsumerGroupHeartbeatResponseTopicPartitions
    )


@response(68, versions="0-1", flexible="0+", tuned=True)
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    member_id: str | None = string(null="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = nested(
        ConsumerGroupHeartbeatResponseAssignment, null="0+"
    )


@request(69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


@struct
class ConsumerGroupDescribeResponseTopicPartitions:
    topic_id: Uuid = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


@struct
class ConsumerGroupDescribeResponseAssignment:
    topic_partitions: list[ConsumerGroupDescribeResponseTopicPartitions] = array(
        ConsumerGroupDescribeResponseTopicPartitions
    )


@struct
class Member:
    member_id: str = string()
    instance_id: str | None = string(null="0+", default=None)
    rack_id: str | None = string(null="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(null="0+", default=None)
    assignment: ConsumerGroupDescribeResponseAssignment = nested(ConsumerGroupDescribeResponseAssignment)
    target_assignment: ConsumerGroupDescribeResponseAssignment = nested(
        ConsumerGroupDescribeResponseAssignment
    )
    member_type: int = int8("1+", default=-1, ignorable=True)


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


@response(69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """v1 member_type"""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
