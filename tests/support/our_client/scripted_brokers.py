"""Brokers of a script: each answers what a test has it answer, in the versions that the test lets it speak.

For what one good broker never says: that a leader has moved, that it is no controller, that it is older than
we are. They stand in the simulated world, where real brokers stand too.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.exchange import Request, decode_request, response_parts
from barnabas.protocol.messages.cluster import (
    ApiVersion,
    ApiVersionsResponse,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from support.our_client.peers import PORT, listening, next_frame

# What a broker says to a request: a body, or None to hang up.
Says = Callable[[Any], object | None]


class ScriptedBroker:
    """`asked` holds every request but ApiVersions, in order."""

    def __init__(
        self, node_id: int = 1, *, says: Mapping[ApiKey, Says], newest: Mapping[ApiKey, int] | None = None
    ) -> None:
        self.node_id = node_id
        self.port = PORT + node_id - 1
        self.asked: list[Request] = []
        self._says = says
        self._newest = newest or {}

    def asked_for(self, key: ApiKey) -> list[Any]:
        return [request.body for request in self.asked if request.api.key is key]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = decode_request(await next_frame(reader))
            key = request.api.key
            if key is ApiKey.API_VERSIONS:
                body: object | None = self._versions()
            else:
                self.asked.append(request)
                body = self._says[key](request.body)
            if body is None:
                return
            writer.writelines(
                response_parts(body, request.version, key=key, correlation_id=request.correlation_id)
            )

    def _versions(self) -> ApiVersionsResponse:
        rows = [
            ApiVersion(
                api_key=key,
                min_version=api(key).versions.first,
                max_version=self._newest.get(key, api(key).versions.last),
            )
            for key in (*self._says, ApiKey.API_VERSIONS)
        ]
        return ApiVersionsResponse(error_code=0, api_keys=rows)


@asynccontextmanager
async def listening_all(*brokers: ScriptedBroker) -> AsyncIterator[None]:
    if not brokers:
        yield
        return
    async with listening(brokers[0].serve, brokers[0].port), listening_all(*brokers[1:]):
        yield


def metadata_of(
    leaders: Mapping[str, list[int]], *, brokers: tuple[int, ...] = (1,)
) -> Callable[[Any], MetadataResponse]:
    """Metadata with these topics: who leads each partition. It is looked at anew for every request."""

    def say(request: Any) -> MetadataResponse:
        asked = [topic.name for topic in request.topics] if request.topics is not None else list(leaders)
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=each, host="127.0.0.1", port=PORT + each - 1)
                for each in brokers
            ],
            cluster_id="c",
            controller_id=brokers[0],
            topics=[_topic(name, leaders.get(name)) for name in asked],
        )

    return say


def _topic(name: str, leaders: list[int] | None) -> MetadataResponseTopic:
    if leaders is None:
        return MetadataResponseTopic(error_code=3, name=name)
    rows = [
        MetadataResponsePartition(
            error_code=0 if leader >= 0 else 5,
            partition_index=number,
            leader_id=leader,
            leader_epoch=0,
            replica_nodes=[1],
            isr_nodes=[1],
        )
        for number, leader in enumerate(leaders)
    ]
    return MetadataResponseTopic(error_code=0, name=name, partitions=rows)
