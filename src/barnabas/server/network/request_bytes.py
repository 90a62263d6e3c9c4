"""The bytes of requests that a broker holds for all of its connections, and their limit.

Two kinds of bytes count: those received of large incomplete frames, and those of requests that wait for their
turn or for their response. A request that is answered at once never counts, unless it is large.

At the limit (queued.max.request.bytes) connections with a large frame are no longer read, and a connection
that waits for a response starts no other request. Paused connections are read again, in order, when bytes are
free. Two rules keep clients that hold bytes from starving the others:

- One connection at a time may exceed the limit, so that incomplete frames can be completed. This is not
  allowed while waiting requests hold more than half of the limit: they end without further reads.
- At the limit, connections whose frame arrives too slowly are closed. If waiting requests hold more than half
  of the limit, the connections that have held the most bytes for too long are closed.
"""

import asyncio
import logging
from collections.abc import Collection
from typing import Final, Protocol

from mypy_extensions import i64

logger = logging.getLogger(__name__)

# If queued.max.request.bytes is not set, the limit is the memory divided by this. Decoded requests take more
# memory than their bytes.
MEMORY_SHARE: Final = 8
# A decoded request counts this many times its size: the objects of a large Fetch take 15 times its bytes.
DECODED_TIMES: Final = 16
# A connection reads this much of a large frame at once; resuming another one needs this much free.
READ_BYTES: Final = 256 << 10
# While others wait, a large frame must arrive at least this fast, after a grace period.
FRAME_BYTES_PER_S_MIN: Final = 64 << 10
FRAME_GRACE_MS: Final = 5_000
# While others wait, a request may wait this long for its response with the bytes that they need.
WAITING_MS_MAX: Final = 30_000
# How often connections are checked while others wait.
_CHECK_S: Final = 1.0
_NS_PER_MS: Final = 1_000_000


def limit_of(queued_max_bytes: int, request_max_bytes: int, memory_bytes: int) -> int:
    """The limit by a broker's settings, at least the maximum size of one request."""
    if queued_max_bytes > 0:
        return queued_max_bytes
    return max(memory_bytes // MEMORY_SHARE, request_max_bytes)


class FrameReader(Protocol):
    """The part of a connection that receives a large frame."""

    def resume_reading(self) -> None:
        """Resume reading the frame."""


class Holder(Protocol):
    """A connection, as RequestBytes sees it."""

    def is_too_slow(self) -> bool:
        """Whether its incomplete frame arrives too slowly."""

    def bytes_held_since(self, age_ns: int) -> int:
        """The bytes of its requests if the first has waited at least `age_ns` for its response, else 0."""

    def evict(self, why: str) -> None:
        """Close the connection, because others need the memory that it holds."""


class RequestBytes:
    """Shared by all listeners of a broker. Connections add what they hold to `unfinished` and `waiting`.

    They report a change of `waiting` only at the limit, because most requests are far from it.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max: Final = bytes_max
        self.unfinished: i64 = 0
        self.waiting: i64 = 0
        # Whether waiting requests alone have reached the limit.
        self.is_full = False
        # Whether the limit is reached or connections are paused, so that releases must be reported.
        self.is_short = False
        # For metrics.
        self.evicted = 0
        self._pools: list[Collection[Holder]] = []
        self._paused: dict[FrameReader, None] = {}
        # The connection that may exceed the limit.
        self._ahead: FrameReader | None = None
        self._next_turn: asyncio.Handle | None = None
        self._check: asyncio.TimerHandle | None = None

    @property
    def used(self) -> int:
        return self.unfinished + self.waiting

    @property
    def paused(self) -> int:
        """How many connections wait for room."""
        return len(self._paused)

    def watch(self, connections: Collection[Holder]) -> None:
        """Include these connections in the search for connections to close."""
        self._pools.append(connections)

    def may_read(self, reader: FrameReader) -> bool:
        """Whether more of a large frame may be read. If not, resume_reading() is called as soon as it may."""
        if self.used < self.bytes_max or self._ahead is reader:
            return True
        if self._ahead is None and not self._paused and self._may_go_ahead():
            self._ahead = reader
            return True
        self._paused[reader] = None
        self.is_short = True
        self._check_soon()
        return False

    def limit_reached(self) -> None:
        """`waiting` has grown to the limit or beyond."""
        self.is_full = self.is_short = True
        self._check_soon()

    def released(self) -> None:
        """`waiting` is smaller; called while `is_short`."""
        self.is_full = self.waiting >= self.bytes_max
        self.is_short = self.is_full or bool(self._paused)
        self.freed()

    def finished(self, reader: FrameReader) -> None:
        """The frame is complete, or its connection was closed."""
        if self._ahead is reader:
            self._ahead = None
        self._paused.pop(reader, None)
        self.freed()

    def freed(self) -> None:
        """Resume paused connections soon: some bytes were freed."""
        if self._paused and self._next_turn is None:
            self._next_turn = asyncio.get_running_loop().call_soon(self._read_on)

    def _may_go_ahead(self) -> bool:
        return self.waiting <= self.bytes_max // 2

    def _read_on(self) -> None:
        """Resume as many paused connections as there is room for."""
        self._next_turn = None
        room = self.bytes_max - self.used
        while self._paused and room > 0:
            room -= READ_BYTES
            self._first().resume_reading()
        if self._paused and self._ahead is None and self._may_go_ahead():
            self._ahead = reader = self._first()
            reader.resume_reading()

    def _first(self) -> FrameReader:
        reader = next(iter(self._paused))
        del self._paused[reader]
        return reader

    def _check_soon(self) -> None:
        if self._check is None:
            self._check = asyncio.get_running_loop().call_later(_CHECK_S, self._close_slow)

    def _close_slow(self) -> None:
        self._check = None
        if not self._paused and not self.is_full:
            return
        slow = [one for pool in self._pools for one in pool if one.is_too_slow()]
        for holder in slow:
            self._evict(holder, "request arrives too slowly while others need the memory")
        if not self._may_go_ahead():
            self._close_longest()
        # Their bytes are freed when they are closed, in this iteration of the loop or the next.
        self.freed()
        self._check_soon()

    def _close_longest(self) -> None:
        """Close connections that held the most for too long, until waiting requests fit half the limit."""
        found = [(one.bytes_held_since(WAITING_MS_MAX * _NS_PER_MS), one) for p in self._pools for one in p]
        excess = self.waiting - self.bytes_max // 2
        for size, holder in sorted(found, key=lambda each: -each[0]):
            if size == 0 or excess <= 0:
                break
            excess -= size
            self._evict(holder, "requests waited too long while others need the memory")

    def _evict(self, holder: Holder, why: str) -> None:
        self.evicted += 1
        holder.evict(why)
