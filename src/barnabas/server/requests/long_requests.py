"""Schedule long requests: each works for a few milliseconds, then other clients are served.

However many long requests there are, the event loop runs one slice of one of them per iteration. So a
well-behaved client waits for one slice at most.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import Final, TypeVar

from barnabas.server.requests.slices import AT_ONCE

T = TypeVar("T")

# Long requests that are decoded and processed at the same time. Others wait as undecoded bytes.
AT_ONCE_MAX: Final = 4


class ClientGone(Exception):
    """The client of a long request has closed its connection."""


class LongRequests:
    """The long requests of one broker."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE_MAX)
        self._paused: deque[asyncio.Future[None]] = deque()
        self._is_due = False
        # For metrics.
        self.begun = 0
        self.waiting = 0

    async def __aenter__(self) -> "LongRequests":
        """Wait for one of the AT_ONCE_MAX places."""
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        self.begun += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self._places.release()

    async def pause(self) -> None:
        """End a slice; return when it is this request's turn again."""
        turn = asyncio.get_running_loop().create_future()
        self._paused.append(turn)
        self._wake_soon()
        await turn

    async def run(self, steps: Generator[None, None, T], is_gone: Callable[[], bool] | None = None) -> T:
        """Run a generator to its end, with a pause after each step, and return its result.

        ClientGone if `is_gone` reports that the result is no longer needed.
        """
        while True:
            if is_gone is not None and is_gone():
                raise ClientGone
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            await self.pause()

    async def collect(self, items: Iterable[T]) -> list[T]:
        """Return what an iterator yields, with a pause after every AT_ONCE items."""
        found: list[T] = []
        remaining = iter(items)
        while piece := list(islice(remaining, AT_ONCE)):
            found += piece
            await self.pause()
        return found

    def _wake_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._wake_one)

    def _wake_one(self) -> None:
        self._is_due = False
        while self._paused:
            turn = self._paused.popleft()
            # Cancelled if its request was.
            if not turn.done():
                turn.set_result(None)
                break
        if self._paused:
            self._wake_soon()
