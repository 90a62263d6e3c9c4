"""Many who want the same thing written share the writing."""

import asyncio
from collections.abc import Awaitable, Callable


class Coalesced:
    """Runs one action at a time; callers that come while it runs are served together by the next run.

    Whoever awaits run() knows that the action began after the call, so it has seen what the caller changed.
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
