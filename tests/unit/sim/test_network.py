"""The simulated network connects named hosts, with faults that the test sets."""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.sim.errors import SimulationFailed, SimulationStuck
from barnabas.sim.stream import CAPACITY_BYTES, RESEND_FOR_S
from barnabas.sim.world import World, run_sim
from support.wire.socket_stories import LARGE, Echo, Recorder

PORT = 9092


def tell(story: Callable[[World], Any], *hosts: str, seed: int = 0, until_ms: float = 1e8) -> Any:
    with World(seed, hosts=hosts) as world:
        return world.run(story(world), until_ms=until_ms)


async def connect(world: World, client: Recorder, server: Recorder) -> asyncio.Server:
    """A connection from host a to host b."""
    listener = await world.loop.create_server(lambda: server, "b", PORT)
    with world.on("a"):
        await world.loop.create_connection(lambda: client, "b", PORT)
    await server.until("made")
    return listener


async def can_connect(world: World) -> bool:
    try:
        transport, _ = await world.loop.create_connection(Recorder, "b", PORT, family=socket.AF_INET)
    except ConnectionRefusedError:
        return False
    transport.close()
    return True


def test_a_port_is_chosen_and_both_sides_know_each_others_address() -> None:
    async def story(world: World) -> None:
        server, client = Recorder(), Recorder()
        async with await world.loop.create_server(
            lambda: server, "localhost", 0, family=socket.AF_INET
        ) as listener:
            host, port = listener.sockets[0].getsockname()
            await world.loop.create_connection(lambda: client, host, port)
            await server.until("made")
            assert listener.is_serving()
            assert host == "127.0.0.1"
            assert client.transport.get_extra_info("peername") == (host, port)
            assert server.transport.get_extra_info("sockname") == (host, port)
            name = client.transport.get_extra_info("sockname")
            assert server.transport.get_extra_info("peername") == name
            assert name[0] == host
            assert client.transport.get_extra_info("socket") is None
            client.transport.close()

    tell(story)


def test_addresses_look_like_those_of_their_family() -> None:
    async def story(world: World) -> None:
        server, client = Recorder(), Recorder()
        async with await world.loop.create_server(lambda: server, "::", PORT):
            await world.loop.create_connection(lambda: client, "::1", PORT)
            await server.until("made")
            assert server.transport.get_extra_info("peername") == ("::1", 32768, 0, 0)
            client.transport.close()
        # The wildcards of the two address families are independent.
        async with await world.loop.create_server(Recorder, "0.0.0.0", PORT):
            with pytest.raises(ConnectionRefusedError):
                await world.loop.create_connection(Recorder, "::1", PORT)
            found = await world.loop.getaddrinfo("localhost", PORT)
            assert [info[4] for info in found] == [("127.0.0.1", PORT), ("::1", PORT, 0, 0)]

    tell(story)


def test_hosts_have_ports_of_their_own_and_every_host_is_its_own_localhost() -> None:
    async def names_itself(name: str, writer: asyncio.StreamWriter) -> None:
        writer.write(name.encode())
        writer.close()
        await writer.wait_closed()

    async def asks(*address: Any) -> str:
        reader, writer = await asyncio.open_connection(*address)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer.decode()

    async def story(world: World) -> None:
        for name in ("a", "b"):
            with world.on(name):
                await asyncio.start_server(
                    lambda _, writer, name=name: names_itself(name, writer), None, PORT
                )
        assert await asks("a", PORT) == "a"
        assert await asks("b", PORT) == "b"
        with world.on("b"):
            assert await asyncio.create_task(asks("localhost", PORT)) == "b"
            assert await asks("10.0.0.2", PORT) == "a"
        with pytest.raises(OSError, match="Connect call failed"):
            await asks("localhost", PORT)

    tell(story, "a", "b")


