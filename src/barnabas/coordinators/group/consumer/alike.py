"""Assignments that are alike, kept once.

Most groups are small and many read the same topics, so that thousands of members have partition 0 of the same
topic, and have had it since the same epoch. What they hold is never changed, so it can be one object.
"""

from typing import Final

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.consumer.member import NOTHING, Held, held_of
from barnabas.protocol.stored.consumer_groups import TopicPartition, TopicPartitions

# More different ones than this are not remembered at a time. Those forgotten live on with their holders.
ALIKE_MAX: Final = 10_000
_Target = tuple[tuple[Uuid, tuple[int, ...]], ...]
_Current = tuple[tuple[Uuid, tuple[int, ...], tuple[int, ...] | int], ...]


class Alike:
    """One shard's."""

    def __init__(self) -> None:
        self._targets: dict[_Target, Assignment] = {}
        self._held: dict[_Current, Held] = {}

    def target(self, topics: list[TopicPartition]) -> Assignment:
        key = tuple((topic.topic_id, tuple(topic.partitions)) for topic in topics)
        found = self._targets.get(key)
        if found is None:
            if len(self._targets) >= ALIKE_MAX:
                self._targets.clear()
            found = {topic.topic_id: frozenset(topic.partitions) for topic in topics}
            self._targets[key] = found
        return found

    def held(self, topics: list[TopicPartitions], member_epoch: int) -> Held:
        if not topics:
            return NOTHING
        key = tuple(
            (
                topic.topic_id,
                tuple(topic.partitions),
                member_epoch if topic.assignment_epochs is None else tuple(topic.assignment_epochs),
            )
            for topic in topics
        )
        found = self._held.get(key)
        if found is None:
            if len(self._held) >= ALIKE_MAX:
                self._held.clear()
            found = self._held[key] = held_of(topics, member_epoch)
        return found
