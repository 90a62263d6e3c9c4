"""The bytes of requests that a broker holds for all of its connections, and their limit.

Counted are large frames that are not complete yet, by the bytes that have come, and requests that wait: for
their turn, or for their response. A request that is answered at once is never counted, unless it is large.

At the limit (queued.max.request.bytes) a connection with a large frame is no longer read, and one that waits
for a response begins no other request. A connection is read again, in turn, when bytes are free. Two rules
keep clients that hold bytes from starving the others:

- One connection at a time may go past the limit, so that frames that have come in half can be completed. It
  may not while requests that wait hold more than half of the limit: these end without being read.
- At the limit, connections whose frame comes too slowly are closed. If requests that wait hold more than half
  of the limit, those connections are closed that have held the most bytes for too long.
"""

import asyncio
import logging
from collections.abc import Collection
from typing import Final, Protocol

from mypy_extensions import i64

logger = logging.getLogger(__name__)

# The share of the memory that is used if queued.max.request.bytes is not set. Requests take more memory as
# objects than as bytes.
MEMORY_SHARE: Final = 8
# A decoded request counts for so many times its size: a Fetch of many partitions takes 15 times as objects.
DECODED_TIMES: Final = 16
# A connection reads so much of a large frame at once; so much must be free before the next one is read again.
READ_BYTES: Final = 256 << 10
# While others wait, a large frame has to come this fast, apart from a grace period.
FRAME_BYTES_PER_S_MIN: Final = 64 << 10
FRAME_GRACE_MS: Final = 5_000
# While others wait, a request may wait this long for its response with the bytes that they need.
WAITING_MS_MAX: Final = 30_000
# How often connections are checked while others wait.
_CHECK_S: Final = 1.0
_NS_PER_MS: Final = 1_000_000


def limit_of(queued_max_bytes: int, request_max_bytes: int, memory_bytes: int) -> int:
    """How many bytes a broker holds, by its settings: room for one request of the largest size at least."""
    if queued_max_bytes > 0:
        return queued_max_bytes
    return max(memory_bytes // MEMORY_SHARE, request_max_bytes)


class Holder(Protocol):
    """A connection, as RequestBytes sees it."""

    def read_on(self) -> None:
        """There is room for more of its frame."""

    def is_too_slow(self) -> bool:
        """Whether its unfinished frame comes too slowly."""

    def bytes_held_since(self, age_ns: int) -> int:
        """How many bytes of requests it has that have waited for their response for so long."""

    def evict(self, why: str) -> None:
        """Close it, because others need what it holds."""


class RequestBytes:
    """Shared by all listeners of a broker. Connections add what they hold to `unfinished` and `waiting`."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max: Final = bytes_max
        self.unfinished: i64 = 0
        self.waiting: i64 = 0
        # Whether requests that wait have reached the limit by themselves.
        self.is_full = False
        # For metrics.
        self.evicted = 0
        self._pools: list[Collection[Holder]] = []
        self._paused: dict[Holder, None] = {}
        # The connection that may go past the limit.
        self._ahead: Holder | None = None
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
        """Close connections of this collection if others need what they hold."""
        self._pools.append(connections)

    def may_read(self, holder: Holder) -> bool:
        """Whether more of a large frame may be read. If not, read_on() is called when it may."""
        if self.used < self.bytes_max or self._ahead is holder:
            return True
        if self._ahead is None and not self._paused and self._may_go_ahead():
            self._ahead = holder
            return True
        self._paused[holder] = None
        self._check_soon()
        return False

    def hold(self, size: i64) -> None:
        """A request waits."""
        self.waiting += size
        if self.waiting >= self.bytes_max:
            self.is_full = True
            self._check_soon()

    def release(self, size: i64) -> None:
        """A request that waited is answered or given up."""
        self.waiting -= size
        if self.is_full and self.waiting < self.bytes_max:
            self.is_full = False
        if self._paused:
            self.freed()

    def finished(self, holder: Holder) -> None:
        """Its frame is complete, or it is closed."""
        if self._ahead is holder:
            self._ahead = None
        self._paused.pop(holder, None)
        self.freed()

    def freed(self) -> None:
        """Some bytes are free."""
        if self._paused and self._next_turn is None:
            self._next_turn = asyncio.get_running_loop().call_soon(self._read_on)

    def _may_go_ahead(self) -> bool:
        return self.waiting <= self.bytes_max // 2

    def _read_on(self) -> None:
        """Let those that wait read again, as many as there is room for."""
        self._next_turn = None
        room = self.bytes_max - self.used
        while self._paused and room > 0:
            holder = self._first()
            room -= READ_BYTES
            holder.read_on()
        if self._paused and self._ahead is None and self._may_go_ahead():
            self._ahead = holder = self._first()
            holder.read_on()

    def _first(self) -> Holder:
        holder = next(iter(self._paused))
        del self._paused[holder]
        return holder

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
        # Their bytes are free when they are closed, in this turn of the loop or the next.
        self.freed()
        self._check_soon()

    def _close_longest(self) -> None:
        """Close the connections that hold the most for too long, until half of the limit is free of them."""
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
