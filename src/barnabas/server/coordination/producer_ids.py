"""Producer ids for this broker's clients, allocated by the controller in blocks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import AllocateProducerIdsRequest, AllocateProducerIdsResponse


class NoProducerIds(BarnabasError):
    """The controller allocated no block; retry later."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(f"the controller allocated no producer ids: {code.name}")
        self.code: Final = code


class ProducerIds:
    """Hands out the ids of the last block. Ids that are left at a restart are never used."""

    def __init__(self, ask: Callable[[AllocateProducerIdsRequest], Awaitable[object]], node_id: int) -> None:
        self._ask = ask
        self._node_id = node_id
        self._block = iter(range(0))
        self._asking = asyncio.Lock()
        # The epoch of this broker's registration, set by broker.py.
        self.broker_epoch = -1

    async def next(self) -> int:
        """Return an id that is unique in the cluster. NoProducerIds if the controller allocates none."""
        async with self._asking:
            for producer_id in self._block:
                return producer_id
            answer = await self._ask(
                AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self.broker_epoch)
            )
            assert isinstance(answer, AllocateProducerIdsResponse)
            if answer.error_code != ErrorCode.NONE:
                raise NoProducerIds(ErrorCode(answer.error_code))
            start = answer.producer_id_start
            self._block = iter(range(start, start + answer.producer_id_len))
            return next(self._block)