def test_code_on_one_host_cannot_serve_for_another() -> None:
    async def story(world: World) -> None:
        with world.on("a"), pytest.raises(OSError, match="b is not a") as caught:
            await world.loop.create_server(Recorder, "b", PORT)
        assert caught.value.errno == errno.EADDRNOTAVAIL
        with pytest.raises(socket.gaierror):
            await world.loop.create_connection(Recorder, "c", PORT)
        with pytest.raises(ValueError, match="unknown host 'c'"):
            world.network.cut("a", "c")

    tell(story, "a", "b")


def test_a_wildcard_server_takes_the_port_of_all_addresses() -> None:
    async def story(world: World) -> None:
        async with await world.loop.create_server(Recorder, None, PORT):
            with pytest.raises(OSError, match="address already in use") as caught:
                await world.loop.create_server(Recorder, "127.0.0.1", PORT)
            assert caught.value.errno == errno.EADDRINUSE
        async with await world.loop.create_server(Recorder, "127.0.0.1", PORT):
            pass

    tell(story)


def test_a_server_that_does_not_serve_yet_refuses() -> None:
    async def story(world: World) -> None:
        listener = await world.loop.create_server(Recorder, "127.0.0.1", PORT, start_serving=False)
        with pytest.raises(ConnectionRefusedError):
            await world.loop.create_connection(Recorder, "127.0.0.1", PORT)
        await listener.start_serving()
        transport, _ = await world.loop.create_connection(Recorder, "127.0.0.1", PORT)
        transport.close()
        listener.close()

    tell(story)


def test_a_peer_that_does_not_read_fills_the_kernel_and_then_the_writer() -> None:
    async def story(world: World) -> None:
        client, server = Recorder(), Recorder()
        await connect(world, client, server)
        server.transport.pause_reading()
        client.transport.set_write_buffer_limits(high=1000, low=10)
        client.transport.write(bytes(CAPACITY_BYTES))
        assert client.transport.get_write_buffer_size() == 0
        client.transport.write(bytes(1000))
        assert client.events == ["made"]
        client.transport.write(b"x")
        assert client.events == ["made", "pause_writing"]
        await asyncio.sleep(1000)
        assert client.transport.get_write_buffer_size() == 1001
        server.transport.resume_reading()
        await client.until("resume_writing")
        await server.until_received(CAPACITY_BYTES + 1001)

    tell(story, "a", "b")


def test_a_cut_link_delays_all_data_and_notifies_no_peer() -> None:
    async def story(world: World) -> None:
        client, server = Recorder(), Echo()
        await connect(world, client, server)
        client.transport.write(b"before")
        await client.until_received(6)
        world.network.cut("a", "b")
        client.transport.write(b" and after")
        await asyncio.sleep(60)
        assert server.received == b"before"
        world.network.heal("a", "b")
        await client.until_received(16)
        assert client.received == b"before and after"
        assert client.events == ["made", "data"]

    for seed in range(10):
        tell(story, "a", "b", seed=seed)


def test_a_permanently_cut_link_ends_connections_with_unsent_data() -> None:
    async def story(world: World) -> None:
        client, server = Recorder(), Recorder()
        await connect(world, client, server)
        world.network.cut("a", "b")
        client.transport.write(b"lost")
        await client.until("lost")
        assert client.events[-1] == "lost: TimeoutError"
        assert world.loop.time() == pytest.approx(RESEND_FOR_S, abs=0.1)
        assert server.events == ["made"]
        world.network.heal()
        await asyncio.sleep(1000)
        assert server.received == b""
        server.transport.write(b"to somebody who is gone")
        await server.until("lost")
        assert server.events[-1] == "lost: ConnectionResetError"

    tell(story, "a", "b")


def test_a_cable_can_be_cut_one_way() -> None:
    async def story(world: World) -> None:
        client, server = Recorder(), Recorder()
        await connect(world, client, server)
        world.network.cut("b", "a", one_way=True)
        client.transport.write(b"arrives")
        server.transport.write(b"does not")
        await server.until_received(7)
        await asyncio.sleep(100)
        assert client.received == b""
        world.network.heal()
        await client.until_received(8)

    tell(story, "a", "b")


