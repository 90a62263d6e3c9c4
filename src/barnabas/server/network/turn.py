"""The end of a turn of the loop, when answers are sent.

A turn serves everybody whose requests are here. If each answer went out as soon as it is ready, it would wake
its client each time, which is most of what it costs to send one. Sent together, they find clients awake; and
who asks again meanwhile is served together with others in the next turn.
"""

import asyncio
from collections import deque
from typing import Protocol


class Sender(Protocol):
    """Who has something to send."""

    def send_now(self) -> None: ...


class Turn:
    """Calls everybody who was added since the last one ended, once each, in the order in which they came."""

    def __init__(self) -> None:
        self._due: deque[Sender] = deque()
        self._has_end = False

    def add(self, sender: Sender) -> None:
        self._due.append(sender)
        if not self._has_end:
            self._has_end = True
            asyncio.get_running_loop().call_soon(self._end)

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
                asyncio.get_running_loop().call_soon(self._end)
