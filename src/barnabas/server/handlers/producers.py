"""DescribeProducers (key 61), version 0.

Supported: the active producers of a partition, with their last sequence and the start offset of their open
transaction. Any replica answers, leader or not. A duplicate partition has two results.
"""

from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.controller.topic_names import topic_name_error
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from barnabas.server.errors import code_of
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import Slices
from barnabas.server.services import Services, hosted
from barnabas.storage.producers.state import ProducerEntry

_UNKNOWN_TOPIC: Final = "This server does not host this topic-partition."


def handle(ctx: Context, request: Request) -> Answer:
    body: DescribeProducersRequest = request.body
    return DescribeProducersResponse(topics=[_topic(ctx.broker, topic) for topic in body.topics])


def _topic(broker: Services, asked: TopicRequest) -> TopicResponse:
    code, message = ErrorCode.NONE, None
    wrong = topic_name_error(asked.name)
    if wrong is not None:
        code, message = ErrorCode.INVALID_TOPIC_EXCEPTION, wrong
    elif asked.name not in broker.image.topics:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN_TOPIC
    if code != ErrorCode.NONE:
        return _failed(asked, code, message)
    return TopicResponse(
        name=asked.name,
        partitions=[_partition(broker, asked.name, index) for index in asked.partition_indexes],
    )


def _partition(broker: Services, topic: str, index: int) -> PartitionResponse:
    try:
        entries = hosted(broker, topic, index).log.producers.entries()
    except BarnabasError as error:
        code = code_of(error)
        if code is None:
            raise
        return PartitionResponse(partition_index=index, error_code=code)
    return PartitionResponse(partition_index=index, active_producers=[_state(entry) for entry in entries])


def _state(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.txn_first_offset,
    )


def _failed(asked: TopicRequest, code: ErrorCode, message: str | None) -> TopicResponse:
    return TopicResponse(
        name=asked.name,
        partitions=[
            PartitionResponse(partition_index=index, error_code=code, error_message=message)
            for index in asked.partition_indexes
        ],
    )


def refuse(body: DescribeProducersRequest, version: int, code: ErrorCode) -> object:
    return DescribeProducersResponse(topics=[_failed(topic, code, None) for topic in body.topics])


API = Api(
    ApiKey.DESCRIBE_PRODUCERS,
    versions=range(1),
    handle=handle,
    refuse=refuse,
    slices=(Slices(("topics", "partition_indexes"), ("topics", "partitions"), at_once=50),),
)
