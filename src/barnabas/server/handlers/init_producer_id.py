"""InitProducerId (key 22), versions 0-5.

Does: a producer id that nobody else has, with epoch 0, for idempotent producers. With an id and an epoch that
the client had (v3) it is a new id all the same: without a transactional id there is nothing to continue.
Does not: transactions. Their coordinator is not built yet.
v2 flexible; v3 producer_id, producer_epoch; v4 PRODUCER_FENCED; v5 TRANSACTION_ABORTABLE.

A request with a transactional id is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "you may not use this
transactional id", because all clients take it for final and report it at once. UNSUPPORTED_VERSION would be
closer to the truth, but librdkafka counts it among the errors that go away, and asks again every half second
until its user's patience is over; with the coordinator's errors (not available, loading) every client does.
"""

import asyncio
import logging
from typing import Final

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from barnabas.server.api import Answer, Api, Context
from barnabas.server.producer_ids import NoProducerIds, ProducerIds

logger = logging.getLogger(__name__)

_NO_ID: Final = -1
_NO_EPOCH: Final = -1
# How long a client waits while the controller is asked for more ids. After that it is told to come again.
WAIT_MAX_S: Final = 5.0


def handle(ctx: Context, request: Request) -> Answer:
    body: InitProducerIdRequest = request.body
    if (body.producer_id == _NO_ID) != (body.producer_epoch == _NO_EPOCH):
        return refuse(body, request.version, ErrorCode.INVALID_REQUEST)
    if body.transactional_id is not None:
        return refuse(body, request.version, _refusal(body.transactional_id))
    return _next_id(ctx.broker.producer_ids)


def _refusal(transactional_id: str) -> ErrorCode:
    if not transactional_id:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def _next_id(producer_ids: ProducerIds) -> InitProducerIdResponse:
    try:
        async with asyncio.timeout(WAIT_MAX_S):
            return InitProducerIdResponse(producer_id=await producer_ids.next(), producer_epoch=0)
    except (NoProducerIds, TimeoutError) as error:
        logger.warning("no producer id given error=%s", str(error) or "the controller did not answer in time")
    # As Kafka says while it waits for a block of ids: all clients ask again.
    return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=_NO_ID, producer_epoch=_NO_EPOCH)


def refuse(body: InitProducerIdRequest, version: int, code: ErrorCode) -> object:
    return _refused(code)


API = Api(ApiKey.INIT_PRODUCER_ID, versions=range(6), handle=handle, refuse=refuse)
