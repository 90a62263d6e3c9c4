"""Write responses to a transport that has no usable descriptor: TLS, or the simulator's.

The transport gets the bytes, a bounded piece at a time; file ranges are read.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from barnabas.server.network.outlet import Outlet, Part, Piece
from barnabas.storage.log import LogRead

# High-water mark of a transport's write buffer.
TRANSPORT_BYTES: Final = 256 << 10


class TransportOutlet(Outlet):
    """The connection reports when the transport's buffer is full, and when it accepts more."""

    def __init__(self, transport: asyncio.WriteTransport, on_drained: Callable[[], None]) -> None:
        super().__init__()
        self._written = 0
        self._transport = transport
        self._transport.set_write_buffer_limits(high=TRANSPORT_BYTES)
        self._queue: deque[Piece] = deque()
        self._is_writable = True
        self._is_closed = False
        self._on_drained = on_drained

    def send(self, parts: list[Part]) -> int:
        total = 0
        for part in parts:
            if isinstance(part, LogRead):
                self._queue.extend(part.ranges)
            else:
                self._queue.append(part)
            total += len(part)
        self.waiting += total
        self._pump()
        return total

    @property
    def taken(self) -> int:
        return self._written - self._transport.get_write_buffer_size()

    @property
    def held(self) -> int:
        size: int = self._transport.get_write_buffer_size()
        for piece in self._queue:
            if isinstance(piece, (bytes, memoryview)):
                size += len(piece)
        return size

    def pause(self) -> None:
        self._is_writable = False

    def resume_soon(self) -> None:
        # Not within this call: on_drained() may close the transport, and asyncio would then close it twice.
        asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        if self._is_closed:
            return
        self._is_writable = True
        self._pump()
        if not self._queue:
            self._on_drained()

    def _pump(self) -> None:
        while self._queue and self._is_writable:
            piece = self._queue.popleft()
            data = piece if isinstance(piece, bytes | memoryview) else piece.read()
            self._transport.write(data)
            self.waiting -= len(data)
            self._written += len(data)

    def close(self) -> None:
        self._is_closed = True
        self._queue.clear()
        self.waiting = 0
