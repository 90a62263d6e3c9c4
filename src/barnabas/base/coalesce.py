"""Share one run of an action, such as a sync, between all callers that wait for it."""

import asyncio
from collections.abc import Awaitable, Callable


class Coalesced:
    """Runs one action at a time; all callers that arrive during a run share the next one.

    The run that a caller awaits always starts after its call, so it includes the caller's changes.
    """

    def __init__(self, action: Callable[[], Awaitable[None]]) -> None:
        self._action = action
        self._running = asyncio.Lock()
        self._asked = 0
        self._done = 0

    async def run(self) -> None:
        self._asked += 1
        mine = self._asked
        async with self._running:
            if self._done >= mine:
                return
            serves = self._asked
            await self._action()
            self._done = serves
