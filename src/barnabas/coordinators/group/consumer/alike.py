"""Interning of equal assignments, to save memory.

Most groups are small and many read the same topics, so thousands of members have partition 0 of the same
topic, assigned in the same epoch. Assignments are immutable, so they can share one object.

While a group grows, each member gets one assignment after the other. Unused ones are dropped, because
otherwise this history would soon outgrow the assignments in use.
"""

from sys import getrefcount
from typing import Any, Final, Generic, TypeAlias, TypeVar

from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.consumer.member import NOTHING, Held, epochs_of, held_of
from barnabas.protocol.stored.consumer_groups import TopicPartition, TopicPartitions

# Maximum number of interned assignments. Dropped ones stay alive with their holders, but are no longer
# shared.
ALIKE_MAX: Final = 10_000
# Size at which the table is first swept for unused assignments.
SWEEP_MIN: Final = 256
# Reference count of an unused assignment: the table's reference and that of getrefcount().
_UNUSED: Final = 2

# Per topic: id, number of partitions, partitions, and epochs if any. Flat, because nested tuples take twice
# the memory.
_Key: TypeAlias = tuple[Any, ...]
_Kept = TypeVar("_Kept")


class Remembered(Generic[_Kept]):
    """A table of interned values by a key with their complete content."""

    __slots__ = ("_by_key", "_sweep_at")

    def __init__(self) -> None:
        self._by_key: dict[_Key, _Kept] = {}
        self._sweep_at = SWEEP_MIN

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: _Key) -> _Kept | None:
        return self._by_key.get(key)

    def add(self, key: _Key, one: _Kept) -> _Kept:
        if len(self._by_key) >= self._sweep_at:
            self._sweep()
        self._by_key[key] = one
        return one

    def _sweep(self) -> None:
        """Drop unused values; all values if the rest would soon fill the table again.

        The next sweep is at twice the size, so its amortized cost is constant per added value.
        """
        known = self._by_key
        used = [key for key in list(known) if getrefcount(known[key]) > _UNUSED]
        if 2 * len(used) > ALIKE_MAX:
            used = []
        self._by_key = {key: known[key] for key in used}
        self._sweep_at = max(2 * len(used), SWEEP_MIN)


class Alike:
    """Interned target assignments and held partitions."""

    def __init__(self) -> None:
        self._targets: Remembered[Assignment] = Remembered()
        self._held: Remembered[Held] = Remembered()

    def target(self, topics: list[TopicPartition]) -> Assignment:
        flat: list[object] = []
        for topic in topics:
            flat += (topic.topic_id, len(topic.partitions), *topic.partitions)
        key = tuple(flat)
        found = self._targets.get(key)
        if found is not None:
            return found
        return self._targets.add(key, {topic.topic_id: frozenset(topic.partitions) for topic in topics})

    def target_like(self, target: Assignment) -> Assignment:
        """An equal, interned target."""
        flat: list[object] = []
        for topic_id, numbers in target.items():
            flat += (topic_id, len(numbers), *sorted(numbers))
        key = tuple(flat)
        found = self._targets.get(key)
        return self._targets.add(key, target) if found is None else found

    def held(self, topics: list[TopicPartitions], member_epoch: int) -> Held:
        if not topics:
            return NOTHING
        flat: list[object] = []
        for topic in topics:
            flat += (topic.topic_id, len(topic.partitions), *topic.partitions)
            flat += epochs_of(topic, member_epoch)
        key = tuple(flat)
        found = self._held.get(key)
        return self._held.add(key, held_of(topics, member_epoch)) if found is None else found

    def held_like(self, held: Held) -> Held:
        """An equal, interned value of held partitions."""
        if not held:
            return NOTHING
        flat: list[object] = []
        for topic_id, since in held.items():
            flat += (topic_id, len(since), *since, *since.values())
        key = tuple(flat)
        found = self._held.get(key)
        return self._held.add(key, held) if found is None else found


# Shared by all shards, because their groups read the same topics.
ALIKE: Final = Alike()
