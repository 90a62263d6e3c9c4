"""Read standard input in chunks, without a thread and without blocking the event loop.

The event loop waits for a pipe or a terminal; its mode is not changed, because the shell shares it. A file is
always ready; between its chunks the event loop runs once.
"""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import Final

CHUNK_BYTES: Final = 256 * 1024


class StandardInput:
    """chunks() yields the input until its end or until stop()."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self.stopped = False
        self._ready: asyncio.Future[None] | None = None

    def stop(self) -> None:
        """Stop reading. Chunks that were already yielded are not affected."""
        self.stopped = True
        self._wake()

    async def chunks(self) -> AsyncIterator[bytes]:
        is_pollable = _is_pollable(self._descriptor)
        while True:
            if is_pollable:
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


def _is_pollable(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
