"""Who connects while the loop is busy does not wait for one turn after another."""

import asyncio
import socket

import pytest

from barnabas.server.network.accepting import Accepting

pytestmark = pytest.mark.kernel

CLIENTS = 60
TURNS_MAX = 10


class Seen(asyncio.Protocol):
    count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Seen.count += 1
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        Seen.count -= 1


def test_all_who_wait_are_let_in_within_a_few_turns() -> None:
    uvloop = pytest.importorskip("uvloop", reason="asyncio's own loop takes the whole backlog by itself")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(turns_until_all_are_in()) <= TURNS_MAX


async def turns_until_all_are_in() -> int:
    Seen.count = 0
    loop = asyncio.get_running_loop()
    crashes: list[BaseException] = []
    accepting: Accepting | None = None

    def accepted() -> Seen:
        assert accepting is not None
        accepting.one_came()
        return Seen()

    server = await loop.create_server(accepted, "127.0.0.1", 0, backlog=CLIENTS)
    accepting = Accepting(loop, server.sockets, Seen, crashes.append)
    address = server.sockets[0].getsockname()
    clients = []
    for _ in range(CLIENTS):
        # The loop does not run meanwhile: all of them wait in the backlog.
        clients.append(socket.create_connection(address, timeout=5))
    turns = 0
    while Seen.count < CLIENTS and turns < 4 * CLIENTS:
        turns += 1
        await asyncio.sleep(0)
    for client in clients:
        client.close()
    server.close()
    await accepting.close()
    await server.wait_closed()
    async with asyncio.timeout(10):
        while Seen.count:
            await asyncio.sleep(0.001)
    assert crashes == []
    return turns
