"""The limit of request bytes: which connections are read, in which order, and which are closed."""

import asyncio

import pytest

from barnabas.server.network.request_bytes import (
    MEMORY_SHARE,
    READ_BYTES,
    RequestBytes,
    limit_of,
)
from barnabas.sim.world import World, run_sim

pytestmark = pytest.mark.kernel

LIMIT = 4 * READ_BYTES
REQUEST_MAX = 100 << 20


class Client:
    """A connection that receives a large frame."""

    def __init__(self, held: RequestBytes, *, is_slow: bool = False) -> None:
        self.held = held
        self.is_slow = is_slow
        self.bytes = 0
        self.waiting = 0
        self.reads = True
        self.evicted = ""

    def receive(self, size: int) -> None:
        assert self.reads
        self.bytes += size
        self.held.unfinished += size
        self.reads = self.held.may_read(self)

    def complete(self) -> None:
        self.held.unfinished -= self.bytes
        self.bytes = 0
        self.held.finished(self)

    # What RequestBytes asks of a connection

    def resume_reading(self) -> None:
        self.reads = True

    def is_too_slow(self) -> bool:
        return self.is_slow and self.bytes > 0 and self.reads

    def bytes_held_since(self, age_ns: int) -> int:
        return self.waiting

    def evict(self, why: str) -> None:
        self.evicted = why
        self.held.waiting -= self.waiting
        if self.held.is_short:
            self.held.released()
        self.complete()


def held_by(*clients: Client) -> int:
    return sum(client.bytes for client in clients)


def test_below_the_limit_all_connections_are_read() -> None:
    async def story(_world: World) -> None:
        held = RequestBytes(LIMIT)
        clients = [Client(held) for _ in range(3)]

        for client in clients:
            client.receive(READ_BYTES)

        assert all(client.reads for client in clients)
        assert held.used == held_by(*clients)

    run_sim(story)


def test_at_the_limit_one_connection_continues_and_the_others_follow_in_order() -> None:
    async def story(_world: World) -> None:
        held = RequestBytes(LIMIT)
        clients = [Client(held) for _ in range(6)]
        for client in clients:
            client.receive(READ_BYTES)
        assert [client.reads for client in clients] == [True, True, True, True, False, False]
        assert held.paused == 2

        # The fourth was the first at the limit: it may go past it.
        clients[3].receive(READ_BYTES)
        assert clients[3].reads
        clients[0].receive(1)
        assert not clients[0].reads
        clients[3].complete()
        await asyncio.sleep(0)

        # The limit is still reached. The fifth has waited for the longest, and goes on alone.
        assert [client.reads for client in clients] == [False, True, True, True, True, False]
        for client in clients[1:5]:
            client.complete()
        await asyncio.sleep(0)
        assert all(client.reads for client in clients)

    run_sim(story)


def test_every_large_request_is_completed_in_the_end() -> None:
    async def story(_world: World) -> None:
        held = RequestBytes(LIMIT)
        clients = [Client(held) for _ in range(20)]
        done: list[Client] = []
        for _ in range(10_000):
            for client in clients:
                if client not in done and client.reads:
                    client.receive(READ_BYTES)
                    if client.bytes >= LIMIT:
                        client.complete()
                        done.append(client)
            assert held.used <= LIMIT + LIMIT + len(clients) * READ_BYTES
            await asyncio.sleep(0)
            if len(done) == len(clients):
                break

        assert len(done) == len(clients)
        assert held.used == 0
        assert held.paused == 0

    run_sim(story)


def test_stalled_connections_are_closed_while_others_wait() -> None:
    async def story(_world: World) -> None:
        held = RequestBytes(LIMIT)
        slow = [Client(held, is_slow=True) for _ in range(4)]
        held.watch(slow)
        for client in slow:
            client.receive(READ_BYTES)
        await asyncio.sleep(60)
        # Nobody needs the room.
        assert not any(client.evicted for client in slow)

        honest = Client(held)
        honest.receive(READ_BYTES)
        assert not honest.reads
        await asyncio.sleep(2)

        assert honest.reads
        assert all(client.evicted for client in slow)
        assert held.evicted == len(slow)

    run_sim(story)


def test_the_largest_of_the_requests_that_wait_too_long_are_dropped() -> None:
    async def story(_world: World) -> None:
        held = RequestBytes(LIMIT)
        clients = [Client(held) for _ in range(10)]
        held.watch(clients)
        for number, client in enumerate(clients):
            client.waiting = (1 + number) * LIMIT // 20
            held.waiting += client.waiting
        held.limit_reached()
        assert held.is_full
        await asyncio.sleep(2)

        # Half of the limit is free of them, and those that hold little stay.
        assert [bool(client.evicted) for client in clients] == [number >= 4 for number in range(10)]
        assert not held.is_full
        assert held.waiting <= LIMIT // 2

    run_sim(story)


def test_the_limit_is_a_share_of_the_memory_and_holds_one_request_at_least() -> None:
    assert limit_of(-1, REQUEST_MAX, 64 << 30) == (64 << 30) // MEMORY_SHARE
    assert limit_of(-1, REQUEST_MAX, 256 << 20) == REQUEST_MAX
    assert limit_of(0, REQUEST_MAX, 64 << 30) == (64 << 30) // MEMORY_SHARE
    assert limit_of(2 * REQUEST_MAX, REQUEST_MAX, 256 << 20) == 2 * REQUEST_MAX
