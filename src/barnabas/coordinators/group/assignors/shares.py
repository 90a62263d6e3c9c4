"""Incremental form of homogeneous.py: keeps partition counts of members, so that a join is cheap (compiled).

When a thousand members join at once, each join is a new assignment, and most members keep theirs. Counts are
updated as records are applied; deal() then makes the same decision as homogeneous.py, but touches only
members whose assignment changes. Inconsistent states are left to homogeneous.py.
"""

from collections.abc import Iterable
from typing import Final

from mypy_extensions import i64

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.homogeneous import give, kept_of
from barnabas.coordinators.group.assignors.spec import Assignment, TopicSpec, in_order_of_ids

# Special counts: a member without a target, and a member that has left.
_NO_TARGET: Final = -1
_GONE: Final = -2
# Slots of departed members that are tolerated before compaction.
_GAPS: Final = 8
_NOTHING: Final[Assignment] = {}


class Shares:
    """The counts of one group. Code that changes members or targets must update or drop this object."""

    def __init__(self, members: Iterable[str], targets: dict[str, Assignment]) -> None:
        self._targets: Final = targets
        # Members in the order of the group, and the number of partitions in each target.
        self._ids: list[str] = []
        self._held: list[int] = []
        self._positions: dict[str, int] = {}
        # Number of targets that contain each partition, by topic: 1 unless an assignment is only partly
        # applied.
        self._owners: dict[Uuid, dict[int, int]] = {}
        self._highest: dict[Uuid, int] = {}
        self._contested = 0
        for member_id in members:
            self.add(member_id)
            target = targets.get(member_id)
            if target is not None:
                self.put(member_id, None, target)

    def add(self, member_id: str) -> None:
        """Add a member after the others."""
        self._positions[member_id] = len(self._ids)
        self._ids.append(member_id)
        self._held.append(_NO_TARGET)

    def remove(self, member_id: str) -> bool:
        """Remove a member. False if it still has a target: then the counts are invalid."""
        position = self._positions.pop(member_id)
        if self._held[position] != _NO_TARGET:
            return False
        self._held[position] = _GONE
        if len(self._held) > 2 * len(self._positions) + _GAPS:
            self._close_ranks()
        return True

    def _close_ranks(self) -> None:
        staying = [position for position, held in enumerate(self._held) if held != _GONE]
        self._ids = [self._ids[position] for position in staying]
        self._held = [self._held[position] for position in staying]
        self._positions = {member_id: position for position, member_id in enumerate(self._ids)}

    def put(self, member_id: str, had: Assignment | None, target: Assignment | None) -> bool:
        """Change a member's target. False if it is not a member: then the counts are invalid."""
        position = self._positions.get(member_id)
        if position is None:
            return False
        before = _NOTHING if had is None else had
        after = _NOTHING if target is None else target
        for topic, numbers in before.items():
            # Only the difference: a member keeps most of its partitions.
            kept = after.get(topic)
            self._release(topic, numbers if kept is None else numbers - kept)
        held: i64 = 0
        for topic, numbers in after.items():
            held += len(numbers)
            kept = before.get(topic)
            self._take(topic, numbers if kept is None else numbers - kept)
        self._held[position] = _NO_TARGET if target is None else held
        return True

    def _take(self, topic: Uuid, numbers: frozenset[int]) -> None:
        owners = self._owners.get(topic)
        if owners is None:
            owners = self._owners[topic] = {}
            self._highest[topic] = -1
        highest = self._highest[topic]
        for number in numbers:
            count = owners.get(number, 0) + 1
            owners[number] = count
            if count == 2:
                self._contested += 1
            if number > highest:
                highest = number
        self._highest[topic] = highest

    def _release(self, topic: Uuid, numbers: frozenset[int]) -> None:
        owners = self._owners[topic]
        for number in numbers:
            count = owners[number] - 1
            if count == 0:
                del owners[number]
            else:
                owners[number] = count
                if count == 1:
                    self._contested -= 1
        if not owners:
            del self._owners[topic]

    def deal(
        self, joining: str, subscribed: frozenset[Uuid], topics: dict[Uuid, TopicSpec]
    ) -> dict[str, Assignment] | None:
        """The changed targets, with `joining` among the members; None if the counts are inconsistent.

        In the order of the members. Includes every member that has no target yet.
        """
        if not self._adds_up(subscribed, topics):
            return None
        free = self._unclaimed(subscribed, topics)
        is_new = joining not in self._positions
        total: i64 = 0
        for topic in subscribed:
            total += topics[topic].partitions
        still_to_come: i64 = len(self._positions) + (1 if is_new else 0)
        quota: i64 = total // still_to_come
        extras: i64 = total % still_to_come
        changed: dict[str, Assignment] = {}
        wanting: list[tuple[str, int]] = []
        held_by = self._held
        size: i64 = len(held_by)
        last: i64 = size + 1 if is_new else size
        position: i64 = 0
        while position < last:
            held: i64 = _NO_TARGET
            if position < size:
                held = held_by[position]
            if held == _GONE:
                position += 1
                continue
            allowed: i64 = quota + 1 if extras > 0 else quota
            if held == _NO_TARGET:
                changed[self._ids[position] if position < size else joining] = _NOTHING
                held = 0
            elif held > allowed:
                member_id = self._ids[position]
                changed[member_id] = kept_of(self._targets[member_id], subscribed, allowed, free)
                held = allowed
            wants: i64 = allowed - held
            if extras > 0:
                if wants > 0 and still_to_come > extras:
                    # A later member may already have an extra partition.
                    wants -= 1
                else:
                    extras -= 1
            still_to_come -= 1
            if wants > 0:
                member_id = self._ids[position] if position < size else joining
                if member_id not in changed:
                    changed[member_id] = self._targets[member_id]
                wanting.append((member_id, wants))
            position += 1
        give(free, wanting, changed)
        return changed

    def _adds_up(self, subscribed: frozenset[Uuid], topics: dict[Uuid, TopicSpec]) -> bool:
        """Whether each assigned partition has one owner, exists, and belongs to a subscribed topic."""
        if self._contested:
            return False
        for topic in self._owners:
            if topic not in subscribed or self._highest[topic] >= topics[topic].partitions:
                return False
        return True

    def _unclaimed(
        self, subscribed: frozenset[Uuid], topics: dict[Uuid, TopicSpec]
    ) -> list[tuple[Uuid, int]]:
        found: list[tuple[Uuid, int]] = []
        for topic in in_order_of_ids(subscribed):
            owners = self._owners.get(topic)
            count = topics[topic].partitions
            if owners is None:
                found += [(topic, number) for number in range(count)]
            elif len(owners) < count:
                found += [(topic, number) for number in range(count) if number not in owners]
        return found
