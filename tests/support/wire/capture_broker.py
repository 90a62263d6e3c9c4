"""A broker for tests that keeps every byte it was sent. Not part of the product.

It speaks just enough for one client to produce to and fetch from topics that were named at the start: one
node, one replica, everything in memory, one thread per connection, one request at a time. What it answers is
in capture_answers.py. It is built on our own codec, so a client that gets through has checked that codec; and
it keeps both sides of every exchange, so that a test can check the rest.

Whatever goes wrong in its threads is raised when the `with` block ends. It waits for nothing without a limit.
"""

import socket
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from barnabas.base.ids import Uuid
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.exchange import (
    FrameDecoder,
    Request,
    UnsupportedRequest,
    decode_request,
    decode_response,
    encode_request,
    refuse_api_versions,
    response_parts,
)
from barnabas.protocol.schema.versions import Versions
from barnabas.records.header import BatchHeader, batch_headers, stamp
from support.wire.capture_answers import ANSWERS, HOST, LEADER_EPOCH

LENGTH_BYTES = 4
RECEIVE_BYTES = 256 * 1024
# A client that says nothing for so long has been forgotten by its test.
SILENCE_SECONDS_MAX = 60.0
JOIN_SECONDS_MAX = 10.0
ARRIVAL_SECONDS_MAX = 10.0


class Exchange(NamedTuple):
    """One request as it came and as it was understood, and the whole answer: None if acks=0 wants none."""

    frame: bytes
    request: Request
    answer: bytes | None

    def check(self) -> None:
        """Nothing is lost in either direction: what was decoded encodes to the same bytes again."""
        version, correlation_id = self.request.version, self.request.correlation_id
        key = self.request.api.key
        again = encode_request(
            self.request.body,
            version,
            key=key,
            correlation_id=correlation_id,
            client_id=self.request.client_id,
        )
        assert again[LENGTH_BYTES:] == self.frame, self.request.body
        if self.answer is not None:
            answered, answer = decode_response(self.answer[LENGTH_BYTES:], version, key=key)
            assert answered == correlation_id
            parts = response_parts(answer, version, key=key, correlation_id=correlation_id)
            assert b"".join(parts) == self.answer, answer


class PartitionLog:
    """One partition: what producers sent, and the same batches with the offsets that they were given."""

    def __init__(self) -> None:
        self.produced: list[bytes] = []
        self.batches: list[tuple[BatchHeader, bytes]] = []
        # Where readers may begin. It can be moved into the middle of a batch, as deleting records does.
        self.start = 0
        self.end = 0
        # (producer id, first offset) of every aborted transaction, for readers of committed records.
        self.aborted: list[tuple[int, int]] = []

    def append(self, batch: bytes) -> int:
        """Give the batch the next offsets and return the first."""
        buffer = bytearray(batch)
        stamp(buffer, 0, base_offset=self.end, leader_epoch=LEADER_EPOCH)
        [(_, header)] = batch_headers(buffer)
        self.batches.append((header, bytes(buffer)))
        self.end = header.next_offset
        return header.base_offset

    def read(self, offset: int, bytes_max: int) -> bytes:
        """Whole batches from the one that holds `offset`; the first even if it is too large alone."""
        found: list[bytes] = []
        size = 0
        for header, batch in self.batches:
            if header.last_offset < offset:
                continue
            if found and size + len(batch) > bytes_max:
                break
            found.append(batch)
            size += len(batch)
        return b"".join(found)


