"""Sockets that took less than they were given, until they take more.

The event loop does not watch a descriptor that one of its transports has for reading. A duplicate could be
watched, but then a client costs two descriptors. So these sockets are in an epoll set of our own, whose one
descriptor the loop watches: it is readable while one of them can be written to.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Any, Final

# More wait for the next turn of the loop, so that requests are read in between.
READY_AT_ONCE_MAX: Final = 64


class Writable:
    """The sockets of one listener that wait. Nobody may close a descriptor before it is forgotten."""

    def __init__(self) -> None:
        self._epoll: Final = select.epoll()
        # Not by its type: uvloop answers None where asyncio's methods say bool, and compiled code checks it.
        self._loop: Any = None
        self._callbacks: dict[int, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._callbacks)

    def watch(self, number: int, callback: Callable[[], None]) -> None:
        """Call back in every turn in which it can be written to. OSError if it cannot be watched."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._epoll.fileno(), self._ready)
        self._epoll.register(number, select.EPOLLOUT)
        self._callbacks[number] = callback

    def forget(self, number: int) -> None:
        del self._callbacks[number]
        if not self._epoll.closed:
            self._epoll.unregister(number)

    def _ready(self) -> None:
        if len(self._callbacks) == 1:
            # Often one client takes a large response: then there is nobody else to look for.
            for callback in list(self._callbacks.values()):
                callback()
            return
        for number, _ in self._epoll.poll(0, READY_AT_ONCE_MAX):
            # A callback that ran before this one may have closed its connection.
            found = self._callbacks.get(number)
            if found is not None:
                found()

    def close(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
