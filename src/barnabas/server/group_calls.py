"""How a handler asks the coordinator of a group: find its shard, let it decide, wait if need be."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from barnabas.coordinators.decision.errors import Refused
from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.reply import Reply
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.server.api import Answer, Context
from barnabas.server.later import Later

Act: TypeAlias = Callable[[GroupShard, ReplyTo, Now], Outcome]
# The response that says nothing but that code.
RefuseWith: TypeAlias = Callable[[ErrorCode], object]
_CONSUMER: Final = "consumer"


def has_consumer_protocol(ctx: Context) -> bool:
    """Whether groups of KIP-848 may be on this broker."""
    return _CONSUMER in ctx.broker.settings.now.group_coordinator_rebalance_protocols


def caller_of(ctx: Context, request: Request) -> Caller:
    """What groups write down of whoever asks. Java writes addresses with a slash in front."""
    return Caller(request.client_id or "", f"/{ctx.client_address}", request.version)


def ask_group(
    ctx: Context, group_id: str, refuse: RefuseWith, act: Act, *, fit: Callable[[Any], object] | None = None
) -> Answer:
    """The answer of a group's shard, now or later; what `refuse` makes of it if the shard is not here.

    `fit` makes an answer fit for the version that was spoken.
    """
    try:
        host = ctx.broker.groups.host_of(group_id)
    except Refused as error:
        return refuse(error.code)
    reply = Reply(refuse)
    shard = host.shard
    host.do(lambda now: act(shard, reply, now))
    if reply.is_given:
        return reply.answer if fit is None else fit(reply.answer)
    later = Later()
    reply.then_call(later.finish if fit is None else lambda answer: later.finish(fit(answer)))
    return later
