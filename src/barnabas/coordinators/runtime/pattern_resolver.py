"""Resolves regular expression subscriptions to topics, off the event loop."""

import asyncio
import logging

from barnabas.base.re2_patterns import NotRe2
from barnabas.base.re2_work import PatternWork, TooManyPatterns
from barnabas.base.tasks import Tasks
from barnabas.coordinators.group.consumer.patterns import Found, TopicPatterns

logger = logging.getLogger(__name__)


class PatternResolver:
    """resolve() is for requests that bring a new expression; refreshes run in the background."""

    def __init__(self, patterns: TopicPatterns, work: PatternWork, tasks: Tasks) -> None:
        self._patterns = patterns
        self._work = work
        self._tasks = tasks
        self._under_way: dict[str, asyncio.Future[None]] = {}
        patterns.on_wanted = self._begin

    async def resolve(self, regex: str) -> None:
        """Resolve one expression. TooManyPatterns if too many are queued."""
        under_way = self._under_way.get(regex)
        if under_way is not None:
            # Shielded, because another request owns it.
            await asyncio.shield(under_way)
            return
        done = self._under_way[regex] = asyncio.get_running_loop().create_future()
        try:
            await self._resolve(regex)
        finally:
            del self._under_way[regex]
            done.set_result(None)

    async def _resolve(self, regex: str) -> None:
        patterns = self._patterns
        compiled = patterns.compiled(regex)
        if compiled is None:
            try:
                compiled = await self._work.compile(regex)
            except NotRe2 as error:
                compiled = error.with_traceback(None)
            patterns.put_compiled(regex, compiled)
        # Topics created from here on require a new result.
        names, version = patterns.names, patterns.image.offset
        topics = [] if isinstance(compiled, NotRe2) else await self._work.match(compiled, names)
        patterns.put(regex, Found(frozenset(topics), version))

    def _begin(self) -> None:
        self._tasks.start(self._resolve_wanted())

    async def _resolve_wanted(self) -> None:
        wanted = self._patterns.wanted
        try:
            while wanted:
                regex = next(iter(wanted))
                await self.resolve(regex)
                del wanted[regex]
        except TooManyPatterns as busy:
            logger.warning("regular expression subscriptions not refreshed error=%s", busy)
        finally:
            # The next heartbeats request them again.
            wanted.clear()
