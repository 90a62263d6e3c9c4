"""Write responses to a client in order, and queue what the socket does not accept yet.

Plain sockets are written to directly, and file ranges are sent with sendfile, without a copy. A transport
without a usable descriptor (TLS, the simulator) gets the bytes, a bounded piece at a time. The queue holds
the parts themselves, so waiting needs no copy either.
"""

import asyncio
import errno
import os
import socket
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from mypy_extensions import i64

from barnabas.server.network.turn import Turn
from barnabas.server.network.writable import Writable
from barnabas.storage.files import FileRange
from barnabas.storage.log import LogRead

Part: TypeAlias = bytes | memoryview | LogRead
_Piece: TypeAlias = bytes | memoryview | FileRange

# Larger responses are sent in pieces of this size, so that one client's gigabyte does not block the loop.
SEND_MAX: Final = 4 << 20
# Entries of sent pieces that may remain at the front of a queue before they are removed.
SENT_PIECES_MAX: Final = 64
# High-water mark of a transport's write buffer.
TRANSPORT_BYTES: Final = 256 << 10

_write: Final = os.write
# Not a valid descriptor: a write to it fails.
_CLOSED: Final = -1


class Outlet:
    """`waiting` is the number of bytes that the client has not read yet."""

    def __init__(self) -> None:
        self.waiting = 0

    @property
    @abstractmethod
    def taken(self) -> int:
        """Total bytes that the client has read."""

    @property
    @abstractmethod
    def held(self) -> int:
        """Memory of the parts that wait to be sent; file ranges take none."""

    @abstractmethod
    def send(self, parts: list[Part]) -> None:
        """Send these parts after all earlier ones. Errors are reported through callbacks."""

    @abstractmethod
    def close(self) -> None:
        """Drop the parts that wait."""


class SocketOutlet(Outlet):
    """A plain socket, written to directly through the descriptor that the transport reads from.

    No other object may write to the transport. It closes the descriptor after connection_lost(). The outlet
    must be closed by then, because the system may give the number to the next client at once. `on_drained` is
    called when the queue is empty, `on_broken` when a write fails; neither is called within send().
    """

    def __init__(
        self,
        writable: Writable,
        turn: Turn,
        sock: socket.socket,
        on_drained: Callable[[], None],
        on_broken: Callable[[OSError], None],
    ) -> None:
        super().__init__()
        self._taken = 0
        self.sendfile_bytes = 0
        self._writable = writable
        self._turn = turn
        self._socket = sock
        self._number = sock.fileno()
        # The pieces from _first on wait; those before it are sent.
        self._queue: list[_Piece] = []
        self._first: i64 = 0
        # Bytes of the first piece that are sent.
        self._sent = 0
        self._watching = False
        self._is_due = False
        self._on_drained = on_drained
        self._on_broken = on_broken

    def send(self, parts: list[Part]) -> None:
        for part in parts:
            if isinstance(part, LogRead):
                self._queue.extend(part.ranges)
            else:
                self._queue.append(part)
            self.waiting += len(part)
        if not self._watching and not self._is_due:
            self._is_due = True
            self._turn.add(self)

    @property
    def taken(self) -> int:
        return self._taken

    @property
    def held(self) -> int:
        size = 0
        for piece in self._queue:
            if isinstance(piece, (bytes, memoryview)):
                size += len(piece)
        return size

    def send_now(self) -> None:
        self._is_due = False
        if self._queue:
            self._pump()

    def _pump_on(self) -> None:
        """The socket is writable again."""
        self._pump()
        self._turn.goes_on()

    def _pump(self) -> None:
        budget = SEND_MAX
        queue = self._queue
        end: i64 = len(queue)
        try:
            while self._first < end and budget > 0:
                piece = queue[self._first]
                # A tuple, because `bytes | memoryview` would build a union object at every call.
                if isinstance(piece, (bytes, memoryview)):
                    rest = piece if self._sent == 0 else memoryview(piece)[self._sent :]
                    if self._first + 1 == end:
                        # Cheaper than socket.send(), and every small response passes here.
                        sent = _write(self._number, rest)
                    else:
                        # More data follows at once: let the kernel put it into the same TCP segment.
                        sent = self._socket.send(rest, socket.MSG_MORE)
                    size = len(piece)
                else:
                    at, left = piece.at + self._sent, piece.size - self._sent
                    sent = os.sendfile(self._number, piece.fileno(), at, min(left, budget))
                    self.sendfile_bytes += sent
                    size = piece.size
                    if sent == 0 and left > 0:
                        raise _cut_off(piece.fileno(), left)
                self.waiting -= sent
                self._taken += sent
                budget -= sent
                self._sent += sent
                if self._sent == size:
                    # Release the piece at once: it may be large, or keep a file open.
                    queue[self._first] = b""
                    self._first += 1
                    self._sent = 0
        except BlockingIOError:
            pass
        except OSError as error:
            self.close()
            self._on_broken(error)
            return
        if self._first < end:
            if self._first >= SENT_PIECES_MAX:
                del queue[: self._first]
                self._first = 0
            try:
                self._watch()
            except OSError as error:
                self.close()
                self._on_broken(error)
            return
        queue.clear()
        self._first = 0
        self._watch_no_more()
        self._on_drained()

    def _watch(self) -> None:
        if not self._watching:
            self._writable.watch(self._number, self._pump_on)
            self._watching = True

    def _watch_no_more(self) -> None:
        if self._watching:
            self._watching = False
            self._writable.forget(self._number)

    def close(self) -> None:
        self._watch_no_more()
        self._queue.clear()
        self._first = 0
        self.waiting = 0
        self._number = _CLOSED


def _cut_off(number: int, left: int) -> OSError:
    """The error for a file that was truncated from outside while it was being sent."""
    path = os.readlink(f"/proc/self/fd/{number}") if os.path.exists("/proc/self/fd") else "a file"
    return OSError(errno.EIO, f"file ends {left} bytes before the end of the range to send", path)


class TransportOutlet(Outlet):
    """Any other asyncio transport. The connection calls has_room() when the transport accepts more."""

    def __init__(self, transport: asyncio.WriteTransport, on_drained: Callable[[], None]) -> None:
        super().__init__()
        self._written = 0
        self._transport = transport
        self._transport.set_write_buffer_limits(high=TRANSPORT_BYTES)
        self._queue: deque[_Piece] = deque()
        self._has_room = True
        self._on_drained = on_drained

    def send(self, parts: list[Part]) -> None:
        for part in parts:
            if isinstance(part, LogRead):
                self._queue.extend(part.ranges)
            else:
                self._queue.append(part)
            self.waiting += len(part)
        self._pump()

    @property
    def taken(self) -> int:
        return self._written - self._transport.get_write_buffer_size()

    @property
    def held(self) -> int:
        size: int = self._transport.get_write_buffer_size()
        for piece in self._queue:
            if isinstance(piece, (bytes, memoryview)):
                size += len(piece)
        return size

    def has_room(self, value: bool) -> None:
        """Called with False by pause_writing() and with True by resume_writing()."""
        self._has_room = value
        if value and self._queue:
            self._pump()
            if not self._queue:
                self._on_drained()
        elif value:
            self._on_drained()

    def _pump(self) -> None:
        while self._queue and self._has_room:
            piece = self._queue.popleft()
            data = piece if isinstance(piece, bytes | memoryview) else piece.read()
            self._transport.write(data)
            self.waiting -= len(data)
            self._written += len(data)

    def close(self) -> None:
        self._queue.clear()
        self.waiting = 0
