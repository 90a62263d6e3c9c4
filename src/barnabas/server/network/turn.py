"""Sends all responses of one event loop iteration together, at its end.

Sending a response wakes its client, which is most of the cost of sending. So responses that become ready in
one iteration are sent one after another: many clients are then awake already, and their next requests are
served together in the next iteration. After that the loop polls for a moment instead of sleeping (vigil.py):
for the next requests, and for sockets that will soon accept more of a large response.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from mypy_extensions import i64

from barnabas.server.network.vigil import Vigil

# Requests of one connection started per loop iteration: one read may hold thousands of small ones.
BEGUN_AT_ONCE_MAX: Final = 64
# Requests started per iteration by all connections with a backlog together. If there are more such
# connections than this, each starts one.
BEGUN_TOGETHER_MAX: Final = 512


class Sender(Protocol):
    """Something with data to send: an outlet."""

    def send_now(self) -> None: ...


class Turn:
    """Calls send_now() of every sender added during the iteration, once each, in the order of add()."""

    def __init__(self, vigil: Vigil) -> None:
        self._due: deque[Sender] = deque()
        self._has_end = False
        self._vigil = vigil
        # Connections with requests left for the next iteration.
        self.backlogs: i64 = 0
        self._is_awake = False
        self._has_gone_on = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def share(self) -> int:
        """How many requests a connection may start in this iteration, given the others with a backlog."""
        if self.backlogs * BEGUN_AT_ONCE_MAX <= BEGUN_TOGETHER_MAX:
            return BEGUN_AT_ONCE_MAX
        return int(max(BEGUN_TOGETHER_MAX // self.backlogs, 1))

    def add(self, sender: Sender) -> None:
        self._due.append(sender)
        if not self._has_end:
            self._has_end = True
            self._soon(self._end)

    def _soon(self, what: Callable[[], None]) -> None:
        # Each event loop has its own Turn; add() is only called while its loop runs.
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._loop.call_soon(what)

    def _end(self) -> None:
        self._has_end = False
        try:
            # Senders that are added meanwhile belong to the next iteration.
            for _ in range(len(self._due)):
                self._due.popleft().send_now()
        finally:
            # If a sender raises because of a bug, the others are still called.
            if self._due and not self._has_end:
                self._has_end = True
                self._soon(self._end)
        self._stay_awake()

    def goes_on(self) -> None:
        """A sender that waited for its socket has sent more. The client is reading, so poll for the rest."""
        if self._is_awake:
            self._has_gone_on = True
        else:
            self._stay_awake()

    def _stay_awake(self) -> None:
        if not self._is_awake and self._vigil.begin():
            self._is_awake = True
            self._soon(self._look)

    def _look(self) -> None:
        if self._has_end:
            # All pending requests have been processed; their responses go out next.
            self._is_awake = self._has_gone_on = False
            self._vigil.came()
        elif self._has_gone_on:
            self._is_awake = self._has_gone_on = False
            self._vigil.came()
            self._stay_awake()
        elif self._vigil.goes_on():
            # With a callback scheduled, the loop polls for events without waiting.
            self._soon(self._look)
        else:
            self._is_awake = False
