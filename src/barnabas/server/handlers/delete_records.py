"""DeleteRecords (key 21), versions 0-2.

Supported: advancing the start of a log, up to the high watermark for -1. The next retention run deletes the
segments before the start.
Not supported: waiting for followers, because a single node has none; timeout_ms has no effect.
v2 flexible.

As in Kafka, the response is sent when the start has advanced in memory. A crash before the next checkpoint
restores the records. Checkpoints never exceed the flushed offset, so the handler schedules a flush: without
it, a start in an unflushed segment would only survive a clean shutdown.
"""

from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.offsets import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.replication.partition import Partition
from barnabas.server.errors import code_of
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import Slices
from barnabas.server.services import Services, hosted
from barnabas.server.topic_rows import INTERNAL_TOPICS
from barnabas.storage.errors import OffsetOutOfRange

UP_TO_HIGH_WATERMARK: Final = -1
_NO_WATERMARK: Final = -1


def handle(ctx: Context, request: Request) -> Answer:
    body: DeleteRecordsRequest = request.body
    # For a duplicate partition the last offset counts, and there is one result.
    wanted: dict[str, dict[int, int]] = {}
    for topic in body.topics:
        if topic.partitions:
            offsets = wanted.setdefault(topic.name, {})
            offsets.update({asked.partition_index: asked.offset for asked in topic.partitions})
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name,
                partitions=[_answer(ctx.broker, name, index, offset) for index, offset in offsets.items()],
            )
            for name, offsets in wanted.items()
        ]
    )


def _answer(broker: Services, name: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    try:
        partition = hosted(broker, name, index)
        if name in INTERNAL_TOPICS:
            # Only coordinators delete records of internal topics.
            return _failed(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition.need_leader()
        if not partition.log.config.deletes:
            return _failed(index, ErrorCode.POLICY_VIOLATION)
        _delete(partition, offset)
    except BarnabasError as error:
        code = code_of(error)
        if code is None:
            raise
        return _failed(index, code)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=partition.log.start_offset)


def _delete(partition: Partition, offset: int) -> None:
    log = partition.log
    upto = log.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
    if upto < 0:
        raise OffsetOutOfRange(requested=upto, start=log.start_offset, end=log.high_watermark)
    if not log.advance_start(upto):
        return
    if log.recovery_point < log.start_offset and log.on_flush_due is not None:
        log.on_flush_due(log)
    partition.changed()


def _failed(index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_WATERMARK, error_code=code)


def refuse(body: DeleteRecordsRequest, version: int, code: ErrorCode) -> object:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_failed(asked.partition_index, code) for asked in topic.partitions],
            )
            for topic in body.topics
        ]
    )


API = Api(
    ApiKey.DELETE_RECORDS,
    versions=range(3),
    handle=handle,
    refuse=refuse,
    slices=(Slices(("topics", "partitions"), is_change=True),),
)
