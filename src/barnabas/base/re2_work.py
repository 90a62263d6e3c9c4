"""Compile and match patterns of clients, with at most one thread of the executor for all of them.

Work is done in pieces of about 20 ms; longer work queues again for each piece. RE2 matches without the
interpreter's lock, so the event loop keeps running.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.base.executor import Executor
from barnabas.base.re2_patterns import compile_re2, match_some

# Maximum number of patterns waiting to be compiled or matched. Further clients must retry.
WAITING_MAX: Final = 1_000


class TooManyPatterns(BarnabasError):
    """Too many patterns are waiting; retry later."""

    def __init__(self) -> None:
        super().__init__(f"{WAITING_MAX} patterns wait to be matched; retry later")


class PatternWork:
    """The queue of one broker. Its methods raise TooManyPatterns if too many patterns are waiting."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        # Also for metrics.
        self.waiting = 0
        # asyncio locks are fair: waiters get it in order.
        self._turn = asyncio.Lock()

    async def compile(self, text: str) -> Any:
        """Return the compiled pattern. NotRe2 if it is invalid or too large."""
        with self._place():
            async with self._turn:
                return await self._executor.run(partial(compile_re2, text))

    async def match(self, pattern: Any, names: Sequence[str]) -> list[str]:
        """Return the names that match as a whole, in their order."""
        found: list[str] = []
        at = 0
        with self._place():
            while at < len(names):
                async with self._turn:
                    at, some = await self._executor.run(partial(match_some, pattern, names, at))
                found += some
        return found

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self.waiting >= WAITING_MAX:
            raise TooManyPatterns
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1
