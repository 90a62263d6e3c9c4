"""Share groups (KIP-932), records: ShareFetch, ShareAcknowledge."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import (
    Records,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uuid,
)
from barnabas.protocol.schema.struct import request, response, struct


@struct
class AcknowledgementBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: list[int] = array(int8)


@struct
class FetchPartition:
    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@struct
class FetchTopic:
    topic_id: Uuid = uuid()
    partitions: list[FetchPartition] = array(FetchPartition)


@struct
class ForgottenTopic:
    topic_id: Uuid = uuid()
    partitions: list[int] = array(int32)


@request(78, versions="1-2", flexible="0+")
class ShareFetchRequest:
    """v2 share_acquire_mode, is_renew_ack"""

    group_id: str | None = string(null="0+", default=None)
    member_id: str | None = string(null="0+")
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647)
    max_records: int = int32()
    batch_size: int = int32()
    share_acquire_mode: int = int8("2+", ignorable=True)
    is_renew_ack: bool = boolean("2+")
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class AcquiredRecords:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_count: int = int16()


@struct
class ShareFetchResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    acknowledge_error_code: int = int16()
    acknowledge_error_message: str | None = string(null="0+", default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch)
    records: Records = records()
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords)


@struct
class ShareFetchableTopicResponse:
    topic_id: Uuid = uuid()
    partitions: list[ShareFetchResponsePartitionData] = array(ShareFetchResponsePartitionData)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(null="0+", default=None)


@response(78, versions="1-2", flexible="0+")
class ShareFetchResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    acquisition_lock_timeout_ms: int = int32()
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)


@struct
class AcknowledgePartition:
    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@struct
class AcknowledgeTopic:
    topic_id: Uuid = uuid()
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition)


@request(79, versions="1-2", flexible="0+")
class ShareAcknowledgeRequest:
    """v2 is_renew_ack"""

    group_id: str | None = string(null="0+", default=None)
    member_id: str | None = string(null="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean("2+")
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)


@struct
class ShareAcknowledgeResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch)


@struct
class ShareAcknowledgeTopicResponse:
    topic_id: Uuid = uuid()
    partitions: list[ShareAcknowledgeResponsePartitionData] = array(ShareAcknowledgeResponsePartitionData)


@response(79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    """v2 acquisition_lock_timeout_ms"""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    acquisition_lock_timeout_ms: int = int32("2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
