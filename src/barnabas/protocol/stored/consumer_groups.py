"""Records of __consumer_offsets: consumer groups (KIP-848)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, binary, int8, int32, int64, nested, string, uuid
from barnabas.protocol.schema.struct import message, struct


@message("key", key=3, versions="0", flexible="none")
class ConsumerGroupMetadataKey:
    group_id: str = string()


@message("value", key=3, versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


@message("key", key=4, versions="0", flexible="none")
class ConsumerGroupPartitionMetadataKey:
    group_id: str = string()


@struct
class PartitionMetadata:
    partition: int = int32()
    racks: list[str] = array(string)


@struct
class TopicMetadata:
    topic_id: Uuid = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)


@message("value", key=4, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    topics: list[TopicMetadata] = array(TopicMetadata)


@message("key", key=5, versions="0", flexible="none")
class ConsumerGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@struct
class ClassicProtocol:
    name: str = string()
    metadata: bytes = binary()


@struct
class ClassicMemberMetadata:
    session_timeout_ms: int = int32()
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


@message("value", key=5, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None = string(null="0+")
    rack_id: str | None = string(null="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(null="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(null="0+")
    classic_member_metadata: ClassicMemberMetadata | None = nested(
        ClassicMemberMetadata, null="0+", default=ClassicMemberMetadata, tag=0
    )


@message("key", key=6, versions="0", flexible="none")
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message("value", key=6, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


@message("key", key=7, versions="0", flexible="none")
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@struct
class TopicPartition:
    topic_id: Uuid = uuid()
    partitions: list[int] = array(int32)


@message("value", key=7, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition] = array(TopicPartition)


@message("key", key=8, versions="0", flexible="none")
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@struct
class TopicPartitions:
    topic_id: Uuid = uuid()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, null="0+", tag=0)


@message("value", key=8, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions)


@message("key", key=16, versions="0", flexible="none")
class ConsumerGroupRegularExpressionKey:
    group_id: str = string()
    regular_expression: str = string()


@message("value", key=16, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    topics: list[str] = array(string)
    version: int = int64()
    timestamp: int = int64()
