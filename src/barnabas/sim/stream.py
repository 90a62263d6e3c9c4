"""One direction of a simulated TCP connection: bytes that were sent, are on their way, or were not read yet.

It keeps TCP's promise: bytes arrive in order, once, or the connection fails. So a cut cable does not lose
a part of a stream; it holds everything back until it is mended, or until the sender's patience ends.
Pieces and delays come from the seed. The two ends are in sockets.py.
"""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final, Protocol

from barnabas.sim.links import Link, Links
from barnabas.sim.selector import SimSelector

# What the kernels of both ends hold together. Once it is full, the sender keeps its bytes.
CAPACITY_BYTES: Final = 256 * 1024
# How often what is sent at once arrives in more than one piece, and in how many at most.
SPLIT_PROBABILITY: Final = 0.5
PIECES_MAX: Final = 4
# Linux gives up on a silent peer after 15 retries, which take about this long (tcp_retries2).
RESEND_FOR_S: Final = 924.0
# The longest pause between two retries (TCP_RTO_MAX).
RESEND_PAUSE_S_MAX: Final = 120.0


class Mark(Enum):
    """What travels in a stream beside bytes."""

    OPEN = "connected"
    END = "end of stream"
    RESET = "reset"


Item = memoryview | Mark


class End(Protocol):
    """A socket, as its streams see it."""

    def take(self, item: Item) -> None:
        """Something arrived."""

    def room_changed(self) -> None:
        """There may be room again to send."""

    def fail(self, error: OSError) -> None:
        """The connection is no more."""


@dataclass(frozen=True, slots=True)
class Wire:
    """What all streams and sockets of one network share."""

    loop: asyncio.AbstractEventLoop
    selector: SimSelector
    links: Links
    rng: Random
    # Writes a line of the network's history: from where, to where, what.
    note: Callable[[object, object, str], None]


class Stream:
    """From `sender` to `receiver`, which are set before anything is sent."""

    sender: End
    receiver: End

    def __init__(self, wire: Wire, link: Link, capacity: int = CAPACITY_BYTES) -> None:
        self._wire = wire
        self._link = link
        self._way_back = link[1], link[0]
        self.capacity = capacity
        self._unread = 0
        self._under_way: deque[Item] = deque()
        self._last_due_s = 0.0
        # What came to the cut: how many items on their way, and how many bytes' room on its way back.
        self._held = 0
        self._owed = 0
        self._patience: asyncio.TimerHandle | None = None

    @property
    def room(self) -> int:
        return self.capacity - self._unread

    def send(self, data: memoryview) -> int:
        """Take as much as there is room for."""
        taken = min(self.room, len(data))
        self._unread += taken
        for piece in self._pieces(memoryview(bytes(data[:taken]))):
            self.post(piece)
        return taken

    def post(self, item: Item) -> None:
        """Send something that needs no room, or has it already."""
        self._under_way.append(item)
        self._schedule(self._wire.links.delay_s(self._link))

    def was_read(self, size: int) -> None:
        """The receiving program took so many bytes, and the sender is told."""
        if self._wire.links.is_up(self._way_back):
            self._unread -= size
            self.sender.room_changed()
        else:
            self._owed += size
            self._grow_impatient()

    def abandon(self) -> None:
        """Nothing of what is on its way will arrive."""
        self._under_way.clear()
        self._held = self._owed = 0
        self._calm_down()

    def healed(self, link: Link, *, cut_for_s: float) -> None:
        """A link works again. A sender that has waited long tries seldom, so it may notice late."""
        pause_s = self._wire.rng.uniform(0, min(cut_for_s, RESEND_PAUSE_S_MAX))
        if link == self._link:
            held, self._held = self._held, 0
            for _ in range(held):
                self._schedule(pause_s + self._wire.links.delay_s(link))
        if link == self._way_back and self._owed:
            owed, self._owed = self._owed, 0
            self._wire.loop.call_later(pause_s, self.was_read, owed)
        if not self._held and not self._owed:
            self._calm_down()

    def _pieces(self, data: memoryview) -> Iterator[memoryview]:
        rng, size = self._wire.rng, len(data)
        count = rng.randint(2, PIECES_MAX) if rng.random() < SPLIT_PROBABILITY else 1
        cuts = sorted(rng.sample(range(1, size), min(count, size) - 1)) if size > 1 else []
        for start, end in zip([0, *cuts], [*cuts, size], strict=True):
            if start < end:
                yield data[start:end]

    def _schedule(self, delay_s: float) -> None:
        # On a link that has become faster, nothing gets ahead of what was sent while it was slow.
        self._last_due_s = max(self._wire.loop.time() + delay_s, self._last_due_s)
        self._wire.loop.call_at(self._last_due_s, self._arrive)

    def _arrive(self) -> None:
        if not self._under_way:
            return
        if not self._wire.links.is_up(self._link):
            self._held += 1
            self._grow_impatient()
            return
        self.receiver.take(self._under_way.popleft())

    def _grow_impatient(self) -> None:
        if self._patience is None:
            self._patience = self._wire.loop.call_later(RESEND_FOR_S, self._give_up)

    def _calm_down(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self.sender.fail(TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
