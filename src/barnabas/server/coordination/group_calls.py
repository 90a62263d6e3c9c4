"""Calls from handlers to the coordinator of a group."""

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
    """Whether this broker supports consumer groups of KIP-848."""
    return _CONSUMER in ctx.broker.settings.now.group_coordinator_rebalance_protocols


def caller_of(ctx: Context, request: Request) -> Caller:
    """The client's data that groups store: client id, host and request version."""
    return Caller(request.client_id or "", ctx.client_host, request.version)


def ask_group(
    ctx: Context, group_id: str, refuse: RefuseWith, act: Act, *, fit: Callable[[Any], object] | None = None
) -> Answer:
    """Return the answer of a group's shard: see ask_shard()."""
    # Repeats ask_shard() for speed: every offset commit passes here.
    try:
        host = ctx.broker.groups.host_of(group_id)
    except Refused as error:
        return refuse(error.code)
    return ask_host(host, refuse, act, fit)
