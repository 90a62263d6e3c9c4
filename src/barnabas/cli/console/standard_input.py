"""Standard input in chunks, without a thread and without blocking the event loop.

A pipe or a terminal is waited for by the loop; its mode is left alone, because a shell shares it with us. A
file is always ready and is read as it is, with a turn for the loop in between.
"""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import Final

CHUNK_BYTES: Final = 256 * 1024


class StandardInput:
    """chunks() gives what comes until the end, or until stop()."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self.stopped = False
        self._ready: asyncio.Future[None] | None = None

    def stop(self) -> None:
        """Read no more. What was given out already is not affected."""
        self.stopped = True
        self._wake()

    async def chunks(self) -> AsyncIterator[bytes]:
        waits = _can_be_waited_for(self._descriptor)
        while True:
            if waits:
                await self._readable()
            else:
                await asyncio.sleep(0)
            data = b"" if self.stopped else os.read(self._descriptor, CHUNK_BYTES)
            if not data:
                return
            yield data

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        loop.add_reader(self._descriptor, self._wake)
        if self.stopped:
            self._wake()
        try:
            await self._ready
        finally:
            loop.remove_reader(self._descriptor)

    def _wake(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)


def _can_be_waited_for(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
