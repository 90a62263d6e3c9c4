"""A TCP proxy in front of a broker that holds back chosen requests, or the responses to them.

    with HoldingProxy() as proxy:
        broker = OurBroker(root, settings=proxy.settings)
        proxy.broker_port = broker.port
        held = proxy.hold(ApiKey.END_TXN, naming=b"my-transactional-id")
        ...
        held.wait()
        held.release()

A held request stays in the proxy when its client dies, and reaches the broker when it is released: as a
packet that was on its way for long. Everything behind it on the same connection waits as well.
"""

import asyncio
import threading
from struct import Struct
from types import TracebackType
from typing import Final, NamedTuple, Self

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import FrameDecoder

HOST: Final = "127.0.0.1"
# However slow the machine is: what is held back is Spark's, which takes seconds to get there.
WAIT_S_MAX: Final = 150.0
_READ_BYTES: Final = 64 << 10
_JOIN_S: Final = 10.0
_SIZE: Final = Struct(">i")
_KEY: Final = Struct(">h")


class Hold:
    """Which requests are held, and those that are."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        key: ApiKey,
        *,
        naming: bytes,
        skip: int,
        count: int,
        response: bool,
    ) -> None:
        self._loop = loop
        self._key, self._naming = key, naming
        self._skip, self._left = skip, count
        self.is_for_response = response
        self._held = 0
        self._changed = threading.Condition()
        self._ended = asyncio.Event()
        self._dropped = False

    def takes(self, frame: bytes) -> bool:
        """In the proxy's loop."""
        if _KEY.unpack_from(frame)[0] != self._key or self._naming not in frame or self._left == 0:
            return False
        if self._skip > 0:
            self._skip -= 1
            return False
        self._left -= 1
        with self._changed:
            self._held += 1
            self._changed.notify_all()
        return True

    async def is_let_through(self) -> bool:
        """In the proxy's loop, when it is known."""
        await self._ended.wait()
        return not self._dropped

    @property
    def count(self) -> int:
        """How many were held by now."""
        with self._changed:
            return self._held

    def wait(self, count: int = 1) -> None:
        """Until so many are held."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: self._held >= count, WAIT_S_MAX)
        assert arrived, f"{self._held} of {count} {self._key.name} requests arrived within {WAIT_S_MAX:g} s"

    def release(self) -> None:
        """Those that are held reach whom they were for, and later ones are not held any more."""
        self._end(dropped=False)

    def drop(self) -> None:
        """Those that are held are lost, with their connections."""
        self._end(dropped=True)

    def _end(self, *, dropped: bool) -> None:
        def end() -> None:
            self._left = 0
            self._dropped = self._dropped or dropped
            self._ended.set()

        self._loop.call_soon_threadsafe(end)


class _Request(NamedTuple):
    frame: bytes
    hold: Hold | None


class HoldingProxy:
    """Its loop runs in a thread. Of a request it reads the length and the API key."""

    def __init__(self) -> None:
        self.broker_port = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holding proxy")
        # The loop looks through them while threads of tests add to them: replaced, never changed.
        self._holds: tuple[Hold, ...] = ()
        self._adding = threading.Lock()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def settings(self) -> dict[str, object]:
        """Of a broker that sends its clients here."""
        return {"advertised.listeners": f"PLAINTEXT://{self.address}"}

    def hold(
        self, key: ApiKey, *, naming: bytes = b"", skip: int = 0, count: int = 1, response: bool = False
    ) -> Hold:
        """Hold `count` requests of this key that contain the bytes `naming`, after the first `skip` of them.

        With `response` the broker gets the request, and its client no response.
        """
        hold = Hold(self._loop, key, naming=naming, skip=skip, count=count, response=response)
        with self._adding:
            self._holds = (*self._holds, hold)
        return hold

    def drop(self) -> None:
        """Nothing is held any more, and what was is lost."""
        holds, self._holds = self._holds, ()
        for hold in holds:
            hold.drop()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(_JOIN_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, HOST, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self.broker_port)
        except OSError:
            writer.close()
            return
        # Responses come in the order of their requests.
        unanswered: list[Hold] = []
        # As long as clients have requests in flight.
        requests: asyncio.Queue[_Request | None] = asyncio.Queue()
        await asyncio.gather(
            self._receive(reader, requests),
            self._forward(requests, far_writer, unanswered),
            self._respond(far_reader, writer, unanswered),
        )

    async def _receive(
        self, reader: asyncio.StreamReader, requests: "asyncio.Queue[_Request | None]"
    ) -> None:
        """Also while others are held, so that tests know what came behind them."""
        frames = FrameDecoder()
        try:
            while data := await reader.read(_READ_BYTES):
                for frame in frames.feed(data):
                    hold = next((each for each in self._holds if each.takes(frame)), None)
                    requests.put_nowait(_Request(frame, hold))
        except ConnectionError:
            pass
        finally:
            requests.put_nowait(None)

    async def _forward(
        self,
        requests: "asyncio.Queue[_Request | None]",
        writer: asyncio.StreamWriter,
        unanswered: list[Hold],
    ) -> None:
        try:
            while (request := await requests.get()) is not None:
                if (hold := request.hold) is not None:
                    if hold.is_for_response:
                        unanswered.append(hold)
                    elif not await hold.is_let_through():
                        return
                writer.write(_SIZE.pack(len(request.frame)) + request.frame)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _respond(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, unanswered: list[Hold]
    ) -> None:
        try:
            while data := await reader.read(_READ_BYTES):
                while unanswered:
                    if not await unanswered[0].is_let_through():
                        return
                    unanswered.pop(0)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()
