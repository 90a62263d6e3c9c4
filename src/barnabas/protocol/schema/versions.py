"""Version ranges as Kafka writes them: "4-18", "12+", "3", "none"."""

from functools import cache
from typing import NamedTuple

NO_LIMIT = 32767


class Versions(NamedTuple):
    """An inclusive range; empty when first > last."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        if self.first > self.last:
            return "none"
        if self.last == NO_LIMIT:
            return f"{self.first}+"
        return f"{self.first}-{self.last}" if self.first != self.last else f"{self.first}"

    def all(self) -> range:
        assert self.last < NO_LIMIT, f"{self} has no end"
        return range(self.first, self.last + 1)


NEVER = Versions(0, -1)
ALWAYS = Versions(0, NO_LIMIT)


@cache
def parse_versions(text: str) -> Versions:
    if text == "none":
        return NEVER
    if text.endswith("+"):
        return Versions(int(text[:-1]), NO_LIMIT)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))
