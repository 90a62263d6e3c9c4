"""A simulated client of a quorum: it appends unique values, one after another, to whoever leads."""

import asyncio
from random import Random
from typing import Final

from barnabas.sim.history import History
from barnabas.sim.node import Node
from barnabas.sim.quorum.transport import Connections, NoAnswer

# Few keys, so that a snapshot is small and its content depends on the order.
KEYS: Final = 8
# A value may take this long, in some runs, to make the values span several fetches.
PADDING: Final = 400


class AppendingClient:
    """The program of a client. It stops at `stop`, or when its node is killed."""

    def __init__(self, history: History, servers: list[str], *, pause_ms: int) -> None:
        self.acknowledged = 0
        self.stop = False
        self._history: Final = history
        self._servers: Final = servers
        self._pause_ms: Final = pause_ms

    async def __call__(self, node: Node) -> None:
        rng = node.dice("client")
        connections = Connections(timeout_s=1.0)
        try:
            await self._append_until_stopped(node.name, rng, connections)
        finally:
            connections.close()

    async def _append_until_stopped(self, name: str, rng: Random, connections: Connections) -> None:
        number, server = 0, rng.choice(self._servers)
        while not self.stop:
            number += 1
            key = f"k{rng.randrange(KEYS)}"
            value = f"{name}-{number}-" + "x" * (rng.randrange(PADDING) if rng.random() < 0.2 else 0)
            row = self._history.invoke(name, "append", key=key, value=value, server=server)
            try:
                outcome, offset = await connections.ask(server, "append", (key, value))
            except NoAnswer:
                outcome, offset = "info", -1
            self._history.complete(row, outcome, offset=offset)
            if outcome == "ok":
                self.acknowledged += 1
            else:
                # Another node may lead.
                server = rng.choice(self._servers)
            await asyncio.sleep(rng.uniform(0, 2 * self._pause_ms) / 1000)
