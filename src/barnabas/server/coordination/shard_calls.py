"""Calls from handlers to a coordinator: find the shard, run a decision, wait for its answer."""

from collections.abc import Callable
from typing import Any, TypeAlias

from barnabas.coordinators.decision.errors import Refused
from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo
from barnabas.coordinators.runtime.host import ShardHost
from barnabas.coordinators.runtime.ports import AnyShard
from barnabas.coordinators.runtime.reply import Answered, Reply
from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.requests.api import Answer, Later

# Builds a response that consists of an error code.
RefuseWith: TypeAlias = Callable[[ErrorCode], object]


def ask_shard(
    host_of: Callable[[str], ShardHost[AnyShard]],
    name: str,
    refuse: RefuseWith,
    act: Callable[[AnyShard, ReplyTo, Now], Outcome],
    *,
    fit: Callable[[Any], object] | None = None,
) -> Answer:
    """Return the answer of the shard of `name`, now or deferred, or `refuse(code)` if the shard is not here.

    `fit` adapts an answer to the request's version.
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
    """The same for a shard that has been found."""
    reply = Reply(refuse)
    shard = host.shard
    host.do(lambda now: act(shard, reply, now))
    return answer_of(reply, fit)


def answer_of(reply: Answered, fit: Callable[[Any], object] | None = None) -> Answer:
    """Return the answer of a reply if it has been given, otherwise a Later for it."""
    if reply.is_given:
        return reply.answer if fit is None else fit(reply.answer)
    later = Later()
    reply.then_call(later.finish if fit is None else lambda answer: later.finish(fit(answer)))
    return later
