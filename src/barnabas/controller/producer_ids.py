"""AllocateProducerIds (key 67): allocate each block of producer ids to one broker, once."""

from typing import Final

from barnabas.controller.decision import Decision, Refused, check_broker_epoch
from barnabas.controller.facts import Facts
from barnabas.controller.refusals import refusal
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from barnabas.protocol.stored.cluster_topics import ProducerIdsRecord

BLOCK_SIZE: Final = 1_000
_ID_MAX: Final = 2**63 - 1


def allocate_producer_ids(
    image: MetadataImage, request: AllocateProducerIdsRequest, facts: Facts
) -> Decision:
    try:
        check_broker_epoch(image, request.broker_id, request.broker_epoch)
    except Refused as refused:
        return Decision((), refusal(request, refused.code))
    first = image.next_producer_id
    if first > _ID_MAX - BLOCK_SIZE:
        return Decision((), refusal(request, ErrorCode.UNKNOWN_SERVER_ERROR))
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    response = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return Decision((record,), response)
