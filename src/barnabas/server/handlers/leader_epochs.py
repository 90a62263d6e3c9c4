"""OffsetForLeaderEpoch (key 23), versions 2-4.

Supported: the end offset of an epoch in the leader's log, from which a client detects truncation after a
leader change. A duplicate partition has two results.
v3 replica_id, which has no effect: only leaders answer; v4 flexible.
"""

from barnabas.base.errors import BarnabasError
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from barnabas.server.errors import code_of
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import Slices
from barnabas.server.services import Services, hosted


def handle(ctx: Context, request: Request) -> Answer:
    body: OffsetForLeaderEpochRequest = request.body
    broker = ctx.broker
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(broker, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in body.topics
        ]
    )


def _answer(broker: Services, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = hosted(broker, topic, asked.partition)
        partition.need_leader(asked.current_leader_epoch)
    except BarnabasError as error:
        code = code_of(error)
        if code is None:
            raise
        return EpochEndOffset(error_code=code, partition=asked.partition)
    epoch, end = partition.end_of_epoch(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end)


def refuse(body: OffsetForLeaderEpochRequest, version: int, code: ErrorCode) -> object:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(error_code=code, partition=asked.partition) for asked in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


API = Api(
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    versions=range(2, 5),
    handle=handle,
    refuse=refuse,
    slices=(Slices(("topics", "partitions"), same=("topic",)),),
)
