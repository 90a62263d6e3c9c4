"""The topics that regular expressions match, for all groups of a broker.

A result holds until a topic is made or deleted. Small expressions among few topics are resolved at once, when
a group asks; all others by runtime/pattern_resolver.py, before a request that brings one, or when a group has
wanted a new result.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from barnabas.base.re2_patterns import NotRe2, compile_re2, is_small
from barnabas.coordinators.group.errors import GroupError
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.protocol.error_codes import ErrorCode

# Compiled expressions at hand; each may use 1 MiB.
COMPILED_MAX: Final = 32
# Results at hand, and topics in all of them.
RESULTS_MAX: Final = 256
RESULT_TOPICS_MAX: Final = 200_000
# Expressions that wait for a new result. One more is wanted again by the next heartbeat.
WANTED_MAX: Final = 1_000
# Small patterns are matched at once, in two milliseconds at most: topics, and characters times program size.
_TOPICS_AT_ONCE: Final = 500
_WORK_AT_ONCE: Final = 400_000


class Found(NamedTuple):
    """The topics that an expression matches, and the metadata offset at which they were looked at."""

    topics: frozenset[str]
    version: int


class TopicPatterns:
    """`on_wanted` is called when the first expression waits for a result."""

    def __init__(self) -> None:
        self.image = EMPTY_IMAGE
        self.names: tuple[str, ...] = ()
        self._chars = 0
        # The offset of the image since which these are the topics.
        self._since = EMPTY_IMAGE.offset
        self._compiled: OrderedDict[str, Any] = OrderedDict()
        self._results: OrderedDict[str, Found] = OrderedDict()
        self._result_topics = 0
        self.wanted: Final[dict[str, None]] = {}
        self.on_wanted: Callable[[], None] = lambda: None

    # For groups

    def check(self, regex: str) -> None:
        """GroupError if it is not a regular expression, or too large a one."""
        compiled = self.compiled(regex)
        if compiled is None:
            compiled = self.compile(regex)
        if isinstance(compiled, NotRe2):
            raise GroupError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{compiled}.")

    def topics_of(self, regex: str, image: MetadataImage) -> Found | None:
        """Return the topics that an expression matches; the last result, or None, while a new one is made."""
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
        """The same if the result is at hand or made in no time, and else None."""
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
            # A later release may have taken it: it matches nothing here.
            return Found(frozenset(), image.offset)
        if compiled.programsize * self._chars > _WORK_AT_ONCE:
            return None
        matches = compiled.fullmatch
        found = Found(frozenset(name for name in self.names if matches(name)), image.offset)
        self.put(regex, found)
        return found

    # For the resolver

    def compiled(self, regex: str) -> Any:
        """The compiled expression, or the NotRe2 that came of it; None if it is not at hand."""
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
        """This is the result from now on."""
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
