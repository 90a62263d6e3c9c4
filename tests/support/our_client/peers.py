"""Peers of a client in the simulated world that are no good brokers, and clients with that world's ports."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.client.ports import ClientPorts
from barnabas.client.settings import ClientSettings, parse_settings_of
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.exchange import decode_request, response_parts
from barnabas.protocol.messages.cluster import ApiVersion, ApiVersionsResponse
from barnabas.sim.world import World

PORT = 9092
ADDRESS = f"127.0.0.1:{PORT}"

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def in_world(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a test of a story in a world of its own; parameters after the world are pytest's."""

    def test(**given: object) -> None:
        with World(1) as world:
            world.run(story(world, **given))

    signature = inspect.signature(story)
    test.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=list(signature.parameters.values())[1:]
    )
    test.__name__, test.__doc__ = story.__name__, story.__doc__
    return test


def ports_of(world: World, name: str = "client") -> ClientPorts:
    return ClientPorts(clock=world.clock, rng=world.dice(name))


def settings_of(**named: object) -> ClientSettings:
    return parse_settings_of(ClientSettings, {"bootstrap.servers": ADDRESS}, named)


@asynccontextmanager
async def started(world: World, **named: object) -> AsyncIterator[Cluster]:
    cluster = Cluster(settings_of(**named), ports_of(world))
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.close()


@asynccontextmanager
async def listening(peer: Peer, port: int = PORT) -> AsyncIterator[None]:
    """A peer that does as it pleases with each connection, which is closed when it is done."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await peer(reader, writer)
        except (asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def next_frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, newest: bool = True) -> None:
    """Answer ApiVersions as a broker that speaks every API in all of our versions, or in the oldest."""
    asked = decode_request(await next_frame(reader))
    rows = [
        ApiVersion(
            api_key=key, min_version=api(key).versions.first, max_version=getattr(api(key).versions, which)
        )
        for key in ApiKey
        for which in ("last" if newest else "first",)
    ]
    writer.writelines(
        response_parts(
            ApiVersionsResponse(error_code=0, api_keys=rows),
            asked.version,
            key=ApiKey.API_VERSIONS,
            correlation_id=asked.correlation_id,
        )
    )
