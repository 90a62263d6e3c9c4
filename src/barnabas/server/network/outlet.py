"""Write responses to sockets: in order, and together at the end of an event loop iteration.

Plain sockets are written to directly, and file ranges are sent with sendfile, without a copy. The queue holds
the parts themselves, so waiting needs no copy either. A transport without a usable descriptor (TLS, the
simulator) has a TransportOutlet (transport_outlet.py).

Sending a response wakes its client, which is most of the cost of sending. So responses that become ready in
one iteration are sent one after another: many clients are then awake already, and their next requests are
served together in the next iteration. After that the loop polls for a moment instead of sleeping: for the
next requests, and for sockets that will soon accept more of a large response.
"""

import asyncio
import errno
import os
import socket
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from mypy_extensions import i64

from barnabas.server.network.writable import Writable
from barnabas.storage.files import FileRange
from barnabas.storage.log import LogRead

Part: TypeAlias = bytes | memoryview | LogRead
Piece: TypeAlias = bytes | memoryview | FileRange

# Larger responses are sent in pieces of this size, so that one client's gigabyte does not block the loop.
SEND_MAX: Final = 4 << 20
# Entries of sent pieces that may remain at the front of a queue before they are removed.
SENT_PIECES_MAX: Final = 64
# Larger pieces are not worth a copy.
_LARGE_BYTES: Final = 64 << 10

_write: Final = os.write
# Not a valid descriptor: a write to it fails.
_CLOSED: Final = -1

# How long to poll: a busy client wakes up and sends its next request within this time.
BUSY_POLL_NS: Final = 150_000
# If this much of the time was not spent in this thread, something else needed the CPU.
PUSHED_ASIDE_NS: Final = 300_000
# Each success earns credit for two failures. Polling continues while there is credit: at least one poll in
# three succeeds. CREDIT_MAX failures in a row use it up.
CREDIT_MAX: Final = 8
CREDIT_FOR_ONE: Final = 2
# Loop iterations until polling is tried again; doubled after each further failure.
REST_MIN: Final = 8
REST_MAX: Final = 64

# With a single CPU, polling would keep clients from running.
BUSY_POLL_PROCESSORS_MIN: Final = 2


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
    def send(self, parts: list[Part]) -> int:
        """Send these parts after all earlier ones; return their size. Errors are reported by callbacks."""

    @abstractmethod
    def close(self) -> None:
        """Drop the parts that wait."""


def busy_poll_ns(processors: float) -> int:
    """How long a broker may poll, given the number of CPUs that it may use."""
    return BUSY_POLL_NS if processors >= BUSY_POLL_PROCESSORS_MIN else 0


class BusyPoll:
    """Decides whether to poll for new requests after responses have been sent; FlushQueue does the polling.

    Many clients send the next request as soon as they have a response. Sleeping until then costs more than
    polling a few times: on a virtual machine a wake-up takes 50 microseconds, a third of a small request, and
    more CPU than the polls. Polling adapts: if requests do not arrive in time, or other threads need the CPU,
    it is tried only rarely. `used_ns` returns the CPU time of this thread. With `poll_ns` 0 it never polls.
    """

    def __init__(self, ticks_ns: Callable[[], int], used_ns: Callable[[], int], poll_ns: int) -> None:
        self._ticks_ns = ticks_ns
        self._used_ns = used_ns
        self._poll_ns = poll_ns
        self._started_ns = 0
        self._used_before_ns = 0
        self._credit = CREDIT_MAX
        self._iterations_to_rest = 0
        self._rest = REST_MIN

    def start(self) -> bool:
        """Responses have been sent: whether to poll for requests before sleeping."""
        if self._poll_ns == 0:
            return False
        if self._iterations_to_rest > 0:
            self._iterations_to_rest -= 1
            return False
        self._used_before_ns = self._used_ns()
        self._started_ns = self._ticks_ns()
        return True

    def should_continue(self) -> bool:
        """No request has arrived yet: whether to poll once more."""
        passed_ns = self._ticks_ns() - self._started_ns
        if passed_ns < self._poll_ns:
            return True
        if passed_ns - (self._used_ns() - self._used_before_ns) > PUSHED_ASIDE_NS:
            self._iterations_to_rest = REST_MAX
            return False
        self._credit -= 1
        if self._credit < 0:
            self._credit = 0
            self._iterations_to_rest = self._rest
            self._rest = min(2 * self._rest, REST_MAX)
        return False

    def succeeded(self) -> None:
        """A request has arrived while polling."""
        self._credit = min(self._credit + CREDIT_FOR_ONE, CREDIT_MAX)
        self._rest = REST_MIN


class Flushable(Protocol):
    """An outlet with data to send."""

    def flush(self) -> None: ...


