"""Simulated TCP sockets: non-blocking, with the methods that asyncio's selector loop calls.

Their visible behaviour is that of Linux: arrived bytes can be read even after a reset; a socket that is
closed with unread bytes, or gets bytes afterwards, resets the connection; a socket is writable again when a
third of its buffer is free. Everything above (transports, flow control, servers, streams) is asyncio's own
code.
"""

import errno
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from barnabas.sim.hosts import Address
from barnabas.sim.process import CURRENT
from barnabas.sim.selector import READ, WRITE
from barnabas.sim.stream import Item, Mark, Stream, Wire

# Larger than any real descriptor, so that using one outside of the simulation fails.
FIRST_DESCRIPTOR: Final = 1_000_000
# A socket is writable if this fraction (1/3) of its buffer is free.
WRITABLE_SHARE: Final = 3


class BaseSocket:
    """The common base of sockets and listeners."""

    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, wire: Wire, fd: int, local: Address) -> None:
        self._wire = wire
        self._fd = fd
        # The process that opened it; its death closes it.
        self.owner = CURRENT.get()
        self.local = local
        self.family = local.family
        self.closed = False

    def fileno(self) -> int:
        return -1 if self.closed else self._fd

    def getsockname(self) -> tuple[Any, ...]:
        return self.local.name()

    def setblocking(self, flag: bool) -> None:
        assert not flag, "a simulated socket never blocks"

    def gettimeout(self) -> float:
        return 0.0

    def setsockopt(self, *_option: object) -> None:
        """Ignore socket options, which have no effect on the received data."""

    def _need_open(self) -> None:
        if self.closed:
            raise _os_error(errno.EBADF)


class SimSocket(BaseSocket):
    """One end of a connection."""

    def __init__(
        self,
        wire: Wire,
        fd: int,
        *,
        local: Address,
        peer: Address,
        incoming: Stream,
        outgoing: Stream,
        opened: Callable[["SimSocket"], bool],
        gone: Callable[["SimSocket"], None],
    ) -> None:
        super().__init__(wire, fd, local)
        self.peer = peer
        self._incoming, self._outgoing = incoming, outgoing
        incoming.receiver = outgoing.sender = self
        self._opened, self._gone = opened, gone
        self._arrived: deque[memoryview] = deque()
        self._ended = False
        self._shut = False
        # A dead connection stays dead; its error is raised once.
        self._dead = False
        self._vanished = False
        self._error: OSError | None = None
        self._update_readiness()

    # The socket interface

    def getpeername(self) -> tuple[Any, ...]:
        return self.peer.name()

    def recv(self, size: int) -> bytes:
        self._need_open()
        parts, wanted = [], size
        while self._arrived and wanted:
            piece = self._arrived.popleft()
            if len(piece) > wanted:
                self._arrived.appendleft(piece[wanted:])
                piece = piece[:wanted]
            parts.append(piece)
            wanted -= len(piece)
        if parts:
            if not self._dead:
                self._incoming.was_read(size - wanted)
            self._update_readiness()
            return b"".join(parts)
        self._raise_error()
        if self._ended or self._dead:
            return b""
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def recv_into(self, buffer: Any) -> int:
        with memoryview(buffer).cast("B") as view:
            data = self.recv(len(view))
            view[: len(data)] = data
        return len(data)

    def send(self, data: Any) -> int:
        self._need_open()
        self._raise_error()
        if self._dead or self._shut:
            raise _os_error(errno.EPIPE)
        with memoryview(data).cast("B") as view:
            taken = self._outgoing.send(view)
        self._update_readiness()
        if not taken and len(data):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return taken

    def sendmsg(self, buffers: Any) -> int:
        return self.send(b"".join(buffers))

    def shutdown(self, how: int) -> None:
        assert how == socket.SHUT_WR, "only the writing side can be shut down"
        self._need_open()
        if self._dead:
            raise _os_error(errno.ENOTCONN)
        self._end_sending()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._wire.selector.forget(self._fd)
        if not self._dead:
            if self._arrived:
                self.reset()
            else:
                self._end_sending()
        self._arrived.clear()
        self._gone(self)

    def vanish(self) -> None:
        """End as when the machine loses power: the peer is not notified. Later segments are reset."""
        if not self.closed:
            self.closed = self._vanished = True
            self._wire.selector.forget(self._fd)
            self._arrived.clear()
            self._outgoing.abandon()
            self._gone(self)

    # Called by the network

    def take(self, item: Item) -> None:
        self._wire.note(
            self.peer, self.local, f"{len(item)} bytes" if isinstance(item, memoryview) else item.value
        )
        match item:
            case _ if self._vanished:
                if item is not Mark.RESET:
                    self.reset()
            case Mark.OPEN:
                if not self._opened(self):
                    self.reset()
                    self.close()
            case Mark.RESET:
                # As on Linux: EPIPE if the end of the stream was received before.
                self.fail(_os_error(errno.EPIPE if self._ended else errno.ECONNRESET))
            case Mark.END:
                self._ended = True
            case _ if self.closed:
                self.reset()
            case _ if not self._dead:
                self._arrived.append(item)
        self._update_readiness()

    def room_changed(self) -> None:
        self._update_readiness()

    def fail(self, error: OSError) -> None:
        if not self._dead and not self.closed:
            self._error = error
        self._dead = True
        self._outgoing.abandon()
        self._update_readiness()

    def reset(self) -> None:
        """Send a reset to the peer."""
        self._dead = True
        self._outgoing.post(Mark.RESET)

    def streams(self) -> tuple[Stream, Stream]:
        return self._incoming, self._outgoing

    def _end_sending(self) -> None:
        if not self._shut:
            self._shut = True
            self._outgoing.post(Mark.END)

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _update_readiness(self) -> None:
        if self.closed:
            return
        mask = READ if self._arrived or self._ended or self._dead else 0
        if self._dead or self._outgoing.room * WRITABLE_SHARE >= self._outgoing.capacity:
            mask |= WRITE
        self._wire.selector.set_ready(self._fd, mask)


class SimListener(BaseSocket):
    """A listening socket on one or more addresses of one host."""

    def __init__(
        self, wire: Wire, fd: int, addresses: list[Address], gone: Callable[["SimListener"], None]
    ) -> None:
        super().__init__(wire, fd, addresses[0])
        self.addresses = addresses
        self._gone = gone
        self._backlog: deque[SimSocket] = deque()
        self._backlog_max = 0
        self.listening = False

    def listen(self, backlog: int) -> None:
        self._need_open()
        self._backlog_max = backlog
        self.listening = True

    def has_room(self) -> bool:
        return len(self._backlog) <= self._backlog_max

    def offer(self, connection: SimSocket) -> bool:
        """Queue an established connection; False if the listener is closed."""
        if self.closed:
            return False
        self._backlog.append(connection)
        self._wire.selector.set_ready(self._fd, READ)
        return True

    def accept(self) -> tuple[SimSocket, tuple[Any, ...]]:
        self._need_open()
        if not self._backlog:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        connection = self._backlog.popleft()
        self._wire.selector.set_ready(self._fd, READ if self._backlog else 0)
        return connection, connection.getpeername()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._wire.selector.forget(self._fd)
        for connection in self._backlog:
            connection.reset()
            connection.close()
        self._backlog.clear()
        self._gone(self)

    def vanish(self) -> None:
        """End as when the machine loses power."""
        for connection in self._backlog:
            connection.vanish()
        self._backlog.clear()
        self.close()


def _os_error(number: int) -> OSError:
    """OSError selects the subclass by the number."""
    return OSError(number, os.strerror(number))
