"""Produce (key 0): append record batches."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import (
    Records,
    array,
    int16,
    int32,
    int64,
    nested,
    position_of,
    records,
    string,
    uuid,
)
from barnabas.protocol.schema.struct import request, response, struct


@struct
class PartitionProduceData:
    index: int = int32()
    records: Records | None = records(null="0+")
    start: int = position_of(records)


@struct
class TopicProduceData:
    name: str = string("0-12", ignorable=True)
    topic_id: Uuid = uuid("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@request(0, versions="3-13", flexible="9+", tuned=True)
class ProduceRequest:
    """v9 flexible; v13 no name, topic_id"""

    transactional_id: str | None = string(null="0+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


@struct
class BatchIndexAndErrorMessage:
    batch_index: int = int32()
    batch_index_error_message: str | None = string(null="0+", default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


@struct
class PartitionProduceResponse:
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(default=-1)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, "8+", ignorable=True)
    error_message: str | None = string("8+", null="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch | None = nested(LeaderIdAndEpoch, "10+", tag=0)


@struct
class TopicProduceResponse:
    name: str = string("0-12", ignorable=True)
    topic_id: Uuid = uuid("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(null="0+", default=None)


@response(0, versions="3-13", flexible="9+", tuned=True)
class ProduceResponse:
    """v5 log_start_offset; v8 record_errors, error_message; v9 flexible; v10 node_endpoints,
    current_leader; v13 no name, topic_id
    """

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32()
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)
