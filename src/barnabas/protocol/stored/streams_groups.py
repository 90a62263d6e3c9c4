"""Records of __consumer_offsets: streams groups (KIP-1071)."""

from barnabas.protocol.schema.fields import array, int8, int16, int32, int64, nested, string, uint16
from barnabas.protocol.schema.struct import message, struct


@message("key", key=17, versions="0", flexible="none")
class StreamsGroupMetadataKey:
    group_id: str = string()


@struct
class LastAssignmentConfig:
    key: str = string()
    value: str = string()


@message("value", key=17, versions="0", flexible="0+")
class StreamsGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64()
    validated_topology_epoch: int = int32(default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = array(LastAssignmentConfig, null="0+", tag=1)


@message("key", key=19, versions="0", flexible="none")
class StreamsGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@struct
class Endpoint:
    host: str = string()
    port: int = uint16()


@struct
class KeyValue:
    key: str = string()
    value: str = string()


@message("value", key=19, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue:
    instance_id: str | None = string(null="0+")
    rack_id: str | None = string(null="0+")
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested(Endpoint, null="0+")
    client_tags: list[KeyValue] = array(KeyValue)


@message("key", key=20, versions="0", flexible="none")
class StreamsGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message("value", key=20, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


@message("key", key=21, versions="0", flexible="none")
class StreamsGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@struct
class StreamsGroupTargetAssignmentMemberValueTaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(int32)


@message("value", key=21, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue:
    active_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array(
        StreamsGroupTargetAssignmentMemberValueTaskIds
    )
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array(
        StreamsGroupTargetAssignmentMemberValueTaskIds
    )
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array(
        StreamsGroupTargetAssignmentMemberValueTaskIds
    )


@message("key", key=22, versions="0", flexible="none")
class StreamsGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@struct
class StreamsGroupCurrentMemberAssignmentValueTaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, null="0+", tag=0)


@message("value", key=22, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentValueTaskIds
    )


@message("key", key=23, versions="0", flexible="none")
class StreamsGroupTopologyKey:
    group_id: str = string()


@struct
class TopicConfig:
    key: str = string()
    value: str = string()


@struct
class TopicInfo:
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[TopicConfig] = array(TopicConfig)


@struct
class CopartitionGroup:
    source_topics: list[int] = array(int16)
    source_topic_regex: list[int] = array(int16)
    repartition_source_topics: list[int] = array(int16)


@struct
class Subtopology:
    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    source_topic_regex: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: list[str] = array(string)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


@message("value", key=23, versions="0", flexible="0+")
class StreamsGroupTopologyValue:
    epoch: int = int32()
    subtopologies: list[Subtopology] = array(Subtopology)
