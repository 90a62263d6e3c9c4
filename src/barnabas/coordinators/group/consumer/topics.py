"""The cluster's topics as the groups of a shard see them: who subscribes to what, and what has changed."""

from collections.abc import Container, Iterable, Set

from barnabas.coordinators.group.assignors.metadata_hash import group_hash, topic_hash
from barnabas.coordinators.group.ground import Ground


class Topics:
    """Groups by topic, and the hash of each topic that somebody subscribes to, until it changes."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._groups: dict[str, set[str]] = {}
        self._hashes: dict[str, int] = {}
        # To tell topics that are new from those that were altered.
        self._known = ground.image.topics
        # The metadata offset by which the last new topic was there: expressions of before are out of date.
        self.new_since = ground.image.offset

    def follow(self, group_id: str, names: Iterable[str], subscriptions: Container[str]) -> None:
        """A group has changed what it subscribes to, in some of these names."""
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
        """The image is a new one: topics were made, altered, deleted. Returns the groups that it concerns."""
        topics = self._ground.image.topics
        for name in names:
            topic, known = topics.get(name), self._known.get(name)
            if topic is not None and (known is None or known.id != topic.id):
                self.new_since = self._ground.image.offset
            self._hashes.pop(name, None)
        self._known = topics
        return {group_id for name in names for group_id in self._groups.get(name, ())}

    def hash_of(self, names: Iterable[str]) -> int:
        """By this number a group sees that its topics have changed. Those that do not exist do not count."""
        image = self._ground.image
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
