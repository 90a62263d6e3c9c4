"""The links between simulated hosts: delays, cuts and refused connections.

Tests switch faults on and off through SimNetwork. A link has a direction, so a cable can be cut one way.
"""

from random import Random
from typing import Final

Bounds = tuple[float, float]
Link = tuple[str, str]

# Default delay in one direction: a local network with a little jitter.
DELAY_MS: Final[Bounds] = (0.02, 0.5)


class Links:
    """The state of every faulty link."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.usual_delay_ms: Bounds = DELAY_MS
        self._cut_since: dict[Link, float] = {}
        self._refused: set[Link] = set()
        self._delays_ms: dict[Link, Bounds] = {}

    def cut(self, link: Link, now_s: float) -> None:
        self._cut_since.setdefault(link, now_s)

    def refuse(self, link: Link) -> None:
        self._refused.add(link)

    def delay(self, link: Link, bounds_ms: Bounds) -> None:
        least, most = bounds_ms
        if not 0 <= least <= most:
            raise ValueError(f"invalid delays {least} to {most} ms, expected 0 <= least <= most")
        self._delays_ms[link] = bounds_ms

    def heal(self, link: Link) -> float | None:
        """Remove all faults of a link. Return the time since when it was cut, if it was."""
        self._refused.discard(link)
        self._delays_ms.pop(link, None)
        return self._cut_since.pop(link, None)

    def faulty(self) -> list[Link]:
        """Every link with a fault or a delay of its own."""
        return sorted(self._refused.union(self._cut_since, self._delays_ms))

    def is_up(self, link: Link) -> bool:
        return link not in self._cut_since

    def refuses(self, link: Link) -> bool:
        return link in self._refused

    def delay_s(self, link: Link) -> float:
        """A random delay for the next item on this link."""
        return self._rng.uniform(*self._delays_ms.get(link, self.usual_delay_ms)) / 1000
