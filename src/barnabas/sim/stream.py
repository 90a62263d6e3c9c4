"""One direction of a simulated TCP connection: bytes in flight and unread bytes.

As in TCP, bytes arrive in order and once, or the connection fails. So a cut link does not lose a part of a
stream; it delays everything until it is healed, or until the sender times out. Segmentation and delays come
from the seed. The two ends are in sockets.py.
"""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, Final, Protocol

from barnabas.sim.links import Link, Links
from barnabas.sim.selector import SimSelector

# The buffer size of both ends together. Once it is full, the sender cannot send.
CAPACITY_BYTES: Final = 256 * 1024
# Probability that one send arrives in several pieces, and the maximum number of pieces.
SPLIT_PROBABILITY: Final = 0.5
PIECES_MAX: Final = 4
# Linux's timeout for an unresponsive peer, after 15 retries (tcp_retries2).
RESEND_FOR_S: Final = 924.0
# The longest pause between two retries (TCP_RTO_MAX).
RESEND_PAUSE_S_MAX: Final = 120.0


class Mark(Enum):
    """Items in a stream besides bytes."""

    OPEN = "connected"
    END = "end of stream"
    RESET = "reset"


Item = memoryview | Mark


class End(Protocol):
    """The interface of a socket for its streams."""

    def take(self, item: Item) -> None:
        """Take an arrived item."""

    def room_changed(self) -> None:
        """Called when the send buffer may have room again."""

    def fail(self, error: OSError) -> None:
        """Called when the connection fails."""


class TrueLoop(Protocol):
    """The loop of the world. The network uses true time, and outlives the processes that use it."""

    def time_ns(self) -> int: ...

    def call_outside(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle: ...

    def call_outside_at(
        self, true_s: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle: ...


@dataclass(frozen=True, slots=True)
class Wire:
    """Objects shared by all streams and sockets of one network."""

    loop: TrueLoop
    selector: SimSelector
    links: Links
    rng: Random
    # Adds an event to the network's history: source, target, text.
    note: Callable[[object, object, str], None]

    def now_s(self) -> float:
        return self.loop.time_ns() / 1_000_000_000


class Stream:
    """A stream from `sender` to `receiver`, which are set before anything is sent."""

    sender: End
    receiver: End

    def __init__(self, wire: Wire, link: Link, capacity: int = CAPACITY_BYTES) -> None:
        self._wire = wire
        self._link = link
        self._way_back = link[1], link[0]
        self.capacity = capacity
        self._unread = 0
        self._in_flight: deque[Item] = deque()
        self._last_due_s = 0.0
        # Stopped by a cut: the number of items in flight, and of read bytes not yet acknowledged.
        self._held = 0
        self._unacknowledged = 0
        self._timeout: asyncio.TimerHandle | None = None

    @property
    def room(self) -> int:
        return self.capacity - self._unread

    def send(self, data: memoryview) -> int:
        """Send as many bytes as there is room for; return the number."""
        taken = min(self.room, len(data))
        self._unread += taken
        for piece in self._pieces(memoryview(bytes(data[:taken]))):
            self.post(piece)
        return taken

    def post(self, item: Item) -> None:
        """Send an item that needs no room, or already has it."""
        self._in_flight.append(item)
        self._schedule(self._wire.links.delay_s(self._link))

    def was_read(self, size: int) -> None:
        """Note that the receiver has read `size` bytes, and notify the sender."""
        if self._wire.links.is_up(self._way_back):
            self._unread -= size
            self.sender.room_changed()
        else:
            self._unacknowledged += size
            self._start_timeout()

    def abandon(self) -> None:
        """Drop everything in flight."""
        self._in_flight.clear()
        self._held = self._unacknowledged = 0
        self._stop_timeout()

    def healed(self, link: Link, *, cut_for_s: float) -> None:
        """Continue after a link was healed. After a long cut the sender retries rarely, so it may be late."""
        pause_s = self._wire.rng.uniform(0, min(cut_for_s, RESEND_PAUSE_S_MAX))
        if link == self._link:
            held, self._held = self._held, 0
            for _ in range(held):
                self._schedule(pause_s + self._wire.links.delay_s(link))
        if link == self._way_back and self._unacknowledged:
            unacknowledged, self._unacknowledged = self._unacknowledged, 0
            self._wire.loop.call_outside(pause_s, self.was_read, unacknowledged)
        if not self._held and not self._unacknowledged:
            self._stop_timeout()

    def _pieces(self, data: memoryview) -> Iterator[memoryview]:
        rng, size = self._wire.rng, len(data)
        count = rng.randint(2, PIECES_MAX) if rng.random() < SPLIT_PROBABILITY else 1
        cuts = sorted(rng.sample(range(1, size), min(count, size) - 1)) if size > 1 else []
        for start, end in zip([0, *cuts], [*cuts, size], strict=True):
            if start < end:
                yield data[start:end]

    def _schedule(self, delay_s: float) -> None:
        # Keep the order even if the link has become faster.
        self._last_due_s = max(self._wire.now_s() + delay_s, self._last_due_s)
        self._wire.loop.call_outside_at(self._last_due_s, self._arrive)

    def _arrive(self) -> None:
        if not self._in_flight:
            return
        if not self._wire.links.is_up(self._link):
            self._held += 1
            self._start_timeout()
            return
        self.receiver.take(self._in_flight.popleft())

    def _start_timeout(self) -> None:
        if self._timeout is None:
            self._timeout = self._wire.loop.call_outside(RESEND_FOR_S, self._time_out)

    def _stop_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def _time_out(self) -> None:
        self.sender.fail(TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
