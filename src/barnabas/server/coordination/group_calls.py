"""How a handler asks the coordinator of a group."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from barnabas.coordinators.decision.errors import Refused
from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo
from barnabas.coordinators.group.shard import GroupShard
from barnabas.protocol.exchange import Request
from barnabas.server.coordination.shard_calls import RefuseWith, ask_host
from barnabas.server.requests.api import Answer, Context

Act: TypeAlias = Callable[[GroupShard, ReplyTo, Now], Outcome]
_CONSUMER: Final = "consumer"


def has_consumer_protocol(ctx: Context) -> bool:
    """Whether groups of KIP-848 may be on this broker."""
    return _CONSUMER in ctx.broker.settings.now.group_coordinator_rebalance_protocols


def caller_of(ctx: Context, request: Request) -> Caller:
    """What groups write down of whoever asks."""
    return Caller(request.client_id or "", ctx.client_host, request.version)


def ask_group(
    ctx: Context, group_id: str, refuse: RefuseWith, act: Act, *, fit: Callable[[Any], object] | None = None
) -> Answer:
    """The answer of a group's shard: see ask_shard()."""
    # Written out, because every commit comes by here.
    try:
        host = ctx.broker.groups.host_of(group_id)
    except Refused as error:
        return refuse(error.code)
    return ask_host(host, refuse, act, fit)
