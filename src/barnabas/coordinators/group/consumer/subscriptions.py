"""The subscribed topics of a group, and the index of groups by topic.

Subscriptions are counts, so that the cost of a change depends only on the changed member.
"""

from collections.abc import Container, Iterable, Iterator, Set
from typing import NamedTuple

from barnabas.coordinators.group.assignors.metadata_hash import group_hash, topic_hash
from barnabas.coordinators.group.consumer.member import ConsumerMember
from barnabas.coordinators.group.context import ShardContext


class ResolvedRegex(NamedTuple):
    """The last result of a regular expression."""

    topics: frozenset[str]
    # The metadata offset of the result.
    version: int
    time_ms: int


class Subscriptions:
    """Counts of members by topic and by regular expression, and the results of the expressions."""

    __slots__ = ("_by_name", "_by_regex", "regexes", "resolved")

    def __init__(self) -> None:
        # Number of members that name each topic; number of resolved expressions that match each topic.
        self._by_name: dict[str, int] = {}
        self._by_regex: dict[str, int] = {}
        # Number of members by expression.
        self.regexes: dict[str, int] = {}
        self.resolved: dict[str, ResolvedRegex] = {}

    def __contains__(self, topic: object) -> bool:
        return topic in self._by_name or topic in self._by_regex

    def __len__(self) -> int:
        """Upper bound of the number of topics: those both named and matched count twice."""
        return len(self._by_name) + len(self._by_regex)

    def __iter__(self) -> Iterator[str]:
        yield from self._by_name
        for topic in self._by_regex:
            if topic not in self._by_name:
                yield topic

    def copy(self) -> "Subscriptions":
        other = Subscriptions()
        other._by_name = self._by_name.copy()
        other._by_regex = self._by_regex.copy()
        other.regexes = self.regexes.copy()
        other.resolved = self.resolved.copy()
        return other

    def replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> set[str]:
        """Replace a member. Return the topics that the group may have gained or lost."""
        touched: set[str] = set()
        old_topics = old.topics if old else ()
        new_topics = new.topics if new else ()
        if old_topics != new_topics:
            _count(self._by_name, new_topics, +1, touched)
            _count(self._by_name, old_topics, -1, touched)
        old_regex = old.regex if old else None
        new_regex = new.regex if new else None
        if old_regex != new_regex:
            _count(self.regexes, (new_regex,) if new_regex else (), +1, set())
            _count(self.regexes, (old_regex,) if old_regex else (), -1, set())
        return touched

    def resolve(self, regex: str, resolved: ResolvedRegex | None) -> set[str]:
        """Set the result of an expression, or remove it if None. Returns the same as replace()."""
        touched: set[str] = set()
        old = self.resolved.pop(regex, None)
        if resolved is not None:
            self.resolved[regex] = resolved
            _count(self._by_regex, resolved.topics, +1, touched)
        if old is not None:
            _count(self._by_regex, old.topics, -1, touched)
        return touched

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The topics that a member subscribes to, by name and by expression."""
        resolved = self.resolved.get(member.regex) if member.regex else None
        if resolved is None:
            return frozenset(member.topics)
        return resolved.topics.union(member.topics) if member.topics else resolved.topics

    def homogeneous(self, members: int) -> bool:
        """Whether all members certainly have equal subscriptions, judged by the counts."""
        if not self.regexes:
            return all(count == members for count in self._by_name.values())
        if next(iter(self.regexes.values())) != members:
            return False
        # All members have the same expression. A topic named in addition may belong to only some of them.
        return not self._by_name and all(count == 1 for count in self._by_regex.values())


def _count(counts: dict[str, int], keys: Iterable[str], change: int, touched: set[str]) -> None:
    for key in keys:
        count = counts.get(key, 0) + change
        if count > 0:
            counts[key] = count
        else:
            counts.pop(key, None)
        if count == max(change, 0):
            touched.add(key)


class TopicIndex:
    """Groups of a shard by subscribed topic, and cached hashes of these topics. Detects changes of topics."""

    def __init__(self, context: ShardContext) -> None:
        self._context = context
        self._groups: dict[str, set[str]] = {}
        self._hashes: dict[str, int] = {}
        # Previous topics, to distinguish created from altered ones.
        self._known = context.image.topics
        # The metadata offset of the last created topic: older results of expressions are outdated.
        self.new_since = context.image.offset

    def update(self, group_id: str, names: Iterable[str], subscriptions: Container[str]) -> None:
        """Update the index after a group's subscriptions to some of `names` have changed."""
        for name in names:
            if name in subscriptions:
                self._groups.setdefault(name, set()).add(group_id)
                continue
            groups = self._groups.get(name)
            if groups is None:
                continue
            groups.discard(group_id)
            if not groups:
                del self._groups[name]
                self._hashes.pop(name, None)

    def changed(self, names: Set[str]) -> set[str]:
        """TopicIndex were created, altered or deleted in a new image. Return the affected groups."""
        topics = self._context.image.topics
        for name in names:
            topic, known = topics.get(name), self._known.get(name)
            if topic is not None and (known is None or known.id != topic.id):
                self.new_since = self._context.image.offset
            self._hashes.pop(name, None)
        self._known = topics
        return {group_id for name in names for group_id in self._groups.get(name, ())}

    def hash_of(self, names: Iterable[str]) -> int:
        """The metadata hash of these topics. Nonexistent ones are ignored."""
        image = self._context.image
        hashes = {}
        for name in names:
            topic = image.topics.get(name)
            if topic is None:
                continue
            found = self._hashes.get(name)
            if found is None:
                found = self._hashes[name] = topic_hash(topic, image.brokers)
            hashes[name] = found
        return group_hash(hashes)
