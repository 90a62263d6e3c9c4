"""Finds the least and the most loaded subscribers of a topic while partitions move between them.

The least loaded members get one partition each in turn, until they reach the load of the next ones, which
then join them. The most loaded ones lose one each in the same way. Ties are resolved by position. So each
move costs constant time and members are sorted only once.
"""

from collections.abc import Sequence


class Scale:
    """Used for the subscribers of one topic at a time. The caller updates `loads` with each move."""

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
