"""The selector of the simulated loop: it tracks ready sockets, and advances time instead of waiting.

asyncio's selector loop runs on it unchanged. The sockets of sockets.py report changes of their readiness
themselves.
"""

from collections.abc import Callable, Mapping
from random import Random
from selectors import EVENT_READ, EVENT_WRITE, BaseSelector, SelectorKey
from typing import Any, Final

from barnabas.sim.process import CURRENT, Process

READ: Final = EVENT_READ
WRITE: Final = EVENT_WRITE


class SimSelector(BaseSelector):
    """`pass_time` advances the time by a number of seconds; None means that no timer is left."""

    def __init__(self, rng: Random, pass_time: Callable[[float | None], None]) -> None:
        self._rng = rng
        self._pass_time = pass_time
        self._keys: dict[int, SelectorKey] = {}
        self._masks: dict[int, int] = {}
        # Sockets that are ready for a registered event, by process. Dicts, to keep the order.
        self._ready: dict[Process | None, dict[int, None]] = {}
        self._owners: dict[int, Process | None] = {}

    def set_ready(self, fd: int, mask: int) -> None:
        """Set whether a socket is readable and writable."""
        self._masks[fd] = mask
        self._update(fd)

    def forget(self, fd: int) -> None:
        self._masks.pop(fd, None)
        self._update(fd)

    def register(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        fd = _descriptor(fileobj)
        if fd in self._keys:
            raise KeyError(f"descriptor {fd} is registered already")
        self._owners[fd] = CURRENT.get()
        return self._set(SelectorKey(fileobj, fd, events, data))

    def modify(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        fd = _descriptor(fileobj)
        if fd not in self._keys:
            raise KeyError(f"descriptor {fd} is not registered")
        return self._set(SelectorKey(fileobj, fd, events, data))

    def unregister(self, fileobj: Any) -> SelectorKey:
        key = self._keys.pop(_descriptor(fileobj))
        self._update(key.fd)
        self._owners.pop(key.fd, None)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        # Called even if a socket is ready, to count the iterations.
        self._pass_time(0 if self.has_ready(None) else timeout)
        return self.ready_of(None)

    def has_ready(self, process: Process | None) -> bool:
        return bool(self._ready.get(process))

    def ready_of(self, process: Process | None) -> list[tuple[SelectorKey, int]]:
        """The ready sockets of a process, or of the world, with their events."""
        ready = list(self._ready.get(process, ()))
        if len(ready) > 1:
            # A kernel guarantees no order here, so test any order.
            self._rng.shuffle(ready)
        return [(self._keys[fd], self._masks[fd] & self._keys[fd].events) for fd in ready]

    def unregister_all(self, process: Process) -> list[SelectorKey]:
        """Unregister the sockets of a process that has died."""
        fds = [fd for fd, owner in self._owners.items() if owner is process]
        return [self.unregister(fd) for fd in fds]

    def get_map(self) -> Mapping[Any, SelectorKey]:
        return self._keys

    def _set(self, key: SelectorKey) -> SelectorKey:
        self._keys[key.fd] = key
        self._update(key.fd)
        return key

    def _update(self, fd: int) -> None:
        key = self._keys.get(fd)
        owner = self._owners.get(fd)
        if key is not None and key.events & self._masks.get(fd, 0):
            self._ready.setdefault(owner, {})[fd] = None
        elif owner in self._ready:
            self._ready[owner].pop(fd, None)


def _descriptor(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())
