"""Little stories about two protocols and the connection between them, told the same on any asyncio loop.

A Recorder writes down what its transport does to it. The stories are for comparing loops: what a recorder
saw must not depend on whether the sockets were real.
"""

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, Final, cast

# More than any kernel keeps for a peer that does not read.
LARGE: Final = bytes(range(256)) * (64 * 1024)
# A real loop gets this long before a story counts as stuck.
PATIENCE_S: Final = 20.0
# Between two looks at something that no callback tells of.
SHORT_S: Final = 0.005


class Recorder(asyncio.Protocol):
    """Writes down every callback. Data that came in several pieces counts as one."""

    transport: asyncio.Transport

    def __init__(self, *, stays_open: bool = False) -> None:
        self.events: list[str] = []
        self.received = bytearray()
        self._stays_open = stays_open
        self._changed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, because uvloop's transports are not instances of asyncio's.
        self.transport = cast(asyncio.Transport, transport)
        self.saw("made")

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.events[-1] == "data":
            self.events.pop()
        self.saw("data")

    def eof_received(self) -> bool:
        self.saw("eof")
        return self._stays_open

    def pause_writing(self) -> None:
        self.saw("pause_writing")

    def resume_writing(self) -> None:
        self.saw("resume_writing")

    def connection_lost(self, exc: Exception | None) -> None:
        self.saw(f"lost: {type(exc).__name__}")

    def saw(self, event: str) -> None:
        self.events.append(event)
        self._changed.set()

    async def until(self, event: str) -> None:
        """Wait until there was an event that begins like this."""
        await self.until_true(lambda: any(seen.startswith(event) for seen in self.events))

    async def until_true(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    async def until_received(self, count: int) -> None:
        await self.until_true(lambda: len(self.received) >= count)


class Echo(Recorder):
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.transport.write(data)


class BufferedRecorder(Recorder, asyncio.BufferedProtocol):
    """The same, with a small buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._buffer = bytearray(1000)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._buffer[:nbytes]))


async def connected(client: Recorder, server: Recorder) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: server, "127.0.0.1", 0)
    await loop.create_connection(lambda: client, *listener.sockets[0].getsockname()[:2])
    await server.until("made")
    return listener


Seen = dict[str, Any]


async def tell(
    client: Recorder, server: Recorder, story: Callable[[Recorder, Recorder], Awaitable[None]]
) -> Seen:
    """What both have seen when the story is over and the connection is gone."""
    async with asyncio.timeout(PATIENCE_S):
        listener = await connected(client, server)
        await story(client, server)
        await client.until("lost")
        await server.until("lost")
        listener.close()
        await listener.wait_closed()
    return {
        "client": client.events,
        "server": server.events,
        "client received": (len(client.received), sha256(client.received).hexdigest()),
        "server received": (len(server.received), sha256(server.received).hexdigest()),
    }


async def echo() -> Seen:
    async def story(client: Recorder, server: Recorder) -> None:
        # Nothing that two kernels of any size would not take at once.
        for count in (1, 10, 200):
            before = len(client.received)
            client.transport.write(bytes(range(256)) * count)
            await client.until_received(before + 256 * count)
        client.transport.write_eof()

    return await tell(Recorder(), Echo(), story)


async def a_reader_that_is_slow() -> Seen:
    async def story(client: Recorder, server: Recorder) -> None:
        server.transport.pause_reading()
        client.transport.write(LARGE)
        assert client.events[-1] == "pause_writing"
        assert client.transport.get_write_buffer_size() > client.transport.get_write_buffer_limits()[1]
        server.transport.resume_reading()
        await client.until("resume_writing")
        await server.until_received(len(LARGE))
        assert client.transport.get_write_buffer_size() == 0
        client.transport.close()

    return await tell(Recorder(), Recorder(), story)


async def closing_with_much_to_send() -> Seen:
    async def story(client: Recorder, server: Recorder) -> None:
        server.transport.pause_reading()
        client.transport.write(LARGE)
        client.transport.close()
        assert client.transport.is_closing()
        server.transport.resume_reading()

    return await tell(Recorder(), Recorder(), story)


async def aborting_with_much_to_send() -> Seen:
    async def story(client: Recorder, server: Recorder) -> None:
        server.transport.pause_reading()
        client.transport.write(LARGE)
        client.transport.abort()
        await client.until("lost")
        server.transport.resume_reading()
        await server.until("lost")
        # How much the kernel had taken is its own affair.
        assert bytes(server.received) == LARGE[: len(server.received)]
        server.received = server.received[:1]

    return await tell(Recorder(), Recorder(), story)


async def an_answer_after_the_end() -> Seen:
    async def story(client: Recorder, server: Recorder) -> None:
        client.transport.write(b"question")
        client.transport.write_eof()
        await server.until("eof")
        server.transport.write(b"answer")
        server.transport.close()

    return await tell(Recorder(), Recorder(stays_open=True), story)


async def reading_paused_and_resumed() -> Seen:
    async def story(client: Recorder, server: Recorder) -> None:
        client.transport.write(b"one")
        await server.until_received(3)
        server.transport.pause_reading()
        client.transport.write(b"two")
        client.transport.write_eof()
        await asyncio.sleep(SHORT_S)
        assert server.received == b"one"
        assert not server.transport.is_reading()
        server.transport.resume_reading()

    return await tell(Recorder(), Recorder(), story)


async def closing_with_unread_bytes() -> Seen:
    async def story(client: Recorder, server: Recorder) -> None:
        server.transport.pause_reading()
        client.transport.write(b"never read")
        await asyncio.sleep(SHORT_S)
        server.transport.close()

    return await tell(Recorder(), Recorder(), story)


async def writing_to_a_peer_that_has_closed() -> Seen:
    async def story(client: Recorder, server: Recorder) -> None:
        server.transport.close()
        await client.until("eof")
        while client.events[-1] == "eof":
            client.transport.write(b"is somebody there?")
            await asyncio.sleep(SHORT_S)

    return await tell(Recorder(stays_open=True), Recorder(), story)


async def a_protocol_with_a_buffer() -> Seen:
    async def story(client: Recorder, server: Recorder) -> None:
        client.transport.write(LARGE[:100_000])
        await server.until_received(100_000)
        client.transport.close()

    return await tell(Recorder(), BufferedRecorder(), story)


async def nobody_listens() -> Seen:
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(Recorder, "127.0.0.1", 0)
    address = listener.sockets[0].getsockname()[:2]
    listener.close()
    await listener.wait_closed()
    try:
        await loop.create_connection(Recorder, *address)
    except OSError as error:
        return {"error": (type(error), error.errno)}
    return {"error": None}


async def an_address_in_use() -> Seen:
    loop = asyncio.get_running_loop()
    async with await loop.create_server(Recorder, "127.0.0.1", 0) as listener:
        try:
            await loop.create_server(Recorder, *listener.sockets[0].getsockname()[:2])
        except OSError as error:
            return {"error": (type(error), error.errno)}
    return {"error": None}


STORIES: Final[list[Callable[[], Awaitable[Seen]]]] = [
    echo,
    a_reader_that_is_slow,
    closing_with_much_to_send,
    aborting_with_much_to_send,
    an_answer_after_the_end,
    reading_paused_and_resumed,
    closing_with_unread_bytes,
    writing_to_a_peer_that_has_closed,
    a_protocol_with_a_buffer,
    nobody_listens,
    an_address_in_use,
]
