"""The connections of a client: one a node and lane, opened when first needed.

A lane is for requests that must not wait behind others: brokers answer a connection in order, so whoever asks
for something behind a fetch that waits for records waits with it.
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

MAIN_LANE = ""
# Somebody may have been handed a connection and not used it yet, and a bootstrap server may be a node by
# another name.
UNWANTED_S = 10.0


class _Failures:
    """How often a node was not reached in a row, and until when it is left alone."""

    __slots__ = ("count", "until")

    def __init__(self) -> None:
        self.count = 0
        self.until = 0.0


class Nodes:
    """Keyed by host, port and lane, so a node that came back elsewhere gets a new connection."""

    def __init__(self, settings: ClientSettings, rng: Random) -> None:
        self._settings = settings
        self._backoff = Backoff(
            first_ms=settings.reconnect_backoff_ms, max_ms=settings.reconnect_backoff_max_ms, rng=rng
        )
        self._open: dict[tuple[str, int, str], Connection] = {}
        self._failures: dict[tuple[str, int], _Failures] = {}
        self._opening = SharedWork()

    def ready(self, lane: str = MAIN_LANE) -> Iterator[Connection]:
        """Those that are open."""
        for (_, _, each), connection in self._open.items():
            if each == lane and not connection.closed:
                yield connection

    async def connect(self, host: str, port: int, lane: str = MAIN_LANE) -> Connection:
        """The connection, opened if need be; after a failure not before the backoff is over."""
        key = (host, port, lane)
        connection = self._open.get(key)
        if connection is not None and not connection.closed:
            return connection
        return await self._opening.join(key, lambda: self._connect(host, port, lane))

    async def _connect(self, host: str, port: int, lane: str) -> Connection:
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
        self._open[host, port, lane] = connection
        return connection

    def keep_only(self, nodes: Iterable[Node]) -> None:
        """Drop the connections to nodes that are no more, once they are not used."""
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
