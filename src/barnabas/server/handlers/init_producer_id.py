"""InitProducerId (key 22), versions 0-5, and 6 with unstable.api.versions.enable.

Supported: a new producer id with epoch 0 for idempotent producers. With a transactional id, its coordinator
returns the producer id with a bumped epoch, which fences earlier producers.
v2 flexible; v3 producer_id, producer_epoch; v4 PRODUCER_FENCED; v5 TRANSACTION_ABORTABLE; v6 two-phase
commit, which is experimental (KIP-939).
"""

import asyncio
import logging
from functools import partial
from typing import Final

from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo
from barnabas.coordinators.txn.initializing import decide_init
from barnabas.coordinators.txn.shard import TxnShard
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from barnabas.server.coordination.calls import ask_with_new_id
from barnabas.server.coordination.producer_ids import NoProducerIds, ProducerIds
from barnabas.server.requests.api import Answer, Api, Context

logger = logging.getLogger(__name__)

_NO_ID: Final = -1
_NO_EPOCH: Final = -1
# How long a client waits while the controller allocates ids. After that it gets a retriable error.
WAIT_MAX_S: Final = 5.0


def handle(ctx: Context, request: Request) -> Answer:
    body: InitProducerIdRequest = request.body
    if (body.producer_id == _NO_ID) != (body.producer_epoch == _NO_EPOCH):
        return refuse(body, request.version, ErrorCode.INVALID_REQUEST)
    if body.transactional_id is None:
        return _next_id(ctx.broker.producer_ids)
    if not body.transactional_id:
        return refuse(body, request.version, ErrorCode.INVALID_REQUEST)
    timeout_ms_max = ctx.broker.settings.now.transaction_max_timeout_ms
    if (
        not (body.enable2_pc or body.keep_prepared_txn)
        and not 0 < body.transaction_timeout_ms <= timeout_ms_max
    ):
        # Checked before the coordinator is looked up: any coordinator would return the same error.
        return refuse(body, request.version, ErrorCode.INVALID_TRANSACTION_TIMEOUT)

    def act(shard: TxnShard, new_id: int | None, to: ReplyTo, now: Now) -> Outcome:
        return decide_init(shard.table, body, request.version, new_id, to, now)

    return ask_with_new_id(ctx, body.transactional_id, partial(refuse, body, request.version), act)


async def _next_id(producer_ids: ProducerIds) -> InitProducerIdResponse:
    try:
        async with asyncio.timeout(WAIT_MAX_S):
            return InitProducerIdResponse(producer_id=await producer_ids.next(), producer_epoch=0)
    except (NoProducerIds, TimeoutError) as error:
        logger.warning("no producer id available error=%s", str(error) or "controller request timed out")
        # Kafka's error while it waits for a block of ids: all clients retry.
    return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=_NO_ID, producer_epoch=_NO_EPOCH)


def refuse(body: InitProducerIdRequest, version: int, code: ErrorCode) -> object:
    return _refused(code)


API = Api(ApiKey.INIT_PRODUCER_ID, versions=range(6), handle=handle, refuse=refuse, with_unstable=range(7))
