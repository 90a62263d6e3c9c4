"""Calls from handlers to coordinators: let a shard decide, and return its answer or a Later for it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, PendingReply, Reply, ReplyTo
from barnabas.coordinators.runtime.host import ShardHost
from barnabas.coordinators.runtime.ports import AnyShard
from barnabas.coordinators.txn.answers import NEEDS_PRODUCER_ID
from barnabas.coordinators.txn.shard import TxnShard
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.server.coordination.producer_ids import NoProducerIds
from barnabas.server.requests.api import Answer, Context, Later

logger = logging.getLogger(__name__)

# Builds a response that consists of an error code.
RefuseWith: TypeAlias = Callable[[ErrorCode], object]
ActWithId: TypeAlias = Callable[[TxnShard, int | None, ReplyTo, Now], Outcome]

_CONSUMER: Final = "consumer"
# How long a client waits while the controller allocates producer ids. After that the client must retry.
_WAIT_MAX_S: Final = 5.0


def ask_shard(
    host: ShardHost[AnyShard] | ErrorCode,
    refuse: RefuseWith,
    act: Callable[[AnyShard, ReplyTo, Now], Outcome],
    *,
    fit: Callable[[Any], object] | None = None,
) -> Answer:
    """Return the answer of a shard, now or deferred, or `refuse(code)` if the look-up found no active one.

    `fit` adapts an answer to the request's version.
    """
    if not isinstance(host, ShardHost):
        return refuse(host)
    reply = Reply(refuse)
    host.ask(act, reply)
    return answer_of(reply, fit)


def answer_of(reply: PendingReply, fit: Callable[[Any], object] | None = None) -> Answer:
    """Return the answer of a reply if it has been given, otherwise a Later for it."""
    if reply.is_given:
        return reply.answer if fit is None else fit(reply.answer)
    later = Later()
    reply.then_call(later.finish if fit is None else lambda answer: later.finish(fit(answer)))
    return later


async def when_given(answer: Answer) -> object:
    """Wait for an answer that may be deferred."""
    if not isinstance(answer, Later):
        return answer
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    answer.then_call(lambda given: None if future.done() else future.set_result(given))
    return await future


# Groups


def has_consumer_protocol(ctx: Context) -> bool:
    """Whether this broker supports consumer groups of KIP-848."""
    return _CONSUMER in ctx.broker.settings.now.group_coordinator_rebalance_protocols


def caller_of(ctx: Context, request: Request) -> Caller:
    """The client's data that groups store: client id, host and request version."""
    return Caller(request.client_id or "", ctx.client_host, request.version)


# Transactions


def ask_with_new_id(ctx: Context, transactional_id: str, refuse: RefuseWith, act: ActWithId) -> Answer:
    """ask_shard() for a decision that may need a new producer id: then it is repeated with one."""
    host = ctx.broker.transactions.host_of(transactional_id)
    if not isinstance(host, ShardHost):
        return refuse(host)
    reply = Reply(refuse)
    outcome = host.ask(lambda shard, to, now: act(shard, None, to, now), reply)
    if outcome is NEEDS_PRODUCER_ID:
        return _ask_again(ctx, transactional_id, refuse, act)
    return answer_of(reply)


async def _ask_again(ctx: Context, transactional_id: str, refuse: RefuseWith, act: ActWithId) -> object:
    try:
        async with asyncio.timeout(_WAIT_MAX_S):
            new_id = await ctx.broker.producer_ids.next()
    except (NoProducerIds, TimeoutError) as error:
        logger.warning("producer id allocation failed error=%s", str(error) or "request timed out")
        return refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    host = ctx.broker.transactions.host_of(transactional_id)
    return ask_shard(host, refuse, lambda shard, to, now: act(shard, new_id, to, now))