def test_a_window_update_that_is_lost_opens_no_window() -> None:
    async def story(world: World) -> None:
        client, server = Recorder(), Recorder()
        await connect(world, client, server)
        world.network.cut("b", "a", one_way=True)
        client.transport.write(LARGE)
        await asyncio.sleep(500)
        assert len(server.received) == CAPACITY_BYTES
        world.network.heal()
        await server.until_received(len(LARGE))
        assert server.received == LARGE

    tell(story, "a", "b")


def test_connecting_through_a_cut_cable_waits_and_tries_again() -> None:
    async def attempt(world: World, heal_after_s: float) -> float:
        async with await world.loop.create_server(Recorder, "b", PORT):
            world.network.cut("a", "b")
            world.loop.call_later(heal_after_s, world.network.heal)
            with world.on("a"):
                transport, _ = await world.loop.create_connection(Recorder, "b", PORT, family=socket.AF_INET)
            transport.close()
        return world.loop.time()

    assert 3 < tell(lambda world: attempt(world, 1.5), "a", "b") < 3.1
    with pytest.raises(TimeoutError) as caught:
        tell(lambda world: attempt(world, 1000), "a", "b")
    assert caught.value.errno == errno.ETIMEDOUT


def test_a_host_refuses_another_until_it_is_healed() -> None:
    async def story(world: World) -> None:
        client, server = Recorder(), Echo()
        async with await connect(world, client, server):
            world.network.refuse("a", "b")
            with world.on("a"):
                assert not await can_connect(world)
            client.transport.write(b"what is there stays")
            await client.until_received(19)
            # From Python 3.12 on a server is not closed before its connections are.
            client.transport.close()

    async def others(world: World) -> list[bool]:
        came: list[bool] = []
        async with await world.loop.create_server(Recorder, "b", PORT):
            world.network.refuse("a", "b")
            for heal, host in ((False, "a"), (False, "localhost"), (True, "a")):
                if heal:
                    world.network.heal("a", "b")
                with world.on(host):
                    came.append(await can_connect(world))
        return came

    tell(story, "a", "b")
    assert tell(others, "a", "b") == [False, True, True]


def test_a_slow_link_is_slow() -> None:
    async def round_trip_s(world: World) -> float:
        client, server = Recorder(), Echo()
        await connect(world, client, server)
        world.network.delay("a", "b", (100, 100))
        before = world.loop.time()
        client.transport.write(b"x")
        await client.until_received(1)
        return world.loop.time() - before

    assert tell(round_trip_s, "a", "b") == pytest.approx(0.2)


def test_nothing_gets_ahead_on_a_link_that_has_become_faster() -> None:
    async def story(world: World) -> float:
        client, server = Recorder(), Recorder()
        await connect(world, client, server)
        before = world.loop.time()
        world.network.delay("a", "b", (100, 100))
        client.transport.write(b"x")
        world.network.heal("a", "b")
        client.transport.write(b"y")
        await server.until_received(1)
        return world.loop.time() - before

    assert tell(story, "a", "b") == pytest.approx(0.1)


def test_a_reset_is_seen_by_both_sides_once() -> None:
    async def story(world: World) -> None:
        client, server = Recorder(), Recorder()
        await connect(world, client, server)
        assert len(world.network.open_connections()) == 2
        assert world.network.reset("a", "b") == 1
        await client.until("lost")
        await server.until("lost")
        await asyncio.sleep(10)
        assert client.events == server.events == ["made", "lost: ConnectionResetError"]
        assert world.network.open_connections() == []
        client.transport.write(b"into the void")

    tell(story, "a", "b")


