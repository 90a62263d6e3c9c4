"""Patterns of clients, compiled and matched by one thread of the executor, whoever sends them and how many.

A piece of work takes about 20 ms, and whoever has more waits for the next turn with the others. RE2 matches
without the interpreter's lock, so the event loop goes on meanwhile.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.base.executor import Executor
from barnabas.base.re2_patterns import compile_re2, match_some

# Patterns that wait to be compiled or matched. A client with one more has to retry.
WAITING_MAX: Final = 1_000


class TooManyPatterns(BarnabasError):
    """So many patterns wait that one more is refused."""

    def __init__(self) -> None:
        super().__init__(f"{WAITING_MAX} patterns wait to be matched; retry later")


class PatternWork:
    """One for a broker. TooManyPatterns if too many wait."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        # Also for metrics.
        self.waiting = 0
        # Those who wait get it in the order in which they came.
        self._turn = asyncio.Lock()

    async def compile(self, text: str) -> Any:
        """Return the compiled pattern. NotRe2 if it is none, or too large."""
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
