"""Streams groups (KIP-1071): StreamsGroupHeartbeat, StreamsGroupDescribe."""

from barnabas.protocol.schema.fields import array, boolean, int8, int16, int32, int64, nested, string, uint16
from barnabas.protocol.schema.struct import request, response, struct


@struct
class KeyValue:
    key: str = string()
    value: str = string()


@struct
class TopicInfo:
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[KeyValue] = array(KeyValue)


@struct
class CopartitionGroup:
    source_topics: list[int] = array(int16)
    source_topic_regex: list[int] = array(int16)
    repartition_source_topics: list[int] = array(int16)


@struct
class StreamsGroupHeartbeatSubtopology:
    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    source_topic_regex: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: list[str] = array(string)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


@struct
class StreamsGroupHeartbeatTopology:
    epoch: int = int32()
    subtopologies: list[StreamsGroupHeartbeatSubtopology] = array(StreamsGroupHeartbeatSubtopology)


@struct
class TaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(int32)


@struct
class Endpoint:
    host: str = string()
    port: int = uint16()


@struct
class TaskOffset:
    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


@request(88, versions="0", flexible="0+")
class StreamsGroupHeartbeatRequest:
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(null="0+", default=None)
    rack_id: str | None = string(null="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    topology: StreamsGroupHeartbeatTopology | None = nested(StreamsGroupHeartbeatTopology, null="0+")
    active_tasks: list[TaskIds] | None = array(TaskIds, null="0+", default=None)
    standby_tasks: list[TaskIds] | None = array(TaskIds, null="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array(TaskIds, null="0+", default=None)
    process_id: str | None = string(null="0+", default=None)
    user_endpoint: Endpoint | None = nested(Endpoint, null="0+")
    client_tags: list[KeyValue] | None = array(KeyValue, null="0+", default=None)
    task_offsets: list[TaskOffset] | None = array(TaskOffset, null="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = array(TaskOffset, null="0+", default=None)
    shutdown_application: bool = boolean()


@struct
class Status:
    status_code: int = int8()
    status_detail: str = string()


@struct
class TopicPartition:
    topic: str = string()
    partitions: list[int] = array(int32)


@struct
class EndpointToPartitions:
    user_endpoint: Endpoint = nested(Endpoint)
    active_partitions: list[TopicPartition] = array(TopicPartition)
    standby_partitions: list[TopicPartition] = array(TopicPartition)


@response(88, versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag: int = int32()
    task_offset_interval_ms: int = int32()
    status: list[Status] | None = array(Status, null="0+")
    active_tasks: list[TaskIds] | None = array(TaskIds, null="0+", default=None)
    standby_tasks: list[TaskIds] | None = array(TaskIds, null="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array(TaskIds, null="0+", default=None)
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, null="0+", default=None
    )


@request(89, versions="0", flexible="0+")
class StreamsGroupDescribeRequest:
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


@struct
class StreamsGroupDescribeResponseSubtopology:
    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    repartition_sink_topics: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)


@struct
class StreamsGroupDescribeResponseTopology:
    epoch: int = int32()
    subtopologies: list[StreamsGroupDescribeResponseSubtopology] | None = array(
        StreamsGroupDescribeResponseSubtopology, null="0+", default=None
    )


@struct
class Assignment:
    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)


@struct
class Member:
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(null="0+", default=None)
    rack_id: str | None = string(null="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested(Endpoint, null="0+")
    client_tags: list[KeyValue] = array(KeyValue)
    task_offsets: list[TaskOffset] = array(TaskOffset)
    task_end_offsets: list[TaskOffset] = array(TaskOffset)
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    is_classic: bool = boolean()


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    topology: StreamsGroupDescribeResponseTopology | None = nested(
        StreamsGroupDescribeResponseTopology, null="0+"
    )
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-2147483648)


@response(89, versions="0", flexible="0+")
class StreamsGroupDescribeResponse:
    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
