"""A new connection is accepted within a few loop iterations, or waits, or is closed."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from barnabas.base.clock import SystemClock
from barnabas.server.network.acceptor import Acceptor
from barnabas.server.network.admission import Admission, ConnectionLimits

pytestmark = pytest.mark.kernel

CLIENTS = 60
TURNS_MAX = 10
LOOPS = pytest.mark.parametrize(
    "factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


class Visitor(asyncio.Protocol):
    """A connection and its protocol in one."""

    is_made = False

    def __init__(self, room: "Room", host: str) -> None:
        self.room = room
        self.host = host

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.is_made = True
        self.transport: Any = transport
        self.room.inside.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.room.inside.remove(self)
        self.room.admission.leave(self.host)


class Room:
    """One listener and its open connections."""

    def __init__(self, **limits: Any) -> None:
        chosen = {"connections_max": 1000, "per_host_max": 1000, "per_host_overrides": {}, "idle_ms": -1}
        self.clock = SystemClock()
        self.admission = Admission(ConnectionLimits(**{**chosen, **limits}))
        self.inside: list[Visitor] = []
        self.refused: list[str] = []
        self.crashes: list[BaseException] = []
        self.clients: list[socket.socket] = []
        listening = socket.create_server(("127.0.0.1", 0), backlog=CLIENTS)
        listening.setblocking(False)
        self.address = listening.getsockname()
        self.accepting = Acceptor(
            asyncio.get_running_loop(), [listening], self, self._make, self.crashes.append
        )
        self.accepting.start(CLIENTS)

    def _make(self, _sock: socket.socket, host: str, _peer: str) -> tuple[Visitor, Visitor]:
        visitor = Visitor(self, host)
        return visitor, visitor

    def enter(self, host: str, peer: str) -> bool:
        why = self.admission.enter(host)
        if why is not None:
            self.refuse(peer, why)
        return why is None

    def refuse(self, peer: str, why: str) -> None:
        self.refused.append(why)

    def connect(self, count: int) -> None:
        """Connect while the loop does not run, so that all clients wait in the backlog."""
        self.clients += [socket.create_connection(self.address, timeout=5) for _ in range(count)]

    async def holds(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.inside) != count:
                await asyncio.sleep(0.001)

    async def close(self) -> None:
        for client in self.clients:
            client.close()
        await self.accepting.close()
        await self.holds(0)
        assert self.crashes == []
        assert self.admission.admitted.count == 0


@asynccontextmanager
async def room(**limits: Any) -> AsyncIterator[Room]:
    made = Room(**limits)
    try:
        yield made
    finally:
        await made.close()


def run(factory: Callable[[], Any], story: Any) -> None:
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(story)


@LOOPS
def test_all_waiting_clients_are_accepted_within_a_few_loop_iterations(factory: Callable[[], Any]) -> None:
    async def story() -> None:
        async with room() as here:
            here.connect(CLIENTS)
            turns = 0
            while len(here.inside) < CLIENTS and turns < 4 * CLIENTS:
                turns += 1
                await asyncio.sleep(0)
            assert turns <= TURNS_MAX

    run(factory, story())


@LOOPS
def test_at_the_limit_a_client_waits_until_another_disconnects(factory: Callable[[], Any]) -> None:
    async def story() -> None:
        async with room(connections_max=3) as here:
            here.connect(5)
            await here.holds(3)
            await asyncio.sleep(0.05)
            assert len(here.inside) == 3
            assert here.admission.waits == 1

            here.inside[0].transport.abort()
            here.inside[1].transport.abort()
            await asyncio.sleep(0.05)
            assert len(here.inside) == 3
            assert here.refused == []

    run(factory, story())


@LOOPS
def test_a_client_above_the_rate_delays_those_behind_it(factory: Callable[[], Any]) -> None:
    async def story() -> None:
        async with room(rate_max=2) as here:
            here.connect(24)
            await here.holds(20)
            await asyncio.sleep(0.05)
            assert len(here.inside) == 20
            # One after half a second, and one after another.
            await here.holds(22)
            assert here.refused == []

    run(factory, story())


@LOOPS
def test_a_client_above_the_limit_per_address_is_closed_at_once(factory: Callable[[], Any]) -> None:
    async def story() -> None:
        async with room(per_host_max=2) as here:
            here.connect(4)
            await here.holds(2)
            for client in here.clients[2:]:
                client.settimeout(5)
                assert await asyncio.get_running_loop().run_in_executor(None, client.recv, 1) == b""
            assert here.refused == ["too many connections from this address"] * 2

    run(factory, story())


@LOOPS
def test_stop_closes_a_delayed_client(factory: Callable[[], Any]) -> None:
    async def story() -> None:
        async with room(rate_max=1) as here:
            here.connect(12)
            await here.holds(10)

    run(factory, story())