class CaptureBroker:
    """`with CaptureBroker({"orders": 1}) as broker:` then point a client at broker.address.

    `topics` says how many partitions each has. `newest` lowers the highest version of some APIs, so that a
    client can be seen to speak the older ones.
    """

    def __init__(self, topics: Mapping[str, int], *, newest: Mapping[ApiKey, int] | None = None) -> None:
        self.logs = {
            (name, index): PartitionLog() for name, count in topics.items() for index in range(count)
        }
        self.topic_ids = {name: Uuid(f"id of {name}".encode().ljust(16, b".")[:16]) for name in topics}
        self.versions = {key: _spoken(key, newest or {}) for key in ANSWERS}
        self.exchanges: list[Exchange] = []
        # The ApiVersions versions that were asked for and not spoken.
        self.refused: list[int] = []
        self.errors: list[Exception] = []
        # Guards all that is above, and wakes the fetches that wait for records.
        self.changed = threading.Condition()
        self.closing = False
        self._listener = socket.create_server((HOST, 0))
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def append(self, topic: str, *batches: bytes) -> None:
        """Put batches into partition 0, as if somebody had produced them."""
        with self.changed:
            for batch in batches:
                self.logs[topic, 0].append(batch)
            self.changed.notify_all()

    def wait_for_offset(self, topic: str, offset: int) -> None:
        """Wait until partition 0 ends there: a producer without acks does not know when it was written."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.logs[topic, 0].end >= offset, ARRIVAL_SECONDS_MAX)

    def check_exchanges(self) -> None:
        """Check the bytes of all traffic; there must have been some."""
        assert self.exchanges
        for exchange in self.exchanges:
            exchange.check()

    def wire_versions(self) -> dict[ApiKey, set[int]]:
        """The versions that clients used, by API."""
        seen: dict[ApiKey, set[int]] = {}
        for exchange in self.exchanges:
            seen.setdefault(exchange.request.api.key, set()).add(exchange.request.version)
        return seen

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.changed:
            self.closing = True
            self.changed.notify_all()
            # Shutting a socket down wakes the thread that waits for it; closing it would not.
            for sock in (self._listener, *self._connections):
                _shut_down(sock)
        for thread in self._threads:
            thread.join(JOIN_SECONDS_MAX)
            assert not thread.is_alive(), f"{thread.name} did not end"
        for sock in (self._listener, *self._connections):
            sock.close()
        if self.errors:
            raise ExceptionGroup("in the capture broker", self.errors)

    def _start(self, work: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=self._guarded, args=(work, *args), name=f"capture {work.__name__}")
        self._threads.append(thread)
        thread.start()

    def _guarded(self, work: Callable[..., None], *args: Any) -> None:
        try:
            work(*args)
        except Exception as error:
            with self.changed:
                self.errors.append(error)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self.closing:
                    return
                raise
            with self.changed:
                self._connections.append(connection)
                if self.closing:
                    return
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(SILENCE_SECONDS_MAX)
        decoder = FrameDecoder()
        try:
            while data := connection.recv(RECEIVE_BYTES):
                for frame in decoder.feed(data):
                    if answer := self._answer(frame):
                        connection.sendall(answer)
        except (ConnectionResetError, BrokenPipeError):
            # A client may hang up at any time, and we do while one waits.
            return
        finally:
            _shut_down(connection)

    def _answer(self, frame: bytes) -> bytes | None:
        try:
            request = decode_request(frame)
            if request.version not in self.versions.get(request.api.key, ()):
                raise UnsupportedRequest(
                    key=request.api.key, version=request.version, correlation_id=request.correlation_id
                )
        except UnsupportedRequest as unsupported:
            if unsupported.key != ApiKey.API_VERSIONS:
                raise
            self.refused.append(unsupported.version)
            own = self.versions[ApiKey.API_VERSIONS]
            row = (ApiKey.API_VERSIONS, own.first, own.last)
            return b"".join(refuse_api_versions(unsupported.correlation_id, [row]))
        # One step under the lock: whoever sees the records of a request must find the exchange too.
        with self.changed:
            body = ANSWERS[request.api.key](self, request.body)
            answer = None if body is None else b"".join(_framed(request, body))
            self.exchanges.append(Exchange(frame, request, answer))
        return answer


def _framed(request: Request, body: object) -> list[bytes]:
    key, correlation_id = request.api.key, request.correlation_id
    return response_parts(body, request.version, key=key, correlation_id=correlation_id)


def _spoken(key: ApiKey, newest: Mapping[ApiKey, int]) -> Versions:
    known = api(key).versions
    return Versions(known.first, min(known.last, newest.get(key, known.last)))


def _shut_down(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The other side was faster.
        return
