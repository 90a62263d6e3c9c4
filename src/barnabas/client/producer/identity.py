"""The producer id: requested on first use, and again when the current one can no longer be used.

Any broker assigns one. Without a transactional id it is always a new id. Kafka's client bumps its epoch
locally instead, to the same effect.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from barnabas.base.tasks import Tasks
from barnabas.client.cluster import Cluster
from barnabas.client.deadline import Backoff, Deadline
from barnabas.client.errors import ClientError, is_retriable, refused
from barnabas.client.producer.stamp import Identity
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import InitProducerIdRequest

# Kafka's client gives this where there is no transaction to time out.
_NO_TIMEOUT_MS: Final = 0x7FFFFFFF


class IdentityKeeper:
    def __init__(
        self,
        cluster: Cluster,
        tasks: Tasks,
        backoff: Backoff,
        *,
        on_new: Callable[[], None],
        on_error: Callable[[ClientError], bool],
    ) -> None:
        self.current: Identity | None = None
        self._cluster = cluster
        self._tasks = tasks
        self._backoff = backoff
        self._on_new = on_new
        # Called when a request failed. Returns False if no batch waits for the id any more.
        self._on_error = on_error
        self._asking = False

    def want(self, instead_of: Identity | None) -> None:
        """Request a new id unless the current one already differs from `instead_of`."""
        if not self._asking and self.current == instead_of:
            self._asking = True
            self._tasks.start(self._ask())

    async def _ask(self) -> None:
        failures = 0
        try:
            while True:
                try:
                    self.current = await self._try()
                    break
                except ClientError as error:
                    failures += 1
                    if not self._on_error(error) or not is_retriable(error):
                        return
                await asyncio.sleep(self._backoff.wait_ms(failures) / 1000)
        finally:
            self._asking = False
        self._on_new()

    async def _try(self) -> Identity:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        # One attempt at a time, so that waiting batches learn each error.
        limit_ms = self._cluster.settings.request_timeout_ms
        answer = await self._cluster.ask(request, deadline=Deadline(limit_ms), timeout_ms=limit_ms)
        if answer.error_code != ErrorCode.NONE:
            raise refused(answer.error_code, about="producer id")
        return Identity(answer.producer_id, answer.producer_epoch)
