"""The uniform assignor for different subscriptions: the least loaded subscriber gets the next partition.

Unowned partitions are assigned first. Then, topic by topic, partitions move as long as one subscriber has at
least two more than another. Topics with the most partitions per subscriber come first, because they leave the
least choice. It ends when a whole round has changed nothing, or after _ROUNDS_MAX rounds.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, cast

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.spec import (
    Assignment,
    MemberSpec,
    TopicSpec,
    subscribers_by_topic,
    topic_order,
)

_ROUNDS_MAX: Final = 16


class Scale:
    """Finds the least and the most loaded subscribers of a topic while partitions move between them.

    The least loaded members get one partition each in turn, until they reach the load of the next ones, which
    then join them. The most loaded ones lose one each in the same way. Ties are resolved by position. So each
    move costs constant time and members are sorted only once.

    Used for the subscribers of one topic at a time. The caller updates `loads` with each move.
    """

    def __init__(self, loads: Sequence[int]) -> None:
        self._loads = loads
        self._members: list[int] = []
        # The least loaded members: their load, their count, and the index of the next one.
        self._light_load = 0
        self._light_end = 0
        self._light_next = 0
        # The same for the most loaded members, from the end. Members past _heavy_end were set aside.
        self._heavy_load = 0
        self._heavy_start = 0
        self._heavy_end = 0
        self._heavy_next = 0

    def weigh(self, members: list[int]) -> int:
        """Start with these members. Return the difference between the highest and the lowest load."""
        self._members = sorted(members, key=self._loads.__getitem__)
        count = len(members)
        lightest, heaviest = self._loads[self._members[0]], self._loads[self._members[-1]]
        self._light_load, self._light_end, self._light_next = lightest - 1, 0, 0
        self._heavy_load, self._heavy_start = heaviest + 1, count
        self._heavy_end, self._heavy_next = count, count - 1
        return heaviest - lightest

    def lightest(self) -> int:
        """The member that gets the next partition. The caller must assign it before the next call."""
        if self._light_next >= self._light_end:
            # All of them have got one more: now their load equals that of the next ones.
            self._light_load += 1
            while self._light_end < len(self._members) and self._load(self._light_end) == self._light_load:
                self._light_end += 1
            self._light_next = 0
        member = self._members[self._light_next]
        self._light_next += 1
        return member

    def heaviest(self) -> int | None:
        """The member that loses the next partition; None if no member is left."""
        if self._heavy_next < self._heavy_start:
            if self._heavy_end > self._heavy_start:
                self._heavy_load -= 1
            elif self._heavy_start > 0:
                # All of them were set aside: go down to the next lower load.
                self._heavy_load = self._load(self._heavy_start - 1)
            while self._heavy_start > 0 and self._load(self._heavy_start - 1) == self._heavy_load:
                self._heavy_start -= 1
            self._heavy_next = self._heavy_end - 1
        if self._heavy_next < 0:
            return None
        member = self._members[self._heavy_next]
        self._heavy_next -= 1
        return member

    def set_aside(self) -> None:
        """The last heaviest() has no partition of this topic to lose; do not return it again."""
        place, last = self._heavy_next + 1, self._heavy_end - 1
        self._members[place], self._members[last] = self._members[last], self._members[place]
        self._heavy_end -= 1

    @property
    def balanced(self) -> bool:
        return self._heavy_load - self._light_load <= 1

    def _load(self, place: int) -> int:
        return self._loads[self._members[place]]


def assign_by_load(
    members: Mapping[str, MemberSpec], topics: Mapping[Uuid, TopicSpec], claimed: Mapping[Uuid, Set[int]]
) -> dict[str, Assignment]:
    """`claimed` are the partitions whose owner still subscribes to them."""
    targets = _Targets(list(members.values()), topics)
    targets.give_unclaimed(claimed)
    targets.balance()
    return dict(zip(members, targets.result(), strict=True))


class _Targets:
    """The assignment under construction. Members are identified by their position."""

    def __init__(self, members: list[MemberSpec], topics: Mapping[Uuid, TopicSpec]) -> None:
        self._members = members
        self._subscribers = subscribers_by_topic(members)
        self._counts = {topic: topics[topic].partitions for topic in self._subscribers}
        self._changed: dict[int, dict[Uuid, set[int]]] = {}
        self._loads = [self._load_at_first(position) for position in range(len(members))]
        self._scale = Scale(self._loads)

    def _load_at_first(self, position: int) -> int:
        member = self._members[position]
        if member.owned.keys() <= member.topics:
            return sum(map(len, member.owned.values()))
        return sum(map(len, self._of(position).values()))

    def give_unclaimed(self, claimed: Mapping[Uuid, Set[int]]) -> None:
        wanting = [topic for topic, count in self._counts.items() if len(claimed.get(topic, ())) < count]
        for topic in self._crowded_first(wanting):
            self._scale.weigh(self._subscribers[topic])
            taken = claimed.get(topic, ())
            for partition in range(self._counts[topic]):
                if partition not in taken:
                    self._give(topic, partition, self._scale.lightest())

    def balance(self) -> None:
        if max(self._loads) - min(self._loads) <= 1:
            return
        shared = [topic for topic, subscribers in self._subscribers.items() if len(subscribers) > 1]
        in_order = self._crowded_first(shared)
        last_changed = None
        for _ in range(_ROUNDS_MAX):
            for topic in in_order:
                if topic == last_changed:
                    return
                if self._balance_topic(topic) or last_changed is None:
                    last_changed = topic

    def result(self) -> list[Assignment]:
        return [self._result_of(position) for position in range(len(self._members))]

    def _result_of(self, position: int) -> Assignment:
        owned = self._members[position].owned
        changed = self._changed.get(position)
        if changed is None:
            return cast("Assignment", owned)
        assignment = {topic: frozenset(partitions) for topic, partitions in changed.items() if partitions}
        return cast("Assignment", owned) if assignment == owned else assignment

    def _crowded_first(self, topics: Iterable[Uuid]) -> list[Uuid]:
        def order(topic: Uuid) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self._subscribers[topic])
            return -self._counts[topic] / subscribers, subscribers, topic_order(topic)

        return sorted(topics, key=order)

    def _balance_topic(self, topic: Uuid) -> bool:
        """Move partitions of the topic. True if any was moved."""
        if self._scale.weigh(self._subscribers[topic]) <= 1:
            return False
        # Partitions received on the way are not in a pile, so that none moves twice.
        piles = {position: sorted(self._held(topic, position)) for position in self._subscribers[topic]}
        moved = False
        while not self._scale.balanced:
            heaviest = self._scale.heaviest()
            while heaviest is not None and not piles[heaviest]:
                self._scale.set_aside()
                heaviest = self._scale.heaviest()
            if heaviest is None:
                break
            lightest = self._scale.lightest()
            if self._scale.balanced:
                break
            partition = piles[heaviest].pop()
            self._take(topic, partition, heaviest)
            self._give(topic, partition, lightest)
            moved = True
        return moved

    def _held(self, topic: Uuid, position: int) -> Set[int]:
        changed = self._changed.get(position)
        held = self._members[position].owned if changed is None else changed
        return held.get(topic, frozenset())

    def _of(self, position: int) -> dict[Uuid, set[int]]:
        """The mutable assignment of a member."""
        changed = self._changed.get(position)
        if changed is None:
            owned, topics = self._members[position].owned, self._members[position].topics
            changed = {topic: set(partitions) for topic, partitions in owned.items() if topic in topics}
            self._changed[position] = changed
        return changed

    def _give(self, topic: Uuid, partition: int, position: int) -> None:
        self._of(position).setdefault(topic, set()).add(partition)
        self._loads[position] += 1

    def _take(self, topic: Uuid, partition: int, position: int) -> None:
        self._of(position)[topic].remove(partition)
        self._loads[position] -= 1
