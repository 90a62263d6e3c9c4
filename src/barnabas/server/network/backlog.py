"""Requests that have arrived on a connection and may not start yet, and how connections share the event loop.

One read may hold thousands of small requests. A connection starts some of them and leaves the others for the
next iteration of the loop, so that other clients are served in between.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

if TYPE_CHECKING:
    from barnabas.server.network.connection import Connection

# Requests of one connection started per loop iteration: one read may hold thousands of small ones.
BEGUN_AT_ONCE_MAX: Final = 64
# Requests started per iteration by all connections with a backlog together. If there are more such
# connections than this, each starts one.
BEGUN_TOGETHER_MAX: Final = 512


class StartBudget:
    """How many requests each connection of a listener may start per loop iteration."""

    def __init__(self) -> None:
        # Connections with requests left for the next iteration.
        self.backlogs: i64 = 0

    def share(self) -> int:
        """The share of one connection, given the others with a backlog."""
        if self.backlogs * BEGUN_AT_ONCE_MAX <= BEGUN_TOGETHER_MAX:
            return BEGUN_AT_ONCE_MAX
        return int(max(BEGUN_TOGETHER_MAX // self.backlogs, 1))


class Backlog:
    """Frames of one connection, in order. It is handed the connection: a reference would be a cycle."""

    def __init__(self) -> None:
        self.frames: Final[deque[bytes]] = deque()
        # The bytes that are counted in RequestBytes.
        self.size: i64 = 0
        self._next_turn: asyncio.Handle | None = None

    def start_some(self, connection: "Connection") -> None:
        """Start the connection's share of requests, and send the responses that are ready."""
        frames, start_budget = self.frames, connection.pool.start_budget
        left = start_budget.share()
        while True:
            while frames and left > 0 and not connection.is_full():
                connection.start(frames.popleft())
                left -= 1
            connection.flush()
            # The flush may have made room for more requests.
            if not frames or left == 0 or connection.is_full():
                break
        if self.size and not frames:
            self.count_bytes(connection)
        if left == 0 and frames and self._next_turn is None:
            self._next_turn = asyncio.get_running_loop().call_soon(self._start_more, connection)
            start_budget.backlogs += 1

    def _start_more(self, connection: "Connection") -> None:
        self._next_turn = None
        connection.pool.start_budget.backlogs -= 1
        if not connection.is_lost:
            try:
                connection.serve()
            except Exception as error:
                connection.fail(error)

    def count_bytes(self, connection: "Connection") -> None:
        """Update the counted bytes."""
        held: i64 = 0
        for frame in self.frames:
            held += len(frame)
        connection.release(self.size)
        connection.hold(held)
        self.size = held

    def clear(self, connection: "Connection") -> None:
        self.frames.clear()
        if self.size:
            self.count_bytes(connection)
