"""Share groups (KIP-932), state between brokers: keys 83-87."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, int8, int16, int32, int64, string, uuid
from barnabas.protocol.schema.struct import request, response, struct


@struct
class InitializeShareGroupStatePartitionData:
    partition: int = int32()
    state_epoch: int = int32()
    start_offset: int = int64()


@struct
class InitializeStateData:
    topic_id: Uuid = uuid()
    partitions: list[InitializeShareGroupStatePartitionData] = array(InitializeShareGroupStatePartitionData)


@request(83, versions="0", flexible="0+")
class InitializeShareGroupStateRequest:
    group_id: str = string()
    topics: list[InitializeStateData] = array(InitializeStateData)


@struct
class InitializeShareGroupStateResponsePartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)


@struct
class InitializeStateResult:
    topic_id: Uuid = uuid()
    partitions: list[InitializeShareGroupStateResponsePartitionResult] = array(
        InitializeShareGroupStateResponsePartitionResult
    )


@response(83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse:
    results: list[InitializeStateResult] = array(InitializeStateResult)


@struct
class ReadShareGroupStatePartitionData:
    partition: int = int32()
    leader_epoch: int = int32()


@struct
class ReadStateData:
    topic_id: Uuid = uuid()
    partitions: list[ReadShareGroupStatePartitionData] = array(ReadShareGroupStatePartitionData)


@request(84, versions="0", flexible="0+")
class ReadShareGroupStateRequest:
    group_id: str = string()
    topics: list[ReadStateData] = array(ReadStateData)


@struct
class StateBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@struct
class ReadShareGroupStateResponsePartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    state_epoch: int = int32()
    start_offset: int = int64()
    state_batches: list[StateBatch] = array(StateBatch)


@struct
class ReadStateResult:
    topic_id: Uuid = uuid()
    partitions: list[ReadShareGroupStateResponsePartitionResult] = array(
        ReadShareGroupStateResponsePartitionResult
    )


@response(84, versions="0", flexible="0+")
class ReadShareGroupStateResponse:
    results: list[ReadStateResult] = array(ReadStateResult)


@struct
class WriteShareGroupStatePartitionData:
    partition: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = array(StateBatch)


@struct
class WriteStateData:
    topic_id: Uuid = uuid()
    partitions: list[WriteShareGroupStatePartitionData] = array(WriteShareGroupStatePartitionData)


@request(85, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest:
    """v1 delivery_complete_count"""

    group_id: str = string()
    topics: list[WriteStateData] = array(WriteStateData)


@struct
class WriteShareGroupStateResponsePartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)


@struct
class WriteStateResult:
    topic_id: Uuid = uuid()
    partitions: list[WriteShareGroupStateResponsePartitionResult] = array(
        WriteShareGroupStateResponsePartitionResult
    )


@response(85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse:
    results: list[WriteStateResult] = array(WriteStateResult)


@struct
class DeleteShareGroupStatePartitionData:
    partition: int = int32()


@struct
class DeleteStateData:
    topic_id: Uuid = uuid()
    partitions: list[DeleteShareGroupStatePartitionData] = array(DeleteShareGroupStatePartitionData)


@request(86, versions="0", flexible="0+")
class DeleteShareGroupStateRequest:
    group_id: str = string()
    topics: list[DeleteStateData] = array(DeleteStateData)


@struct
class DeleteShareGroupStateResponsePartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)


@struct
class DeleteStateResult:
    topic_id: Uuid = uuid()
    partitions: list[DeleteShareGroupStateResponsePartitionResult] = array(
        DeleteShareGroupStateResponsePartitionResult
    )


@response(86, versions="0", flexible="0+")
class DeleteShareGroupStateResponse:
    results: list[DeleteStateResult] = array(DeleteStateResult)


@struct
class ReadShareGroupStateSummaryPartitionData:
    partition: int = int32()
    leader_epoch: int = int32()


@struct
class ReadStateSummaryData:
    topic_id: Uuid = uuid()
    partitions: list[ReadShareGroupStateSummaryPartitionData] = array(ReadShareGroupStateSummaryPartitionData)


@request(87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest:
    group_id: str = string()
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


@struct
class ReadShareGroupStateSummaryResponsePartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)


@struct
class ReadStateSummaryResult:
    topic_id: Uuid = uuid()
    partitions: list[ReadShareGroupStateSummaryResponsePartitionResult] = array(
        ReadShareGroupStateSummaryResponsePartitionResult
    )


@response(87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    """v1 delivery_complete_count"""

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
