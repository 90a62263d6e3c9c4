"""Records of __consumer_offsets: share groups (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, int8, int32, int64, string, uuid
from barnabas.protocol.schema.struct import message, struct


@message("key", key=10, versions="0", flexible="none")
class ShareGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@message("value", key=10, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue:
    rack_id: str | None = string(null="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)


@message("key", key=11, versions="0", flexible="none")
class ShareGroupMetadataKey:
    group_id: str = string()


@message("value", key=11, versions="0", flexible="0+")
class ShareGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64()


@message("key", key=12, versions="0", flexible="none")
class ShareGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message("value", key=12, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


@message("key", key=13, versions="0", flexible="none")
class ShareGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@struct
class TopicPartition:
    topic_id: Uuid = uuid()
    partitions: list[int] = array(int32)


@message("value", key=13, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition] = array(TopicPartition)


@message("key", key=14, versions="0", flexible="none")
class ShareGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@struct
class TopicPartitions:
    topic_id: Uuid = uuid()
    partitions: list[int] = array(int32)


@message("value", key=14, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)


@message("key", key=15, versions="0", flexible="none")
class ShareGroupStatePartitionMetadataKey:
    group_id: str = string()


@struct
class TopicPartitionsInfo:
    topic_id: Uuid = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


@struct
class TopicInfo:
    topic_id: Uuid = uuid()
    topic_name: str = string()


@message("value", key=15, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: list[TopicInfo] = array(TopicInfo)
