"""Timers of a shard.

Every heartbeat moves a deadline, so moving one is only a store in a dictionary. The heap may hold an earlier
time; when that is due, the key is pushed again with its later deadline.
"""

from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

# Purpose, group and member: ("session", "g", "member-1"). shard.py dispatches expired keys by purpose.
TimerKey: TypeAlias = tuple[str, str, str]

# The heap is rebuilt when it has this many times as many entries as live keys.
_SLACK: Final = 4
_SMALL: Final = 64
_MANY: Final = 1 << 30


class Timers:
    """Deadlines by key, in monotonic milliseconds."""

    def __init__(self) -> None:
        self._at: dict[TimerKey, int] = {}
        # Only the heap entry that equals _queued[key] is valid; other entries of the key are stale.
        self._heap: list[tuple[int, TimerKey]] = []
        self._queued: dict[TimerKey, int] = {}
        # Cached result of next_ms(), which every request calls.
        self._first_ms: int | None = None
        # False after a change that next_ms() has not seen.
        self.is_first_known = True

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._at

    def __len__(self) -> int:
        return len(self._at)

    def set(self, key: TimerKey, at_ms: int) -> None:
        """Set or move the deadline of a key."""
        self._at[key] = at_ms
        queued = self._queued.get(key)
        if queued is None or at_ms < queued:
            self._push(key, at_ms)

    def get(self, key: TimerKey) -> int | None:
        return self._at.get(key)

    def cancel(self, key: TimerKey) -> None:
        self._at.pop(key, None)

    def due(self, now_ms: int, keys_max: int = _MANY) -> list[TimerKey]:
        """Remove and return the expired keys, earliest first, at most `keys_max`."""
        found: list[TimerKey] = []
        self.is_first_known = False
        while self._heap and self._heap[0][0] <= now_ms and len(found) < keys_max:
            queued_ms, key = heappop(self._heap)
            if self._queued.get(key) != queued_ms:
                continue
            del self._queued[key]
            at_ms = self._at.get(key)
            if at_ms is None:
                continue
            if at_ms > queued_ms:
                # The deadline was moved; the new one may also be due.
                self._push(key, at_ms)
            else:
                del self._at[key]
                found.append(key)
        return found

    def next_ms(self) -> int | None:
        """A lower bound of the next deadline; None without timers."""
        if not self.is_first_known:
            while self._heap and self._queued.get(self._heap[0][1]) != self._heap[0][0]:
                heappop(self._heap)
            self._first_ms = self._heap[0][0] if self._heap else None
            self.is_first_known = True
        return self._first_ms

    def _push(self, key: TimerKey, at_ms: int) -> None:
        self.is_first_known = False
        self._queued[key] = at_ms
        heappush(self._heap, (at_ms, key))
        if len(self._heap) > _SMALL + _SLACK * len(self._at):
            self._queued = dict(self._at)
            self._heap = [(at, one) for one, at in self._at.items()]
            heapify(self._heap)
