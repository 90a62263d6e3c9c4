"""The connections of a client: one per node and channel, opened on first use.

Brokers respond in order on each connection, so a request behind a waiting fetch would wait with it. Requests
that wait at the broker therefore use a channel, a connection of their own.
"""

import asyncio
from collections.abc import Iterable, Iterator
from random import Random

from barnabas.client.connection import Connection, open_connection
from barnabas.client.deadline import Backoff
from barnabas.client.errors import ClientError
from barnabas.client.metadata import Node
from barnabas.client.settings import ClientSettings
from barnabas.client.shared import SharedWork

MAIN_CHANNEL = ""
# Idle time before a connection to an unknown address is closed: a caller may have got it without using it
# yet, and a bootstrap server may be a node under another name.
UNWANTED_S = 10.0


class _Failures:
    """Consecutive connection failures of a node, and the end of its backoff."""

    __slots__ = ("count", "until")

    def __init__(self) -> None:
        self.count = 0
        self.until = 0.0


class Nodes:
    """Keyed by host, port and channel, so a node with a new address gets a new connection."""

    def __init__(self, settings: ClientSettings, rng: Random) -> None:
        self._settings = settings
        self._backoff = Backoff(
            first_ms=settings.reconnect_backoff_ms, max_ms=settings.reconnect_backoff_max_ms, rng=rng
        )
        self._open: dict[tuple[str, int, str], Connection] = {}
        self._failures: dict[tuple[str, int], _Failures] = {}
        self._opening = SharedWork()

    def ready(self, channel: str = MAIN_CHANNEL) -> Iterator[Connection]:
        """Yield the open connections of a channel."""
        for (_, _, each), connection in self._open.items():
            if each == channel and not connection.closed:
                yield connection

    async def connect(self, host: str, port: int, channel: str = MAIN_CHANNEL) -> Connection:
        """Return a connection, opened if needed; after a failure, wait for the backoff first."""
        key = (host, port, channel)
        connection = self._open.get(key)
        if connection is not None and not connection.closed:
            return connection
        return await self._opening.join(key, lambda: self._connect(host, port, channel))

    async def _connect(self, host: str, port: int, channel: str) -> Connection:
        failures = self._failures.setdefault((host, port), _Failures())
        loop = asyncio.get_running_loop()
        if failures.until > loop.time():
            await asyncio.sleep(failures.until - loop.time())
        try:
            connection = await open_connection(host, port, self._settings)
        except ClientError:
            failures.count += 1
            failures.until = loop.time() + self._backoff.wait_ms(failures.count) / 1000
            raise
        self._failures.pop((host, port), None)
        self._open[host, port, channel] = connection
        return connection

    def keep_only(self, nodes: Iterable[Node]) -> None:
        """Close unused connections to nodes that have left the cluster."""
        wanted = {(node.host, node.port) for node in nodes}
        for key, connection in list(self._open.items()):
            if key[:2] not in wanted and connection.in_flight == 0 and connection.idle_s > UNWANTED_S:
                connection.drop("the node left the cluster")
            if connection.closed:
                del self._open[key]
        for place in [each for each in self._failures if each not in wanted]:
            del self._failures[place]

    async def close(self) -> None:
        await self._opening.close()
        opened, self._open = list(self._open.values()), {}
        await asyncio.gather(*(connection.close() for connection in opened))
