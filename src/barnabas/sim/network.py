"""A network in memory: hosts with names, listeners, connections, and faults that a test switches on and off.

SimLoop.create_server() and create_connection() end here. What this module hands out are sockets
(sockets.py); asyncio makes its own transports of them. Which host is which is in hosts.py, what cables do in
links.py, and how bytes travel in stream.py.
"""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from random import Random
from typing import Final, NamedTuple

from barnabas.sim.hosts import ANY4, ANY6, Address, Hosts
from barnabas.sim.links import Bounds, Link, Links
from barnabas.sim.selector import SimSelector
from barnabas.sim.sockets import FIRST_DESCRIPTOR, SimListener, SimSocket
from barnabas.sim.stream import CAPACITY_BYTES, Mark, Stream, Wire

# How many of the last events are kept, to be looked at when a run has failed.
HISTORY_MAX: Final = 10_000
# How long Linux waits for an answer to each try to connect (tcp_syn_retries = 6).
CONNECT_WAITS_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Event(NamedTuple):
    """Something arrived."""

    at_s: float
    source: str
    target: str
    what: str


class SimNetwork:
    """All connections of one simulated loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, selector: SimSelector, rng: Random) -> None:
        self.hosts = Hosts()
        self.history: deque[Event] = deque(maxlen=HISTORY_MAX)
        # For connections that come to be after it was changed.
        self.capacity_bytes = CAPACITY_BYTES
        self._loop = loop
        self._links = Links(rng)
        self._wire = Wire(loop, selector, self._links, rng, self._note)
        self._listeners: dict[Address, SimListener] = {}
        self._sockets: dict[int, SimSocket] = {}
        self._next_fd = FIRST_DESCRIPTOR

    # What a test does.

    def add_host(self, name: str) -> None:
        self.hosts.add(name)

    def at(self, name: str) -> AbstractContextManager[None]:
        """Run what is inside, and every task that is started there, on this host."""
        return self.hosts.at(name)

    def cut(self, a: str, b: str, *, one_way: bool = False) -> None:
        """Pull the cable: from now on nothing arrives, and nobody is told."""
        for link in self._between(a, b, one_way):
            self._links.cut(link, self._loop.time())

    def refuse(self, a: str, b: str) -> None:
        """Let every attempt of `a` to connect to `b` be refused. Connections that are there stay."""
        for link in self._between(a, b, one_way=True):
            self._links.refuse(link)

    def delay(self, a: str, b: str, ms: Bounds, *, one_way: bool = False) -> None:
        """Let everything between these hosts take from the least to the most of `ms`, each way."""
        for link in self._between(a, b, one_way):
            self._links.delay(link, ms)

    def delay_all(self, ms: Bounds) -> None:
        """The same for all links that have no delay of their own."""
        self._links.usual_delay_ms = ms

    def heal(self, a: str | None = None, b: str | None = None) -> None:
        """End every fault between two hosts, or, without names, all of them."""
        links = self._links.faulty() if a is None or b is None else self._between(a, b, one_way=False)
        for link in links:
            cut_since_s = self._links.heal(link)
            if cut_since_s is not None:
                # Each stream once; one whose sender has closed is still read from at its other end.
                streams = dict.fromkeys(stream for end in self._sockets.values() for stream in end.streams())
                for stream in streams:
                    stream.healed(link, cut_for_s=self._loop.time() - cut_since_s)

    def reset(self, a: str, b: str) -> int:
        """Break every connection between two hosts, for both sides to see. Return how many there were."""
        broken = [end for end in self._sockets.values() if {end.local.host, end.peer.host} == {a, b}]
        for end in broken:
            end.fail(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
        return len(broken) // 2

    def open_connections(self) -> list[tuple[str, str]]:
        """Who has an end of a connection open, and to where."""
        return [(str(end.local), str(end.peer)) for end in self._sockets.values() if not end.closed]

    # What the loop does.

    def listen(self, names: Iterable[str | None], port: int, family: int) -> SimListener:
        """Bind; the listener itself begins to listen when it is told to."""
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
        # As asyncio says it.
        raise OSError(f"Multiple exceptions: {', '.join(map(str, failures))}")

    async def _connect(self, here: str, there: Address) -> SimSocket:
        out, back = (here, there.host), (there.host, here)
        for wait_s in CONNECT_WAITS_S:
            try_again_s = self._loop.time() + wait_s
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
            await asyncio.sleep(max(0.0, try_again_s - self._loop.time()))
        raise TimeoutError(errno.ETIMEDOUT, f"Connect call failed {there.name()}")

    def _open(self, here: str, there: Address, listener: SimListener) -> SimSocket:
        """Both ends of a new connection. The far one is accepted when the near one's first packet arrives."""
        port = self.hosts.free_port(here, self._ports_of(here))
        near = Address(here, self.hosts.own_ip(here, there), port)
        to = Stream(self._wire, (near.host, there.host), self.capacity_bytes)
        fro = Stream(self._wire, (there.host, near.host), self.capacity_bytes)
        client = self._socket(near, there, incoming=fro, outgoing=to)
        self._socket(there, near, incoming=to, outgoing=fro, listener=listener)
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

    def _note(self, source: object, target: object, what: str) -> None:
        self.history.append(Event(self._loop.time(), str(source), str(target), what))