class FlushQueue:
    """Calls flush() of every outlet added during the loop iteration, once each, in the order of add().

    Each event loop has its own, and add() is only called while the loop runs.
    """

    def __init__(self, busy_poll: BusyPoll) -> None:
        self._due: deque[Flushable] = deque()
        self._is_scheduled = False
        self._busy_poll = busy_poll
        self._is_polling = False
        self._has_sent_more = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, outlet: Flushable) -> None:
        self._due.append(outlet)
        if not self._is_scheduled:
            self._is_scheduled = True
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._flush_all)

    def _call_soon(self, callback: Callable[[], None]) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._loop.call_soon(callback)

    def _flush_all(self) -> None:
        self._is_scheduled = False
        try:
            # Outlets that are added meanwhile belong to the next iteration.
            for _ in range(len(self._due)):
                self._due.popleft().flush()
        finally:
            # If one raises because of a bug, the others are still called.
            if self._due and not self._is_scheduled:
                self._is_scheduled = True
                self._call_soon(self._flush_all)
        self._start_polling()

    def sent_more(self) -> None:
        """An outlet that waited for its socket has sent more. The client is reading, so poll for the rest."""
        if self._is_polling:
            self._has_sent_more = True
        else:
            self._start_polling()

    def _start_polling(self) -> None:
        if not self._is_polling and self._busy_poll.start():
            self._is_polling = True
            self._call_soon(self._poll)

    def _poll(self) -> None:
        if self._is_scheduled:
            # All pending requests have been processed; their responses go out next.
            self._is_polling = self._has_sent_more = False
            self._busy_poll.succeeded()
        elif self._has_sent_more:
            self._is_polling = self._has_sent_more = False
            self._busy_poll.succeeded()
            self._start_polling()
        elif self._busy_poll.should_continue():
            # With a callback scheduled, the loop polls for events without waiting.
            self._call_soon(self._poll)
        else:
            self._is_polling = False


class SocketOutlet(Outlet):
    """A plain socket, written to directly through the descriptor that the transport reads from.

    No other object may write to the transport. It closes the descriptor after connection_lost(). The outlet
    must be closed by then, because the system may give the number to the next client at once. `on_drained` is
    called when the queue is empty, `on_broken` when a write fails; neither is called within send().
    """

    def __init__(
        self,
        writable: Writable,
        flush_queue: FlushQueue,
        sock: socket.socket,
        on_drained: Callable[[], None],
        on_broken: Callable[[OSError], None],
    ) -> None:
        super().__init__()
        self._taken = 0
        self.sendfile_bytes = 0
        self._writable = writable
        self._flush_queue = flush_queue
        self._socket = sock
        self._number = sock.fileno()
        # The pieces from _first on wait; those before it are sent.
        self._queue: list[Piece] = []
        self._first: i64 = 0
        # Bytes of the first piece that are sent.
        self._sent = 0
        self._watching = False
        self._is_due = False
        self._on_drained = on_drained
        self._on_broken = on_broken

    def send(self, parts: list[Part]) -> int:
        total = 0
        for part in parts:
            if isinstance(part, LogRead):
                self._queue.extend(part.ranges)
            else:
                self._queue.append(part)
            total += len(part)
        self.waiting += total
        if not self._watching and not self._is_due:
            self._is_due = True
            self._flush_queue.add(self)
        return total

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

    def flush(self) -> None:
        self._is_due = False
        if self._queue:
            self._pump()

    def _pump_on(self) -> None:
        """The socket is writable again."""
        self._pump()
        self._flush_queue.sent_more()

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
        self._unwatch()
        self._on_drained()

    def _watch(self) -> None:
        if not self._watching:
            self._writable.watch(self._number, self._pump_on)
            self._watching = True

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            self._writable.forget(self._number)

    def close(self) -> None:
        self._unwatch()
        self._queue.clear()
        self._first = 0
        self.waiting = 0
        self._number = _CLOSED


def _cut_off(number: int, left: int) -> OSError:
    """The error for a file that was truncated from outside while it was being sent."""
    path = os.readlink(f"/proc/self/fd/{number}") if os.path.exists("/proc/self/fd") else "a file"
    return OSError(errno.EIO, f"file ends {left} bytes before the end of the range to send", path)


def joined_parts(parts: list[Part]) -> list[Part]:
    """Join adjacent small pieces, so that they are sent with one system call."""
    for part in parts:
        if type(part) is not bytes:
            return _joined_between(parts)
    return [b"".join(parts)]  # type: ignore[arg-type]


def _joined_between(parts: list[Part]) -> list[Part]:
    """Join the pieces between large ones and file ranges."""
    result: list[Part] = []
    run: list[Any] = []
    for part in parts:
        if isinstance(part, (bytes, memoryview)) and len(part) < _LARGE_BYTES:
            run.append(part)
            continue
        if run:
            result.append(b"".join(run))
            run = []
        result.append(part)
    if run:
        result.append(b"".join(run))
    return result
