"""A raw client on any asyncio loop, and handlers to try a connection with."""

import asyncio
from collections.abc import Iterable
from struct import Struct
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import decode_response, encode_request

_SIZE = Struct(">i")


class RawClient:
    """Sends requests as they are and reads answers one by one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._sent: list[tuple[ApiKey, int, int]] = []

    @classmethod
    async def connect(cls, host: str, port: int) -> "RawClient":
        return cls(*await asyncio.open_connection(host, port))

    def send(self, body: object, version: int, *, key: ApiKey) -> int:
        """Send without waiting. The correlation id."""
        number = len(self._sent)
        self._sent.append((key, version, number))
        self.writer.write(encode_request(body, version, key=key, correlation_id=number, client_id="raw"))
        return number

    async def frame(self) -> bytes:
        (size,) = _SIZE.unpack(await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def answer(self) -> tuple[int, Any]:
        """The next answer, with the correlation id that it carries."""
        frame = await self.frame()
        number = int.from_bytes(frame[:4], "big")
        key, version, _ = self._sent[number]
        return decode_response(frame, version, key=key)

    async def call(self, body: object, version: int, *, key: ApiKey) -> Any:
        """One request and its answer."""
        number = self.send(body, version, key=key)
        answered, response = await self.answer()
        assert answered == number
        return response

    async def is_closed(self) -> bool:
        """Wait for the end of what the broker sends."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.writer.close()


def frame(parts: Iterable[bytes]) -> bytes:
    """Join the parts of a message to one frame."""
    body = b"".join(parts)
    return len(body).to_bytes(4, "big") + body
