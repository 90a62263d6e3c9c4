"""buffer.memory: the bytes of unacknowledged records, and the senders that wait for free memory.

Waiters are served first in, first out, whatever their size.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from barnabas.client.deadline import Deadline
from barnabas.client.producer.errors import BufferFull


class _Waiter:
    __slots__ = ("granted", "size")

    def __init__(self, size: int, granted: "asyncio.Future[None]") -> None:
        self.size = size
        self.granted = granted


class BufferMemory:
    def __init__(self, limit: int, *, on_full: Callable[[], None]) -> None:
        self.limit = limit
        self.used = 0
        self.waiters: deque[_Waiter] = deque()
        # Called when the first sender has to wait: lingering batches are sent now.
        self._on_full = on_full

    def has_room(self, size: int) -> bool:
        """Whether `size` bytes are free and nobody is waiting."""
        return self.used + size <= self.limit and not self.waiters

    async def take(self, size: int, deadline: Deadline) -> None:
        """Reserve `size` bytes; BufferFull at the deadline. If this raises, nothing is reserved."""
        assert size <= self.limit, "size exceeds the limit"
        if self.has_room(size):
            self.used += size
            return
        waiter = _Waiter(size, asyncio.get_running_loop().create_future())
        self.waiters.append(waiter)
        if len(self.waiters) == 1:
            self._on_full()
        try:
            async with asyncio.timeout_at(deadline.at):
                await waiter.granted
        except BaseException as error:
            self._leave(waiter)
            if isinstance(error, TimeoutError):
                raise self.full(size, deadline.timeout_ms) from None
            raise

    def full(self, size: int, waited_ms: float) -> BufferFull:
        return BufferFull(needed=size, used=self.used, limit=self.limit, waited_ms=waited_ms)

    def release(self, size: int) -> None:
        assert 0 <= size <= self.used, f"{size} bytes released of {self.used} used"
        self.used -= size
        self._grant()

    def refuse_waiters(self, error: Callable[[], Exception]) -> None:
        """Fail all waiters because the producer is closing."""
        waiters, self.waiters = self.waiters, deque()
        for waiter in waiters:
            if not waiter.granted.done():
                waiter.granted.set_exception(error())

    def _grant(self) -> None:
        while self.waiters and self.used + self.waiters[0].size <= self.limit:
            waiter = self.waiters.popleft()
            # A waiter that is already done was cancelled and cleans up when it runs.
            if not waiter.granted.done():
                self.used += waiter.size
                waiter.granted.set_result(None)

    def _leave(self, waiter: _Waiter) -> None:
        granted = waiter.granted
        if granted.done() and not granted.cancelled() and granted.exception() is None:
            # Memory was granted in the same moment as the timeout or cancellation.
            self.release(waiter.size)
        elif waiter in self.waiters:
            self.waiters.remove(waiter)
            self._grant()