def test_pending_connections_are_bounded_and_reset_at_the_end() -> None:
    async def story(world: World) -> None:
        listener = world.network.listen(["b"], PORT, socket.AF_INET)
        listener.listen(1)
        clients = [Recorder(), Recorder()]
        for client in clients:
            await world.loop.create_connection(lambda client=client: client, "b", PORT, family=socket.AF_INET)
        await asyncio.sleep(1)
        with pytest.raises(TimeoutError):
            await world.loop.create_connection(Recorder, "b", PORT, family=socket.AF_INET)
        listener.close()
        for client in clients:
            await client.until("lost")
            assert client.events == ["made", "lost: ConnectionResetError"]

    tell(story, "b")


def test_a_connection_that_arrives_when_the_server_has_closed_is_reset() -> None:
    async def story(world: World) -> None:
        server, client = Recorder(), Recorder()
        listener = await world.loop.create_server(lambda: server, "b", PORT)
        world.network.delay("localhost", "b", (10, 10), one_way=True)
        await world.loop.create_connection(lambda: client, "b", PORT)
        listener.close()
        await client.until("lost")
        assert client.events == ["made", "lost: ConnectionResetError"]
        assert server.events == []

    tell(story, "b")


def test_bytes_arrive_in_order_in_pieces_that_the_seed_decides() -> None:
    async def story(world: World) -> tuple[int, ...]:
        sizes: list[int] = []

        class Counts(Recorder):
            def data_received(self, data: bytes) -> None:
                sizes.append(len(data))
                super().data_received(data)

        client, server = Recorder(), Counts()
        await connect(world, client, server)
        client.transport.write(LARGE[:1000])
        await server.until_received(1000)
        assert server.received == LARGE[:1000]
        return tuple(sizes)

    seen = {tell(story, "a", "b", seed=seed) for seed in range(30)}

    assert (1000,) in seen
    assert len(seen) > 10


def test_ready_sockets_are_served_in_an_order_that_the_seed_decides() -> None:
    async def story(world: World) -> tuple[str, ...]:
        order: list[str] = []
        world.network.delay_all((1, 1))

        class Named(Recorder):
            def data_received(self, data: bytes) -> None:
                order.append(data.decode()[0])

        async with await world.loop.create_server(Named, "b", PORT):
            transports = [(await world.loop.create_connection(Recorder, "b", PORT))[0] for _ in range(3)]
            await asyncio.sleep(1)
            for name, transport in zip("xyz", transports, strict=True):
                transport.write(name.encode())
            await asyncio.sleep(1)
            for transport in transports:
                transport.close()
        return tuple(order)

    assert len({tell(story, "b", seed=seed) for seed in range(30)}) == 6


def test_a_server_that_cannot_make_a_protocol_makes_the_run_fail() -> None:
    def cannot() -> Recorder:
        raise OSError("no protocol today")

    async def story(world: World) -> None:
        async with await world.loop.create_server(cannot, "127.0.0.1", PORT):
            await world.loop.create_connection(Recorder, "127.0.0.1", PORT)
            await asyncio.sleep(10)

    with pytest.raises(SimulationFailed, match="no protocol today"):
        tell(story)


def test_a_protocol_that_fails_makes_the_run_fail() -> None:
    class Stumbles(Recorder):
        def data_received(self, data: bytes) -> None:
            raise KeyError("in data_received")

    async def story(world: World) -> None:
        client = Recorder()
        await connect(world, client, Stumbles())
        client.transport.write(b"x")
        await client.until("lost")

    with pytest.raises(SimulationFailed, match="in data_received"):
        tell(story, "a", "b")


def test_waiting_for_a_missing_client_is_detected() -> None:
    async def story(world: World) -> None:
        async with await world.loop.create_server(Recorder, "127.0.0.1", PORT) as server:
            await server.serve_forever()

    with pytest.raises(SimulationStuck, match="serve_forever"):
        run_sim(story)


def test_connections_that_are_left_are_broken_at_the_end() -> None:
    client, server = Recorder(), Recorder()

    async def story(world: World) -> None:
        await connect(world, client, server)

    tell(story, "a", "b")

    assert client.events == server.events == ["made", "lost: NoneType"]
