"""Cache of the topics that regular expressions match, for all groups of a broker.

A result is valid until a topic is created or deleted. Small expressions are matched against few topics
immediately; all others by runtime/pattern_resolver.py, before a request with a new expression is processed,
or when a group has requested a refresh.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from barnabas.base.re2_patterns import NotRe2, compile_re2, is_small
from barnabas.coordinators.group.group import GroupError
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.protocol.error_codes import ErrorCode

# Cached compiled expressions; each may use 1 MiB.
COMPILED_MAX: Final = 32
# Cached results, and the total number of topics in them.
RESULTS_MAX: Final = 256
RESULT_TOPICS_MAX: Final = 200_000
# Queued expressions. Further ones are requested again by later heartbeats.
WANTED_MAX: Final = 1_000
# Limits for immediate matching, which takes at most 2 ms: topics, and characters times program size.
_TOPICS_AT_ONCE: Final = 500
_WORK_AT_ONCE: Final = 400_000


class Found(NamedTuple):
    """The topics that an expression matches, and the metadata offset of the match."""

    topics: frozenset[str]
    version: int


class TopicPatterns:
    """`on_wanted` is called when the first expression is queued."""

    def __init__(self) -> None:
        self.image = EMPTY_IMAGE
        self.names: tuple[str, ...] = ()
        self._chars = 0
        # The metadata offset of the last created or deleted topic.
        self._since = EMPTY_IMAGE.offset
        self._compiled: OrderedDict[str, Any] = OrderedDict()
        self._results: OrderedDict[str, Found] = OrderedDict()
        self._result_topics = 0
        self.wanted: Final[dict[str, None]] = {}
        self.on_wanted: Callable[[], None] = lambda: None

    # For groups

    def check(self, regex: str) -> None:
        """GroupError if the regular expression is invalid or too large."""
        compiled = self.compiled(regex)
        if compiled is None:
            compiled = self.compile(regex)
        if isinstance(compiled, NotRe2):
            raise GroupError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{compiled}.")

    def topics_of(self, regex: str, image: MetadataImage) -> Found | None:
        """The topics that an expression matches; if outdated, the last result or None, and a refresh is
        queued."""
        found = self.now(regex, image)
        if found is not None:
            return found
        if len(self.wanted) < WANTED_MAX:
            is_first = not self.wanted
            self.wanted[regex] = None
            if is_first:
                self.on_wanted()
        return self._results.get(regex)

    def now(self, regex: str, image: MetadataImage) -> Found | None:
        """The current result if it is cached or can be computed immediately, else None."""
        self._see(image)
        found = self._results.get(regex)
        if found is not None and found.version >= self._since:
            self._results.move_to_end(regex)
            return Found(found.topics, image.offset)
        if len(self.names) > _TOPICS_AT_ONCE:
            return None
        compiled = self.compiled(regex)
        if compiled is None and is_small(regex):
            compiled = self.compile(regex)
        if compiled is None:
            return None
        if isinstance(compiled, NotRe2):
            # A later release may have accepted it: here it matches nothing.
            return Found(frozenset(), image.offset)
        if compiled.programsize * self._chars > _WORK_AT_ONCE:
            return None
        matches = compiled.fullmatch
        found = Found(frozenset(name for name in self.names if matches(name)), image.offset)
        self.put(regex, found)
        return found

    # For the resolver

    def compiled(self, regex: str) -> Any:
        """The cached compiled expression, or its NotRe2 error; None if not cached."""
        found = self._compiled.get(regex)
        if found is not None:
            self._compiled.move_to_end(regex)
        return found

    def compile(self, regex: str) -> Any:
        try:
            return self.put_compiled(regex, compile_re2(regex))
        except NotRe2 as error:
            return self.put_compiled(regex, error.with_traceback(None))

    def put_compiled(self, regex: str, compiled: Any) -> Any:
        self._compiled[regex] = compiled
        if len(self._compiled) > COMPILED_MAX:
            self._compiled.popitem(last=False)
        return compiled

    def put(self, regex: str, found: Found) -> None:
        """Cache a result and evict old ones."""
        self._forget(regex)
        self._results[regex] = found
        self._result_topics += len(found.topics)
        while len(self._results) > RESULTS_MAX or (
            self._result_topics > RESULT_TOPICS_MAX and len(self._results) > 1
        ):
            self._forget(next(iter(self._results)))

    def _forget(self, regex: str) -> None:
        old = self._results.pop(regex, None)
        if old is not None:
            self._result_topics -= len(old.topics)

    def _see(self, image: MetadataImage) -> None:
        if image is self.image:
            return
        topics, known = image.topics, self.image.topics
        self.image = image
        if topics is known or topics.keys() == known.keys():
            return
        self.names = tuple(topics)
        self._chars = sum(map(len, self.names))
        self._since = image.offset
