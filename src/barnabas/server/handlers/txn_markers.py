"""WriteTxnMarkers (key 27), versions 1-2: for coordinators, and for whoever ends a transaction that hangs.

Does: each marker is appended to each of its partitions that this broker leads.
v2 transaction_version.
"""

import asyncio

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
from barnabas.server.api import Answer, Api, Context
from barnabas.server.marker_writing import MarkerAppends


async def handle(ctx: Context, request: Request) -> Answer:
    body: WriteTxnMarkersRequest = request.body
    appends = ctx.broker.transactions.appends
    return WriteTxnMarkersResponse(markers=[await _written(appends, marker) for marker in body.markers])


async def _written(appends: MarkerAppends, asked: WritableTxnMarker) -> WritableTxnMarkerResult:
    marker = EndMarker(
        asked.producer_id,
        asked.producer_epoch,
        asked.transaction_result,
        asked.coordinator_epoch,
        asked.transaction_version,
    )
    loop = asyncio.get_running_loop()
    codes: dict[TopicPartition, asyncio.Future[ErrorCode]] = {}
    for topic in asked.topics:
        for index in topic.partition_indexes:
            codes[TopicPartition(topic.name, index)] = told = loop.create_future()
            appends.append(TopicPartition(topic.name, index), marker, told.set_result)
    return WritableTxnMarkerResult(
        producer_id=asked.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=await codes[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in asked.topics
        ],
    )


def refuse(body: WriteTxnMarkersRequest, version: int, code: ErrorCode) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in body.markers
        ]
    )


API = Api(ApiKey.WRITE_TXN_MARKERS, versions=range(1, 3), handle=handle, refuse=refuse)
