"""buffer.memory: bytes of records that were taken and have no end yet, and those who wait for room.

Who waits is served in the order of coming, also the large ones: nobody overtakes. Room that was granted is
taken until its owner leaves.
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
        # Called when the first one has to wait: what is held back goes now.
        self._on_full = on_full

    def has_room(self, size: int) -> bool:
        """Whether it can be taken without waiting and without overtaking."""
        return self.used + size <= self.limit and not self.waiters

    async def take(self, size: int, deadline: Deadline) -> None:
        """Wait for room; BufferFull at the deadline. If this raises, nothing is taken."""
        assert size <= self.limit, "it would never fit"
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
        assert 0 <= size <= self.used, f"{size} bytes given back of {self.used}"
        self.used -= size
        self._grant()

    def refuse_waiters(self, error: Callable[[], Exception]) -> None:
        """The producer ends: nobody gets room any more."""
        waiters, self.waiters = self.waiters, deque()
        for waiter in waiters:
            if not waiter.granted.done():
                waiter.granted.set_exception(error())

    def _grant(self) -> None:
        while self.waiters and self.used + self.waiters[0].size <= self.limit:
            waiter = self.waiters.popleft()
            # Done is one that was cancelled and did not run since: it leaves by itself.
            if not waiter.granted.done():
                self.used += waiter.size
                waiter.granted.set_result(None)

    def _leave(self, waiter: _Waiter) -> None:
        granted = waiter.granted
        if granted.done() and not granted.cancelled() and granted.exception() is None:
            # It got its room in the very moment in which it gave up.
            self.release(waiter.size)
        elif waiter in self.waiters:
            self.waiters.remove(waiter)
            self._grant()
