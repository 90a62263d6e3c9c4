"""The leader's view of every replica's log end, and the resulting high watermark (pure)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

# An observer that has not fetched for this long is forgotten.
OBSERVER_SESSION_MS: Final = 300_000
# Any client can claim to be an observer. Above this number the one with the oldest fetch is forgotten.
OBSERVERS_MAX: Final = 4096


@dataclass(slots=True)
class Replica:
    """One node, which has synced everything below `end_offset`. Times are of the leader's monotonic clock."""

    id: int
    end_offset: int | None = None
    last_fetch_ms: int | None = None
    last_caught_up_ms: int | None = None
    # The leader's log end at the last fetch; a replica that reaches it by the next fetch was caught up then.
    leader_end_at_fetch: int = -1

    def fetched(self, offset: int, *, leader_end: int, now_ms: int) -> None:
        if offset >= leader_end:
            self.last_caught_up_ms = now_ms
        elif self.last_fetch_ms is not None and offset >= self.leader_end_at_fetch >= 0:
            self.last_caught_up_ms = max(self.last_caught_up_ms or 0, self.last_fetch_ms)
        self.last_fetch_ms = now_ms
        self.end_offset = offset
        self.leader_end_at_fetch = leader_end


class Replicas:
    """Voters and observers of one leader's epoch."""

    def __init__(self, me: int, voters: Iterable[int]) -> None:
        self.me: Final = me
        self.voters: Final = {voter: Replica(voter) for voter in sorted(voters)}
        self.observers: Final[dict[int, Replica]] = {}

    def get(self, replica: int) -> Replica:
        """The replica's state; adds an unknown observer."""
        found = self.voters.get(replica) or self.observers.get(replica)
        if found is None:
            if len(self.observers) >= OBSERVERS_MAX:
                del self.observers[min(self.observers.values(), key=_last_fetch).id]
            found = self.observers[replica] = Replica(replica)
        return found

    def forget_silent(self, now_ms: int) -> None:
        """Forget observers that have not fetched for OBSERVER_SESSION_MS."""
        for one in list(self.observers.values()):
            if one.last_fetch_ms is None or now_ms - one.last_fetch_ms >= OBSERVER_SESSION_MS:
                del self.observers[one.id]

    def majority_offset(self) -> int | None:
        """The offset below which a majority of the voters has synced everything; None if unknown."""
        ends = sorted((-1 if one.end_offset is None else one.end_offset) for one in self.voters.values())
        # Of five voters, three have at least the third largest offset.
        offset = ends[(len(ends) - 1) // 2]
        return None if offset < 0 else offset

    def successors(self) -> tuple[int, ...]:
        """The other voters, the longest log first."""
        others = [one for one in self.voters.values() if one.id != self.me]
        others.sort(key=lambda one: (-(-1 if one.end_offset is None else one.end_offset), one.id))
        return tuple(one.id for one in others)


def _last_fetch(replica: Replica) -> int:
    return -1 if replica.last_fetch_ms is None else replica.last_fetch_ms
