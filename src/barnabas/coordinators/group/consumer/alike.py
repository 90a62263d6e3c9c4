"""Assignments that are alike, kept once.

Most groups are small and many read the same topics, so that thousands of members have partition 0 of the same
topic, and have had it since the same epoch. What they hold is never changed, so it can be one object.

While a group grows each of its members has one assignment after the other. What nobody has any more is
forgotten, or that history would soon be more than what there is.
"""

from sys import getrefcount
from typing import Any, Final, Generic, TypeAlias, TypeVar

from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.consumer.member import NOTHING, Held, epochs_of, held_of
from barnabas.protocol.stored.consumer_groups import TopicPartition, TopicPartitions

# More different ones than this are not remembered at a time. Those forgotten live on with their holders.
ALIKE_MAX: Final = 10_000
# With so many it is first looked at which of them are in use.
SWEEP_MIN: Final = 256
# The references to one that nobody has: that of the table, and that of the question.
_UNUSED: Final = 2

# Of each topic its id, how many partitions, these, and what else there is of each. Flat, because a tuple in a
# tuple takes twice the memory.
_Key: TypeAlias = tuple[Any, ...]
_Kept = TypeVar("_Kept")


class Remembered(Generic[_Kept]):
    """By a key that says all of it, what somebody may have again."""

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
        """Forget what nobody has; all, if what is left would fill the table again soon.

        The next time is when there are twice as many, so it costs a step for each that is added.
        """
        known = self._by_key
        used = [key for key in list(known) if getrefcount(known[key]) > _UNUSED]
        if 2 * len(used) > ALIKE_MAX:
            used = []
        self._by_key = {key: known[key] for key in used}
        self._sweep_at = max(2 * len(used), SWEEP_MIN)


class Alike:
    """What members should have, and what they hold."""

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
        """One that is the same, and that others may have as well."""
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
        """As target_like()."""
        if not held:
            return NOTHING
        flat: list[object] = []
        for topic_id, since in held.items():
            flat += (topic_id, len(since), *since, *since.values())
        key = tuple(flat)
        found = self._held.get(key)
        return self._held.add(key, held) if found is None else found


# One for all shards: their groups read the same topics.
ALIKE: Final = Alike()
