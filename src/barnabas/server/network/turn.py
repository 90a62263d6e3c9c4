"""The end of a turn of the loop, when answers are sent.

A turn serves everybody whose requests are here. If each answer went out as soon as it is ready, it would wake
its client each time, which is most of what it costs to send one. Sent together, they find clients awake; and
who asks again meanwhile is served together with others in the next turn. When that is done, the loop stays
awake for a moment (vigil.py): for the next requests, and for sockets that take more of a large answer soon.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from mypy_extensions import i64

from barnabas.server.network.vigil import Vigil

# Requests of one connection that are begun in a turn: one read may hold thousands of small ones.
BEGUN_AT_ONCE_MAX: Final = 64
# Requests that connections with a backlog begin in a turn, all together. With very many of these connections
# each begins one.
BEGUN_TOGETHER_MAX: Final = 512


class Sender(Protocol):
    """Who has something to send."""

    def send_now(self) -> None: ...


class Turn:
    """Calls everybody who was added since the last one ended, once each, in the order in which they came."""

    def __init__(self, vigil: Vigil) -> None:
        self._due: deque[Sender] = deque()
        self._has_end = False
        self._vigil = vigil
        # Connections with requests that are left for the next turn.
        self.backlogs: i64 = 0
        self._is_awake = False
        self._has_gone_on = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def share(self) -> int:
        """How many requests a connection may begin at once, beside the others that have a backlog."""
        if self.backlogs * BEGUN_AT_ONCE_MAX <= BEGUN_TOGETHER_MAX:
            return BEGUN_AT_ONCE_MAX
        return int(max(BEGUN_TOGETHER_MAX // self.backlogs, 1))

    def add(self, sender: Sender) -> None:
        self._due.append(sender)
        if not self._has_end:
            self._has_end = True
            self._soon(self._end)

    def _soon(self, what: Callable[[], None]) -> None:
        # One turn belongs to one loop, which is running when somebody has something to send.
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._loop.call_soon(what)

    def _end(self) -> None:
        self._has_end = False
        try:
            # Whoever is added by this belongs to the next.
            for _ in range(len(self._due)):
                self._due.popleft().send_now()
        finally:
            # One that fails by a mistake does not take their turn from the others.
            if self._due and not self._has_end:
                self._has_end = True
                self._soon(self._end)
        self._stay_awake()

    def goes_on(self) -> None:
        """A sender that waited for its socket has sent more: who takes it, takes the rest as soon."""
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
            # Whoever has asked is served by now, and is answered right after this.
            self._is_awake = self._has_gone_on = False
            self._vigil.came()
        elif self._has_gone_on:
            self._is_awake = self._has_gone_on = False
            self._vigil.came()
            self._stay_awake()
        elif self._vigil.goes_on():
            # A loop with something to do asks for events without waiting for them.
            self._soon(self._look)
        else:
            self._is_awake = False
