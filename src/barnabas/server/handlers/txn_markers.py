"""WriteTxnMarkers (key 27), versions 1-2, for coordinators and for tools that abort a hanging transaction.

Supported: each marker is appended to those of its partitions that this broker leads.
v2 transaction_version.
"""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TypeAlias

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import EndMarker
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.replication.replicas import Replicas
from barnabas.server.coordination.markers import NO_EPOCH, NO_ID, MarkerAppender
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import Slices

# The result of each partition, by producer id. Several markers of one producer share a result.
_Results: TypeAlias = dict[int, dict[TopicPartition, ErrorCode]]


async def handle(ctx: Context, request: Request) -> Answer:
    body: WriteTxnMarkersRequest = request.body
    if any(_has_no_producer(marker, ctx.broker.replicas) for marker in body.markers):
        return refuse(body, request.version, ErrorCode.UNKNOWN_SERVER_ERROR)
    appender = ctx.broker.transactions.marker_appender
    results: _Results = {}
    for marker in body.markers:
        codes = await _append(appender, marker)
        # As in Kafka, a producer without partitions is not in the response.
        if codes:
            results.setdefault(marker.producer_id, {}).update(codes)
    return WriteTxnMarkersResponse(markers=[_result(*row) for row in results.items()])


def _has_no_producer(marker: WritableTxnMarker, replicas: Replicas) -> bool:
    """Whether the marker has no producer. Kafka cannot build a batch for it, and fails the whole request."""
    if marker.producer_id != NO_ID and marker.producer_epoch != NO_EPOCH:
        return False
    return any(tp in replicas.partitions for tp in _partitions(marker))


async def _append(appender: MarkerAppender, asked: WritableTxnMarker) -> dict[TopicPartition, ErrorCode]:
    marker = EndMarker(
        asked.producer_id,
        asked.producer_epoch,
        asked.transaction_result,
        asked.coordinator_epoch,
        asked.transaction_version,
    )
    loop = asyncio.get_running_loop()
    results: dict[TopicPartition, asyncio.Future[ErrorCode]] = {}
    for tp in _partitions(asked):
        if tp not in results:
            results[tp] = loop.create_future()
            appender.append(tp, marker, partial(_set_result, results[tp]))
    return {tp: await code for tp, code in results.items()}


def _set_result(waiting: asyncio.Future[ErrorCode], code: ErrorCode) -> None:
    # The waiting handler may have been cancelled because the broker stops.
    if not waiting.done():
        waiting.set_result(code)


def _partitions(marker: WritableTxnMarker) -> Iterator[TopicPartition]:
    for topic in marker.topics:
        for index in topic.partition_indexes:
            yield TopicPartition(topic.name, index)


def _result(producer_id: int, codes: Mapping[TopicPartition, ErrorCode]) -> WritableTxnMarkerResult:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for tp, code in codes.items():
        topic = topics.setdefault(tp.topic, WritableTxnMarkerTopicResult(name=tp.topic, partitions=[]))
        topic.partitions.append(
            WritableTxnMarkerPartitionResult(partition_index=tp.partition, error_code=code)
        )
    return WritableTxnMarkerResult(producer_id=producer_id, topics=list(topics.values()))


def refuse(body: WriteTxnMarkersRequest, version: int, code: ErrorCode) -> WriteTxnMarkersResponse:
    results: _Results = {}
    for marker in body.markers:
        results.setdefault(marker.producer_id, {}).update(dict.fromkeys(_partitions(marker), code))
    return WriteTxnMarkersResponse(markers=[_result(*row) for row in results.items()])


API = Api(
    ApiKey.WRITE_TXN_MARKERS,
    versions=range(1, 3),
    handle=handle,
    refuse=refuse,
    slices=(
        Slices(
            ("markers", "topics", "partition_indexes"),
            ("markers", "topics", "partitions"),
            same=("producer_id",),
            is_change=True,
        ),
    ),
)
