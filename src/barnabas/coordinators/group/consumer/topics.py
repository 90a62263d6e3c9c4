"""Index of the groups of a shard by subscribed topic, and detection of topic changes."""

from collections.abc import Container, Iterable, Set

from barnabas.coordinators.group.assignors.metadata_hash import group_hash, topic_hash
from barnabas.coordinators.group.context import ShardContext


class Topics:
    """Groups by topic, and cached hashes of the subscribed topics."""

    def __init__(self, context: ShardContext) -> None:
        self._context = context
        self._groups: dict[str, set[str]] = {}
        self._hashes: dict[str, int] = {}
        # Previous topics, to distinguish created from altered ones.
        self._known = context.image.topics
        # The metadata offset of the last created topic: older results of expressions are outdated.
        self.new_since = context.image.offset

    def follow(self, group_id: str, names: Iterable[str], subscriptions: Container[str]) -> None:
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
        """Topics were created, altered or deleted in a new image. Return the affected groups."""
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
