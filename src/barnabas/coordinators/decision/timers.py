"""When something is to happen to a group if nothing else happens first.

Every heartbeat moves a deadline, so moving one is a store in a dictionary: the heap may hold an earlier time,
and when that comes the key goes back with its later one.
"""

from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

# What it is for, the group, and whom in it: ("session", "g", "member-1"). shard.py knows who expires what.
TimerKey: TypeAlias = tuple[str, str, str]

# A heap that has grown to this many times its live keys is made anew.
_SLACK: Final = 4
_SMALL: Final = 64
_MANY: Final = 1 << 30


class Timers:
    """Deadlines by key, in monotonic milliseconds."""

    def __init__(self) -> None:
        self._at: dict[TimerKey, int] = {}
        # At most one entry of a key counts: that which is in _queued.
        self._heap: list[tuple[int, TimerKey]] = []
        self._queued: dict[TimerKey, int] = {}
        # What next_ms() has found, until something is pushed or taken out: every request asks.
        self._first_ms: int | None = None
        self._is_first_known = True

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._at

    def __len__(self) -> int:
        return len(self._at)

    def set(self, key: TimerKey, at_ms: int) -> None:
        """It is due then, whatever was said before."""
        self._at[key] = at_ms
        queued = self._queued.get(key)
        if queued is None or at_ms < queued:
            self._push(key, at_ms)

    def get(self, key: TimerKey) -> int | None:
        return self._at.get(key)

    def cancel(self, key: TimerKey) -> None:
        self._at.pop(key, None)

    def due(self, now_ms: int, keys_max: int = _MANY) -> list[TimerKey]:
        """Those whose time has come, earliest first, at most so many. They are set no more."""
        found: list[TimerKey] = []
        self._is_first_known = False
        while self._heap and self._heap[0][0] <= now_ms and len(found) < keys_max:
            queued_ms, key = heappop(self._heap)
            if self._queued.get(key) != queued_ms:
                continue
            del self._queued[key]
            at_ms = self._at.get(key)
            if at_ms is None:
                continue
            if at_ms > queued_ms:
                # Its turn is later, perhaps among those that are due.
                self._push(key, at_ms)
            else:
                del self._at[key]
                found.append(key)
        return found

    def next_ms(self) -> int | None:
        """No key is due before this time; None if there is none."""
        if not self._is_first_known:
            while self._heap and self._queued.get(self._heap[0][1]) != self._heap[0][0]:
                heappop(self._heap)
            self._first_ms = self._heap[0][0] if self._heap else None
            self._is_first_known = True
        return self._first_ms

    def _push(self, key: TimerKey, at_ms: int) -> None:
        self._is_first_known = False
        self._queued[key] = at_ms
        heappush(self._heap, (at_ms, key))
        if len(self._heap) > _SMALL + _SLACK * len(self._at):
            self._queued = dict(self._at)
            self._heap = [(at, one) for one, at in self._at.items()]
            heapify(self._heap)
