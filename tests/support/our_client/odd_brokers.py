"""Scripted brokers that say odd things of the cluster or of batches, or do not listen at all."""

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.protocol.messages.cluster import MetadataResponse
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from support.our_client.worlds import ScriptedBrokers

_FOR_EVER_S = 3600


class OddBrokers(ScriptedBrokers):
    """As the scripted ones, but a test may change what they say of the cluster."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.edit: Callable[[MetadataResponse], object] = lambda answer: None

    def _metadata(self, body: Any) -> MetadataResponse:
        answer = super()._metadata(body)
        self.edit(answer)
        return answer


class Rows(OddBrokers):
    """A test may change the rows of every answer to a produce request."""

    edit_rows: Callable[[list[PartitionProduceResponse]], object]

    async def _produce(self, node: int, request: Any) -> ProduceResponse:
        answer = await super()._produce(node, request)
        for topic in answer.responses:
            self.edit_rows(topic.partition_responses)
        return answer


class DeafBrokers(OddBrokers):
    """Connections on which something is produced are not read from any more, as long as they are deaf."""

    deaf = True

    async def _produce(self, node: int, request: Any) -> ProduceResponse:
        if self.deaf:
            await asyncio.sleep(_FOR_EVER_S)
        return await super()._produce(node, request)
