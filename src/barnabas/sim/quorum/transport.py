"""Requests between simulated voters and clients: raft's wire messages in frames on TCP connections.

A frame has a 4-byte length and a pickled (correlation id, kind, body). A connection serves one request at a
time, in order, as Kafka's do. Fetches, which wait for news, have a connection of their own.
"""

import asyncio
import pickle
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

PORT: Final = 9093
FRAME_MAX: Final = 16 * 1024 * 1024
_LENGTH: Final = struct.Struct(">i")

Handler = Callable[[str, Any], Awaitable[Any]]


class NoAnswer(Exception):
    """The request failed; whether the peer has processed it is unknown."""


async def serve(host: str, handler: Handler) -> asyncio.Server:
    """Answer requests until the server is closed. A handler that raises closes the connection."""

    async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                number, kind, body = await _read(reader)
                answer = await handler(kind, body)
                _write(writer, (number, "", answer))
                await writer.drain()
        except (OSError, EOFError, ConnectionError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(serve_connection, host, PORT)


class Connections:
    """The connections of one program to its peers, opened when they are needed."""

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._open: dict[tuple[str, str], tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._turns: dict[tuple[str, str], asyncio.Lock] = {}
        self._number = 0

    async def ask(self, host: str, kind: str, body: Any, *, lane: str = "") -> Any:
        """Send a request and return the answer; NoAnswer if it does not come in time."""
        key = (host, lane)
        turn = self._turns.setdefault(key, asyncio.Lock())
        try:
            async with asyncio.timeout(self._timeout_s), turn:
                return await self._exchange(key, kind, body)
        except (OSError, EOFError, TimeoutError) as error:
            self._drop(key)
            raise NoAnswer(f"{host}: {error!r}") from None

    async def _exchange(self, key: tuple[str, str], kind: str, body: Any) -> Any:
        if key not in self._open:
            self._open[key] = await asyncio.open_connection(key[0], PORT)
        reader, writer = self._open[key]
        self._number += 1
        number = self._number
        try:
            _write(writer, (number, kind, body))
            await writer.drain()
            answered, _, answer = await _read(reader)
        except BaseException:
            # A late answer must not be taken for that to the next request.
            self._drop(key)
            raise
        assert answered == number, f"request {number} was answered with {answered}"
        return answer

    def close(self) -> None:
        for key in list(self._open):
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        found = self._open.pop(key, None)
        if found is not None:
            with suppress(OSError):
                found[1].close()


def _write(writer: asyncio.StreamWriter, frame: tuple[int, str, Any]) -> None:
    data = pickle.dumps(frame)
    writer.write(_LENGTH.pack(len(data)) + data)


async def _read(reader: asyncio.StreamReader) -> tuple[int, str, Any]:
    (size,) = _LENGTH.unpack(await reader.readexactly(4))
    if not 0 <= size <= FRAME_MAX:
        raise EOFError(f"frame of {size} bytes")
    frame: tuple[int, str, Any] = pickle.loads(await reader.readexactly(size))
    return frame
