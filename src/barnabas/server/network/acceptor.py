"""The listening sockets of one listener: accept a connection, delay it, or close it at once.

asyncio's own server cannot pause, accepts one connection per loop iteration, and stops when the process has
no file descriptor left. So the loop only watches the sockets, and this module accepts by the limits in
admission.py. Only the simulator's loop, whose sockets are not the system's, uses its own server.
"""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from barnabas.base.clock import Clock
from barnabas.base.tasks import Tasks
from barnabas.server.network.admission import Admission

logger = logging.getLogger(__name__)

# Connections accepted per loop iteration, so that other callbacks run in between.
ACCEPTED_AT_ONCE_MAX: Final = 128
# Pause after accept() failed for lack of descriptors or memory.
RETRY_S: Final = 0.1
# Errors of accept() if the client has already gone: Linux reports the error of the new connection.
_GONE: Final = frozenset(
    (
        errno.ECONNABORTED,
        errno.EPROTO,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENOPROTOOPT,
        errno.EOPNOTSUPP,
        errno.EPERM,
    )
)
_MAPPED_IPV4: Final = "::ffff:"


class IncomingConnection(Protocol):
    """A connection that is being set up. With `is_made` the loop will call connection_lost() at its end."""

    @property
    def is_made(self) -> bool: ...


class HasDescriptor(Protocol):
    def fileno(self) -> int: ...


class AdmittingPool(Protocol):
    """The methods of the connection pool that Acceptor calls."""

    @property
    def clock(self) -> Clock: ...

    @property
    def admission(self) -> Admission: ...

    def enter(self, host: str, peer: str) -> bool: ...

    def refuse(self, peer: str, why: str) -> None: ...


# Makes a connection and its asyncio protocol from a socket and the client's host and peer address.
Make = Callable[[socket.socket, str, str], tuple[IncomingConnection, asyncio.BaseProtocol]]


class Acceptor:
    """Owns the listening sockets. start() begins to accept clients, stop() ends it for good."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listening: Sequence[socket.socket],
        pool: AdmittingPool,
        make: Make,
        on_crash: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._listening = list(listening)
        self._pool = pool
        self._make = make
        self._tasks = Tasks(on_crash)
        self._is_watching = False
        # A connection above the creation rate: it waits, and so do all behind it.
        self._held: tuple[socket.socket, Any] | None = None
        self._wait: asyncio.TimerHandle | None = None
        # A reserved descriptor. When no other is left it is freed for a moment to accept and close a client.
        self._spare: int | None = None

    def start(self, backlog: int) -> None:
        for listening in self._listening:
            listening.listen(backlog)
        self._spare = os.dup(self._listening[0].fileno())
        self._pool.admission.admitted.on_room.append(self._room_available)
        self._watch()

    def stop(self) -> None:
        """Stop accepting and close the listening sockets."""
        self._unwatch()
        if self._wait is not None:
            self._wait.cancel()
        if self._held is not None:
            self._held[0].close()
            self._held = None
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        on_room = self._pool.admission.admitted.on_room
        if self._room_available in on_room:
            on_room.remove(self._room_available)
        for listening in self._listening:
            listening.close()
        self._listening = []

    async def close(self) -> None:
        """Stop accepting, and finish connections that are being set up: otherwise they would never close."""
        self.stop()
        await self._tasks.finish()

    # Waiting

    def _watch(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            for listening in self._listening:
                self._loop.add_reader(listening.fileno(), self._accept_waiting, listening)

    def _unwatch(self) -> None:
        if self._is_watching:
            self._is_watching = False
            for listening in self._listening:
                self._loop.remove_reader(listening.fileno())

    def _pause(self, seconds: float) -> None:
        self._pool.admission.waits += 1
        self._unwatch()
        self._wait = self._loop.call_later(seconds, self._end_pause)

    def _end_pause(self) -> None:
        self._wait = None
        if self._spare is None:
            self._keep_spare()
        if self._pool.admission.has_room:
            self._resume()

    def _room_available(self) -> None:
        if self._listening and not self._is_watching and self._wait is None and self._pool.admission.has_room:
            self._resume()

    def _resume(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._admit(*held)
        self._watch()

    # Accepting

    def _accept_waiting(self, listening: socket.socket) -> None:
        admission = self._pool.admission
        for _ in range(ACCEPTED_AT_ONCE_MAX):
            if not self._is_watching:
                return
            if not admission.has_room:
                # _room_available() resumes when a connection closes.
                admission.waits += 1
                self._unwatch()
                return
            try:
                accepted, address = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in _GONE:
                    self._not_accepted(listening, error)
                continue
            accepted.setblocking(False)
            throttle_ms = admission.throttle_ms(self._pool.clock.monotonic_ms())
            if throttle_ms > 0:
                self._held = accepted, address
                self._pause(throttle_ms / 1000)
            else:
                self._admit(accepted, address)

    def _not_accepted(self, listening: socket.socket, error: OSError) -> None:
        """No descriptor or memory is left. Pause: a waiting client would wake the loop over and over."""
        self._pool.refuse("unknown", f"accept failed: {error}")
        if error.errno == errno.EMFILE and self._spare is not None:
            os.close(self._spare)
            self._spare = None
            try:
                accepted, _ = listening.accept()
            except OSError:
                pass
            else:
                accepted.close()
            self._keep_spare()
        if error.errno != errno.EMFILE or self._spare is None:
            self._pause(RETRY_S)

    def _keep_spare(self) -> None:
        try:
            self._spare = os.dup(self._listening[0].fileno())
        except OSError as error:
            logger.debug("cannot reserve a spare descriptor error=%s", error)

    def _admit(self, accepted: socket.socket, address: Any) -> None:
        host, peer = names_of(address)
        if self._pool.enter(host, peer):
            self._tasks.start(self._connect(accepted, host, peer))
        else:
            accepted.close()

    async def _connect(self, accepted: socket.socket, host: str, peer: str) -> None:
        connection, protocol = self._make(accepted, host, peer)
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, accepted)
        except Exception as error:
            accepted.close()
            logger.log(
                logging.DEBUG if isinstance(error, OSError) else logging.WARNING,
                "connection setup failed peer=%s error=%r",
                peer,
                error,
            )
        finally:
            if not connection.is_made:
                self._pool.admission.leave(host)


def names_of(address: Any) -> tuple[str, str]:
    """Return a client's host and its display name `host:port`, from the address of its socket."""
    if not address:
        return "unknown", "unknown"
    # A socket of both families shows IPv4 clients as ::ffff:a.b.c.d. Kafka calls them a.b.c.d.
    host = str(address[0]).removeprefix(_MAPPED_IPV4)
    return host, f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"


def socket_of_both_families(port: int) -> socket.socket:
    """Bind the IPv6 wildcard so that IPv4 clients are served too, as Java does for a Kafka broker.

    An event loop given the host "::" would bind IPv6 alone.
    """
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.setblocking(False)
        sock.bind(("::", port))
    except OSError:
        sock.close()
        raise
    return sock


def socket_of(bound: HasDescriptor) -> socket.socket:
    """Duplicate a socket that an event loop has bound: the loop does not share its own."""
    sock = socket.socket(fileno=os.dup(bound.fileno()))
    sock.setblocking(False)
    return sock
