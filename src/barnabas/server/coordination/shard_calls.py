"""How a handler asks a coordinator: find the shard, let it decide, wait if need be."""

from collections.abc import Callable
from typing import Any, TypeAlias

from barnabas.coordinators.decision.errors import Refused
from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo
from barnabas.coordinators.runtime.host import ShardHost
from barnabas.coordinators.runtime.ports import AnyShard
from barnabas.coordinators.runtime.reply import Answered, Reply
from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.requests.api import Answer
from barnabas.server.requests.later import Later

# The response that says nothing but that code.
RefuseWith: TypeAlias = Callable[[ErrorCode], object]


def ask_shard(
    host_of: Callable[[str], ShardHost[AnyShard]],
    name: str,
    refuse: RefuseWith,
    act: Callable[[AnyShard, ReplyTo, Now], Outcome],
    *,
    fit: Callable[[Any], object] | None = None,
) -> Answer:
    """The answer of the shard of `name`, now or later; what `refuse` makes of it if the shard is not here.

    `fit` makes an answer fit for the version that was spoken.
    """
    try:
        host = host_of(name)
    except Refused as error:
        return refuse(error.code)
    return ask_host(host, refuse, act, fit)


def ask_host(
    host: ShardHost[AnyShard],
    refuse: RefuseWith,
    act: Callable[[AnyShard, ReplyTo, Now], Outcome],
    fit: Callable[[Any], object] | None,
) -> Answer:
    """The same of a shard that has been found."""
    reply = Reply(refuse)
    shard = host.shard
    host.do(lambda now: act(shard, reply, now))
    return answer_of(reply, fit)


def answer_of(reply: Answered, fit: Callable[[Any], object] | None = None) -> Answer:
    """What has been given, or what will be."""
    if reply.is_given:
        return reply.answer if fit is None else fit(reply.answer)
    later = Later()
    reply.then_call(later.finish if fit is None else lambda answer: later.finish(fit(answer)))
    return later
