"""Wait until sockets with unsent data are writable again.

An event loop refuses add_writer() for a descriptor that one of its transports uses. Watching a duplicate
would cost a second descriptor per client. So these sockets are in a separate epoll set, whose one descriptor
the loop watches: it is readable while any of them is writable.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Any, Final

# Further sockets wait for the next loop iteration, so that requests are read in between.
READY_AT_ONCE_MAX: Final = 64


class Writable:
    """The waiting sockets of one listener. Call forget() before closing a descriptor."""

    def __init__(self) -> None:
        self._epoll: Final = select.epoll()
        # Any: uvloop returns None where asyncio's stubs say bool, and compiled code checks return types.
        self._loop: Any = None
        self._callbacks: dict[int, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._callbacks)

    def watch(self, number: int, callback: Callable[[], None]) -> None:
        """Call back in every loop iteration in which the socket is writable. OSError if epoll refuses it."""
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
            # Usually a single client reads a large response: no need to poll for others.
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
