"""Administration of transactions: DescribeProducers, DescribeTransactions, ListTransactions."""

from barnabas.protocol.schema.fields import array, int16, int32, int64, string
from barnabas.protocol.schema.struct import request, response, struct


@struct
class TopicRequest:
    name: str = string()
    partition_indexes: list[int] = array(int32)


@request(61, versions="0", flexible="0+")
class DescribeProducersRequest:
    topics: list[TopicRequest] = array(TopicRequest)


@struct
class ProducerState:
    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


@struct
class PartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    active_producers: list[ProducerState] = array(ProducerState)


@struct
class TopicResponse:
    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


@response(61, versions="0", flexible="0+")
class DescribeProducersResponse:
    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)


@request(65, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    transactional_ids: list[str] = array(string)


@struct
class TopicData:
    topic: str = string()
    partitions: list[int] = array(int32)


@struct
class DescribeTransactionsResponseTransactionState:
    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TopicData] = array(TopicData)


@response(65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    throttle_time_ms: int = int32()
    transaction_states: list[DescribeTransactionsResponseTransactionState] = array(
        DescribeTransactionsResponseTransactionState
    )


@request(66, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    """v1 duration_filter; v2 transactional_id_pattern"""

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", null="2+", default=None)


@struct
class ListTransactionsResponseTransactionState:
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@response(66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[ListTransactionsResponseTransactionState] = array(
        ListTransactionsResponseTransactionState
    )
