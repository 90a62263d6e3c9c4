"""Members on a scale: whose turn it is to get a partition, and whose to lose one.

Those with the least get one each in turn; when they have come up to the next ones, those join them. Those
with the most lose one each in turn in the same way. Ties go by position. So whoever gives or takes moves one
step and nobody has to be sorted again.
"""

from collections.abc import Sequence


class Scale:
    """For the subscribers of one topic at a time. The caller changes `loads` as it gives and takes."""

    def __init__(self, loads: Sequence[int]) -> None:
        self._loads = loads
        self._members: list[int] = []
        # Of those who have least: how much that is, how many they are, and who is next.
        self._light_load = 0
        self._light_end = 0
        self._light_next = 0
        # The same of those who have most, from the far end. Who is past _heavy_end has been set aside.
        self._heavy_load = 0
        self._heavy_start = 0
        self._heavy_end = 0
        self._heavy_next = 0

    def weigh(self, members: list[int]) -> int:
        """Put these on it. Returns by how much the heaviest is heavier than the lightest."""
        self._members = sorted(members, key=self._loads.__getitem__)
        count = len(members)
        lightest, heaviest = self._loads[self._members[0]], self._loads[self._members[-1]]
        self._light_load, self._light_end, self._light_next = lightest - 1, 0, 0
        self._heavy_load, self._heavy_start = heaviest + 1, count
        self._heavy_end, self._heavy_next = count, count - 1
        return heaviest - lightest

    def lightest(self) -> int:
        """Who is to get the next partition. The caller gives it before asking again."""
        if self._light_next >= self._light_end:
            # All of them have got one: they are now as heavy as the next ones.
            self._light_load += 1
            while self._light_end < len(self._members) and self._load(self._light_end) == self._light_load:
                self._light_end += 1
            self._light_next = 0
        member = self._members[self._light_next]
        self._light_next += 1
        return member

    def heaviest(self) -> int | None:
        """Who is to lose the next partition; None if nobody is left who could."""
        if self._heavy_next < self._heavy_start:
            if self._heavy_end > self._heavy_start:
                self._heavy_load -= 1
            elif self._heavy_start > 0:
                # All of them were set aside: go down to the next ones, however far that is.
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
        """The last heaviest() has nothing to lose here, and is not named again."""
        place, last = self._heavy_next + 1, self._heavy_end - 1
        self._members[place], self._members[last] = self._members[last], self._members[place]
        self._heavy_end -= 1

    @property
    def balanced(self) -> bool:
        return self._heavy_load - self._light_load <= 1

    def _load(self, place: int) -> int:
        return self._loads[self._members[place]]
