"""Calls from handlers to the coordinator of a transactional id, which may need a new producer id."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo
from barnabas.coordinators.txn.errors import NeedsProducerId
from barnabas.coordinators.txn.shard import TxnShard
from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.coordination.producer_ids import NoProducerIds
from barnabas.server.coordination.shard_calls import RefuseWith, ask_shard
from barnabas.server.requests.api import Answer, Context, Later

logger = logging.getLogger(__name__)

Act: TypeAlias = Callable[[TxnShard, ReplyTo, Now], Outcome]
ActWithId: TypeAlias = Callable[[TxnShard, int | None, ReplyTo, Now], Outcome]

# How long a client waits while the controller allocates ids. After that the client must retry.
_WAIT_MAX_S: Final = 5.0


def ask_coordinator(ctx: Context, transactional_id: str, refuse: RefuseWith, act: Act) -> Answer:
    """Return the answer of the shard of a transactional id."""
    return ask_shard(ctx.broker.transactions.host_of, transactional_id, refuse, act)


def ask_with_new_id(ctx: Context, transactional_id: str, refuse: RefuseWith, act: ActWithId) -> Answer:
    """The same for a decision that may need a new producer id: then it is repeated with one."""
    wanting = []

    def try_without(shard: TxnShard, to: ReplyTo, now: Now) -> Outcome:
        try:
            return act(shard, None, to, now)
        except NeedsProducerId:
            wanting.append(True)
            return Outcome()

    answer = ask_coordinator(ctx, transactional_id, refuse, try_without)
    return _ask_again(ctx, transactional_id, refuse, act) if wanting else answer


async def _ask_again(ctx: Context, transactional_id: str, refuse: RefuseWith, act: ActWithId) -> object:
    try:
        async with asyncio.timeout(_WAIT_MAX_S):
            new_id = await ctx.broker.producer_ids.next()
    except (NoProducerIds, TimeoutError) as error:
        logger.warning("producer id allocation failed error=%s", str(error) or "request timed out")
        return refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return ask_coordinator(ctx, transactional_id, refuse, lambda shard, to, now: act(shard, new_id, to, now))


async def when_given(answer: Answer) -> object:
    """Wait for an answer that may be deferred."""
    if not isinstance(answer, Later):
        return answer
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    answer.then_call(lambda given: None if future.done() else future.set_result(given))
    return await future
