"""Ends transactions from outside: with a marker in one partition, or by fencing the producer.

WriteTxnMarkers goes to the partition leader and bypasses the coordinator: it is for hanging transactions that
no coordinator knows. InitProducerId goes to the coordinator, which bumps the epoch of the transactional id
and aborts its open transaction.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.admin.call import Call, Outcome, Spoken, judged
from barnabas.client.admin.coordinators import TRANSACTION, ask_coordinators
from barnabas.client.admin.leaders import ask_leaders
from barnabas.client.errors import ClientError
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.transactions import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


@value(kw_only=True)
class FencedProducer:
    """The new producer id and epoch: producers with an older epoch are fenced."""

    producer_id: int
    producer_epoch: int


async def abort(
    call: Call, tp: TopicPartition, *, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> dict[TopicPartition, Outcome[None]]:
    """Write an abort marker. After a lost response it is written again; a second marker is harmless."""
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
        coordinator_epoch=coordinator_epoch,
    )

    def make(_: Spoken, __: list[TopicPartition]) -> object:
        return WriteTxnMarkersRequest(markers=[marker])

    return await ask_leaders(call, ApiKey.WRITE_TXN_MARKERS, [tp], make, _written)


def _written(answer: Any) -> dict[TopicPartition, Outcome[None]]:
    response: WriteTxnMarkersResponse = answer
    found: dict[TopicPartition, Outcome[None]] = {}
    for marker in response.markers:
        for topic in marker.topics:
            for entry in topic.partitions:
                tp = TopicPartition(topic.name, entry.partition_index)
                found[tp] = judged(entry.error_code, None, about=str(tp))
    return found


async def fence(
    call: Call, ids: Iterable[str], *, transaction_timeout_ms: int
) -> dict[str, Outcome[FencedProducer]]:
    async def one(broker: int, transactional_id: str) -> Outcome[FencedProducer]:
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=transaction_timeout_ms
        )
        try:
            entry: InitProducerIdResponse = await call.ask(ApiKey.INIT_PRODUCER_ID, lambda _: request, broker)
        except ClientError as error:
            return error
        fenced = FencedProducer(producer_id=entry.producer_id, producer_epoch=entry.producer_epoch)
        return judged(entry.error_code, fenced, about=TRANSACTION.about(transactional_id))

    async def ask(node: Node, share: list[str]) -> Mapping[str, Outcome[FencedProducer]]:
        # InitProducerId has one id per request.
        return {each: await one(node.id, each) for each in share}

    return await ask_coordinators(call, "INIT_PRODUCER_ID", ids, ask, TRANSACTION)
