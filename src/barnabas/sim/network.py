"""A network in memory: named hosts, listeners, connections, and faults that tests switch on and off.

SimLoop.create_server() and create_connection() call this module. It returns sockets (sockets.py), for which
asyncio creates its own transports. Hosts are in hosts.py, link faults in links.py, byte streams in stream.py.
"""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from random import Random
from typing import Final, NamedTuple

from barnabas.sim.hosts import ANY4, ANY6, Address, Hosts
from barnabas.sim.links import Bounds, Link, Links
from barnabas.sim.process import Process
from barnabas.sim.selector import SimSelector
from barnabas.sim.sockets import FIRST_DESCRIPTOR, SimListener, SimSocket
from barnabas.sim.stream import CAPACITY_BYTES, Mark, Stream, TrueLoop, Wire

# Number of recent events that are kept for the analysis of a failed run.
HISTORY_MAX: Final = 10_000
# Linux's timeouts for each attempt to connect (tcp_syn_retries = 6).
CONNECT_WAITS_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Event(NamedTuple):
    """An item arrived."""

    at_s: float
    source: str
    target: str
    what: str


class SimNetwork:
    """All connections of one simulated loop."""

    def __init__(self, loop: TrueLoop, selector: SimSelector, rng: Random) -> None:
        self.hosts = Hosts()
        self.history: deque[Event] = deque(maxlen=HISTORY_MAX)
        # For new connections.
        self.capacity_bytes = CAPACITY_BYTES
        self._loop = loop
        self._links = Links(rng)
        self._wire = Wire(loop, selector, self._links, rng, self._note)
        self._listeners: dict[Address, SimListener] = {}
        self._sockets: dict[int, SimSocket] = {}
        self._next_fd = FIRST_DESCRIPTOR

    # Controls for tests

    def add_host(self, name: str) -> None:
        self.hosts.add(name)

    def at(self, name: str) -> AbstractContextManager[None]:
        """Run the code inside, and every task that it starts, on this host."""
        return self.hosts.at(name)

    def cut(self, a: str, b: str, *, one_way: bool = False) -> None:
        """Cut the link: nothing arrives any more, and no side is notified."""
        for link in self._between(a, b, one_way):
            self._links.cut(link, self._now_s())

    def refuse(self, a: str, b: str) -> None:
        """Refuse every new connection from `a` to `b`. Existing connections stay."""
        for link in self._between(a, b, one_way=True):
            self._links.refuse(link)

    def delay(self, a: str, b: str, ms: Bounds, *, one_way: bool = False) -> None:
        """Set the range of delays between two hosts, per direction."""
        for link in self._between(a, b, one_way):
            self._links.delay(link, ms)

    def delay_all(self, ms: Bounds) -> None:
        """Set the range of delays of all links without one of their own."""
        self._links.usual_delay_ms = ms

    def heal(self, a: str | None = None, b: str | None = None) -> None:
        """Remove all faults between two hosts, or without names all faults."""
        links = self._links.faulty() if a is None or b is None else self._between(a, b, one_way=False)
        for link in links:
            cut_since_s = self._links.heal(link)
            if cut_since_s is not None:
                # Each stream once. The receiver may still read after the sender has closed.
                streams = dict.fromkeys(stream for end in self._sockets.values() for stream in end.streams())
                for stream in streams:
                    stream.healed(link, cut_for_s=self._now_s() - cut_since_s)

    def reset(self, a: str, b: str) -> int:
        """Reset every connection between two hosts on both sides. Return their number."""
        broken = [end for end in self._sockets.values() if {end.local.host, end.peer.host} == {a, b}]
        for end in broken:
            end.fail(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
        return len(broken) // 2

    def open_connections(self) -> list[tuple[str, str]]:
        """The open ends of connections, as (local, peer)."""
        return [(str(end.local), str(end.peer)) for end in self._sockets.values() if not end.closed]

    # Called by machines

    def process_ended(self, process: Process) -> None:
        """Close the sockets of a process, as the kernel does."""
        for end in self._ends_of(process):
            end.close()

    def power_failed(self, process: Process | None, host: str) -> None:
        """Drop the sockets of a process without a word to the peers, and cut the host off."""
        if process is not None:
            for end in self._ends_of(process):
                end.vanish()
        for other in self.hosts.names():
            if other != host:
                self.cut(host, other)

    def power_restored(self, host: str, is_on: Callable[[str], bool]) -> None:
        """Connect a host again with those that have power."""
        for other in self.hosts.names():
            if other != host and is_on(other):
                self.heal(host, other)

    def _ends_of(self, process: Process) -> list[SimSocket | SimListener]:
        listeners = dict.fromkeys(one for one in self._listeners.values() if one.owner is process)
        return [*listeners, *[end for end in self._sockets.values() if end.owner is process]]

    # Called by the loop

    def listen(self, names: Iterable[str | None], port: int, family: int) -> SimListener:
        """Bind a listener; it starts to listen on its own listen()."""
        addresses = [found for name in names for found in self.hosts.to_bind(name, port, family)]
        addresses = list(dict.fromkeys(addresses))
        if port == 0:
            host = addresses[0].host
            chosen = self.hosts.free_port(host, self._ports_of(host))
            addresses = [address._replace(port=chosen) for address in addresses]
        for address in addresses:
            self._need_free(address)
        listener = SimListener(self._wire, self._new_fd(), addresses, self._listener_gone)
        for address in addresses:
            self._listeners[address] = listener
        return listener

    async def connect(self, name: str, port: int, family: int) -> SimSocket:
        """Try every address of a name, in order."""
        failures: list[OSError] = []
        for address in self.hosts.resolve(name, port, family):
            try:
                return await self._connect(self.hosts.here(), address)
            except OSError as error:
                failures.append(error)
        if len({str(error) for error in failures}) == 1:
            raise failures[0]
        # asyncio's message.
        raise OSError(f"Multiple exceptions: {', '.join(map(str, failures))}")

    async def _connect(self, here: str, there: Address) -> SimSocket:
        out, back = (here, there.host), (there.host, here)
        for wait_s in CONNECT_WAITS_S:
            try_again_s = asyncio.get_running_loop().time() + wait_s
            await asyncio.sleep(self._links.delay_s(out))
            listener = self._listener_at(there)
            refused = listener is None or self._links.refuses(out)
            if self._links.is_up(out) and (refused or (listener and listener.has_room())):
                await asyncio.sleep(self._links.delay_s(back))
                if self._links.is_up(back):
                    if refused or listener is None:
                        raise ConnectionRefusedError(
                            errno.ECONNREFUSED, f"Connect call failed {there.name()}"
                        )
                    return self._open(here, there, listener)
            await asyncio.sleep(max(0.0, try_again_s - asyncio.get_running_loop().time()))
        raise TimeoutError(errno.ETIMEDOUT, f"Connect call failed {there.name()}")

    def _open(self, here: str, there: Address, listener: SimListener) -> SimSocket:
        """Create both ends of a connection. The server accepts it when the client's first packet arrives."""
        port = self.hosts.free_port(here, self._ports_of(here))
        near = Address(here, self.hosts.own_ip(here, there), port)
        to = Stream(self._wire, (near.host, there.host), self.capacity_bytes)
        fro = Stream(self._wire, (there.host, near.host), self.capacity_bytes)
        client = self._socket(near, there, incoming=fro, outgoing=to)
        self._socket(there, near, incoming=to, outgoing=fro, listener=listener).owner = listener.owner
        to.post(Mark.OPEN)
        return client

    def _socket(
        self,
        local: Address,
        peer: Address,
        *,
        incoming: Stream,
        outgoing: Stream,
        listener: SimListener | None = None,
    ) -> SimSocket:
        fd = self._new_fd()
        end = SimSocket(
            self._wire,
            fd,
            local=local,
            peer=peer,
            incoming=incoming,
            outgoing=outgoing,
            opened=listener.offer if listener is not None else lambda _: True,
            gone=partial(self._socket_gone, fd),
        )
        self._sockets[fd] = end
        return end

    def _listener_at(self, address: Address) -> SimListener | None:
        listener = self._listeners.get(address) or self._listeners.get(address.wildcard())
        return listener if listener is not None and listener.listening else None

    def _need_free(self, address: Address) -> None:
        for other in self._listeners:
            same = (
                other.host == address.host and other.port == address.port and other.family == address.family
            )
            if same and (other.ip == address.ip or {ANY4, ANY6} & {other.ip, address.ip}):
                text = f"error while attempting to bind on address {address.name()}: address already in use"
                raise OSError(errno.EADDRINUSE, text)

    def _ports_of(self, host: str) -> set[int]:
        taken = {address.port for address in self._listeners if address.host == host}
        return taken.union(end.local.port for end in self._sockets.values() if end.local.host == host)

    def _new_fd(self) -> int:
        self._next_fd += 1
        return self._next_fd

    def _between(self, a: str, b: str, one_way: bool) -> list[Link]:
        self.hosts.need(a, b)
        return [(a, b)] if one_way else list(dict.fromkeys([(a, b), (b, a)]))

    def _listener_gone(self, listener: SimListener) -> None:
        for address in listener.addresses:
            self._listeners.pop(address, None)

    def _socket_gone(self, fd: int, _socket: SimSocket) -> None:
        self._sockets.pop(fd, None)

    def _now_s(self) -> float:
        return self._loop.time_ns() / 1_000_000_000

    def _note(self, source: object, target: object, what: str) -> None:
        self.history.append(Event(self._now_s(), str(source), str(target), what))
