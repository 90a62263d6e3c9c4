"""A proxy in front of a broker that keeps every request frame that clients send through it.

    with RecordingProxy() as proxy:
        broker = OurBroker(root, settings={"advertised.listeners": f"PLAINTEXT://{proxy.address}"})
        proxy.broker_port = broker.port

`lower` makes clients speak older versions: ApiVersions advertises each API with so many versions fewer. And
it does not advertise the APIs in `hidden`.
"""

import asyncio
import threading
from collections.abc import Callable, Collection
from struct import Struct
from types import TracebackType
from typing import Self

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import FrameDecoder, decode_response, response_parts
from barnabas.server.handlers.table import APIS

HOST = "127.0.0.1"
_READ_BYTES = 64 << 10
_JOIN_S = 10.0
_HEADER = Struct(">hhi")
_SIZE = Struct(">i")
_FIRST = {row.key: row.versions.start for row in APIS}


class RecordingProxy:
    """Its loop runs in a thread. `frames` holds (client, frame without length) in the order of arrival."""

    def __init__(self) -> None:
        self.frames: list[tuple[str, bytes]] = []
        # The client that is recorded now.
        self.client = ""
        self.lower = 0
        self.hidden: Collection[ApiKey] = ()
        self.broker_port = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recording proxy")

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(_JOIN_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, HOST, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        serving = asyncio.all_tasks(self._loop)
        for task in serving:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*serving, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self.broker_port)
        except OSError:
            writer.close()
            return
        # Correlation ids of ApiVersions requests, with their versions.
        asked: dict[int, int] = {}
        requests, answers = FrameDecoder(), FrameDecoder()

        def from_client(data: bytes) -> bytes:
            for frame in requests.feed(data):
                key, version, number = _HEADER.unpack_from(frame)
                if key == ApiKey.API_VERSIONS:
                    asked[number] = version
                self.frames.append((self.client, frame))
            return data

        def from_broker(data: bytes) -> bytes:
            if not self.lower and not self.hidden:
                return data
            return b"".join(self._lowered(frame, asked) for frame in answers.feed(data))

        await asyncio.gather(_pipe(reader, far_writer, from_client), _pipe(far_reader, writer, from_broker))

    def _lowered(self, frame: bytes, asked: dict[int, int]) -> bytes:
        version = asked.pop(int.from_bytes(frame[:4], "big"), None)
        if version is None:
            return _SIZE.pack(len(frame)) + frame
        number, body = decode_response(frame, version, key=ApiKey.API_VERSIONS)
        body.api_keys = [row for row in body.api_keys if row.api_key not in self.hidden]
        for row in body.api_keys:
            row.max_version = max(_FIRST[row.api_key], row.max_version - self.lower)
        return b"".join(response_parts(body, version, key=ApiKey.API_VERSIONS, correlation_id=number))


async def _pipe(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, through: Callable[[bytes], bytes]
) -> None:
    try:
        while data := await reader.read(_READ_BYTES):
            writer.write(through(data))
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
