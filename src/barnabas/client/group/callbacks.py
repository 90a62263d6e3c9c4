"""Rebalance callbacks of the user."""

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.consumer.core import Core
from barnabas.client.errors import ClientError

logger = logging.getLogger(__name__)

# Sync or async.
Callback: TypeAlias = Callable[[frozenset[TopicPartition]], Awaitable[None] | None]


class CallbackFailed(ClientError):
    """A rebalance callback raised `__cause__`. The rebalance continued; the reader raises this once."""

    def __init__(self, which: str, error: Exception) -> None:
        super().__init__(f"{which} raised {error!r}")
        self.which = which
        self.__cause__ = error


@value(kw_only=True)
class Callbacks:
    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    # Without on_lost, lost partitions are passed to on_revoked, as in Kafka's consumer.
    on_lost: Callback | None = None

    async def assigned(self, core: Core, tps: frozenset[TopicPartition]) -> None:
        await _call(core, "on_assigned", self.on_assigned, tps)

    async def revoked(self, core: Core, tps: frozenset[TopicPartition]) -> None:
        await _call(core, "on_revoked", self.on_revoked, tps)

    async def lost(self, core: Core, tps: frozenset[TopicPartition]) -> None:
        if self.on_lost is None:
            await self.revoked(core, tps)
        else:
            await _call(core, "on_lost", self.on_lost, tps)


async def _call(core: Core, which: str, callback: Callback | None, tps: frozenset[TopicPartition]) -> None:
    if callback is None:
        return
    try:
        async with core.gate.calling():
            result = callback(tps)
            if inspect.isawaitable(result):
                await result
    except Exception as error:
        # Errors of user code must not block the group.
        logger.warning("rebalance callback failed callback=%s error=%r", which, error)
        core.complain(CallbackFailed(which, error))
