"""One connection to one broker: versions, correlation ids, pipelining, timeouts.

Requests are written in the order of send(); many may be in flight, and responses are matched by correlation
id. If the connection breaks, all pending requests fail at once with the reason. cluster.py chooses the
broker.
"""

import asyncio
import os
from asyncio import BufferedProtocol, Future, TimerHandle, Transport
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from barnabas.base.errors import Malformed
from barnabas.client.errors import BrokerUnavailable, Closed, ConnectionLost, NotKafka, RequestTimedOut
from barnabas.client.handshake import (
    HELLO_BYTES_MAX,
    NegotiatedVersions,
    decode_api_versions,
    guess_protocol,
    negotiate_versions,
)
from barnabas.client.settings import ClientSettings, join_address
from barnabas.client.sockets import LowWaterMark, tune_socket
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import FrameDecoder, decode_response, encode_request
from barnabas.protocol.schema.struct import schema_of

_CORRELATION_IDS: Final = 1 << 31
# Size of the receive buffer. Large responses are received directly into their final buffer.
_SCRATCH_BYTES: Final = 256 * 1024


class _Waiting(NamedTuple):
    key: ApiKey
    version: int
    answer: Future[Any]
    timer: TimerHandle


def key_of(request: object) -> ApiKey:
    """Return the API key of a request."""
    key = schema_of(type(request)).key
    assert key is not None, f"{type(request).__name__} is not a request"
    return ApiKey(key)


class Connection(BufferedProtocol):
    """Created by open_connection(), which returns it after the ApiVersions handshake."""

    def __init__(self, address: str, settings: ClientSettings) -> None:
        self.address = address
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._transport: Transport | None = None
        self._frames = FrameDecoder(HELLO_BYTES_MAX)
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._fills_frame = False
        self._low_water_mark: LowWaterMark | None = None
        self._waiting: dict[int, _Waiting] = {}
        self._next_id = 0
        self._versions = NegotiatedVersions(address)
        self._broken: Exception | None = None
        self._gone: Future[None] = self._loop.create_future()
        # Set while the socket's send buffer is full.
        self._paused: Future[None] | None = None
        self._stuck_timer: TimerHandle | None = None
        self._throttled_until = 0.0
        self._last_used = self._loop.time()
        self._idle_timer: TimerHandle | None = None

    # Public interface

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    @property
    def closed(self) -> bool:
        return self._broken is not None

    @property
    def idle_s(self) -> float:
        """Seconds since the last request or response."""
        return self._loop.time() - self._last_used

    @property
    def api_versions(self) -> Mapping[int, tuple[int, int]]:
        """First and last version of each API key, as returned by the broker."""
        return self._versions.apis

    @property
    def supported_features(self) -> Mapping[str, tuple[int, int]]:
        return self._versions.supported_features

    @property
    def finalized_features(self) -> Mapping[str, tuple[int, int]]:
        return self._versions.finalized_features

    def version_of(self, key: ApiKey) -> int:
        """Return the newest version that both sides support; UnsupportedByBroker if there is none."""
        return self._versions.version_of(key)

    def send(self, request: object, *, timeout_ms: float, version: int | None = None) -> "Future[Any]":
        """Write a request now. The future gets its response or an error.

        Raise ConnectionLost if the connection is closed. Cancelling the future does not cancel the request;
        its response is dropped. A timeout closes the connection, because brokers respond in order and all
        later responses would be late, too.
        """
        key = key_of(request)
        version = self.version_of(key) if version is None else version
        number = self._write(request, key, version)
        answer: Future[Any] = self._loop.create_future()
        timer = self._loop.call_later(timeout_ms / 1000, self._timed_out, number, timeout_ms)
        self._waiting[number] = _Waiting(key, version, answer, timer)
        return answer

    async def ask(self, request: object, *, timeout_ms: float, version: int | None = None) -> Any:
        """Send a request and wait for its response."""
        await self.drained()
        return await self.send(request, timeout_ms=timeout_ms, version=version)

    def tell(self, request: object, *, version: int | None = None) -> None:
        """Send a request without a response: Produce with acks=0."""
        key = key_of(request)
        self._write(request, key, self.version_of(key) if version is None else version)

    async def drained(self) -> None:
        """Wait until the send buffer has space and the broker's throttle_time_ms is over."""
        while self._paused is not None:
            await asyncio.shield(self._paused)
        wait_s = self._throttled_until - self._loop.time()
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    def drop(self, why: str) -> None:
        """Close the connection as if the broker had: users of it open a new one."""
        self._break(ConnectionLost(self.address, why))

    async def close(self) -> None:
        """Close the connection and wait until the socket is closed."""
        self._break(Closed(f"the connection to {self.address}"))
        if self._transport is not None:
            await asyncio.shield(self._gone)

    def finish_handshake(self, versions: NegotiatedVersions) -> None:
        """Finish the handshake: set the broker's versions, and allow large responses."""
        self._versions = versions
        self._frames = FrameDecoder(self._settings.receive_message_max_bytes)

    # Sending

    def _write(self, request: object, key: ApiKey, version: int) -> int:
        if self._broken is not None:
            raise self._broken_error()
        assert self._transport is not None, "the connection is not made yet"
        number = self._next_id
        data = encode_request(
            request, version, key=key, correlation_id=number, client_id=self._settings.client_id
        )
        self._next_id = (number + 1) % _CORRELATION_IDS
        self._last_used = self._loop.time()
        self._transport.write(data)
        return number

    def _timed_out(self, number: int, timeout_ms: float) -> None:
        waiting = self._waiting.pop(number)
        error = RequestTimedOut(waiting.key.name, self.address, timeout_ms)
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
        why = f"{waiting.key.name} timed out after {timeout_ms:.0f} ms"
        self._break(ConnectionLost(self.address, why))

    # Receiving (BufferedProtocol)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(Transport, transport)
        tune_socket(self._transport, self._settings)
        self._low_water_mark = LowWaterMark(self._transport)
        self._arm_idle_timer()

    def get_buffer(self, sizehint: int) -> memoryview:
        room = self._frames.room()
        self._fills_frame = room is not None
        return self._scratch if room is None else room

    def buffer_updated(self, nbytes: int) -> None:
        try:
            if self._fills_frame:
                frames = self._frames.filled(nbytes)
            else:
                frames = self._frames.feed(bytes(self._scratch[:nbytes]))
            for frame in frames:
                self._answered(frame)
            if self._frames.broken is not None:
                raise self._frames.broken
            if self._low_water_mark is not None and self._broken is None:
                self._low_water_mark.expect(self._frames.missing, nbytes, self._loop.time())
        except Malformed as error:
            self._break(NotKafka(self.address, str(error) + self._guess_protocol()))

    def _guess_protocol(self) -> str:
        """Guess the protocol of a peer that is not a broker, from its first bytes."""
        words = b"" if self._fills_frame else bytes(self._scratch[:4])
        return guess_protocol(words) if not self._versions.apis else ""

    def _answered(self, frame: bytes) -> None:
        if self._broken is not None:
            return
        number = int.from_bytes(frame[:4], "big", signed=True)
        waiting = self._waiting.pop(number, None) if len(frame) >= 4 else None
        if waiting is None:
            raise Malformed("no request is pending with this id", where=f"correlation id {number}")
        waiting.timer.cancel()
        self._last_used = self._loop.time()
        if waiting.answer.done():
            # The caller has cancelled it.
            return
        try:
            body = decode_api_versions(frame, waiting.version) if waiting.key is ApiKey.API_VERSIONS else None
            if body is None:
                _, body = decode_response(frame, waiting.version, key=waiting.key)
        except Malformed as error:
            waiting.answer.set_exception(NotKafka(self.address, f"{waiting.key.name} response: {error}"))
            raise
        throttle_ms = getattr(body, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._throttled_until = max(self._throttled_until, self._last_used + throttle_ms / 1000)
        waiting.answer.set_result(body)

    def eof_received(self) -> bool:
        self._break(ConnectionLost(self.address, "closed by the broker"))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        why = (
            "closed by the broker" if exc is None else exc.strerror if isinstance(exc, OSError) else str(exc)
        )
        self._break(ConnectionLost(self.address, why or repr(exc)))
        if not self._gone.done():
            self._gone.set_result(None)

    def pause_writing(self) -> None:
        self._paused = self._loop.create_future()
        # Requests with a response have timeouts. Those with acks=0 have none, so a broker that stops reading
        # would block their senders forever.
        timeout_s = self._settings.request_timeout_ms / 1000
        self._stuck_timer = self._loop.call_later(timeout_s, self.drop, "the broker stopped reading")

    def resume_writing(self) -> None:
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
        if self._paused is not None:
            self._paused.set_result(None)
            self._paused = None

    # Closing

    def _break(self, error: Exception) -> None:
        """Fail all pending requests and close the socket."""
        if self._broken is not None:
            return
        self._broken = error
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            each.timer.cancel()
            if not each.answer.done():
                each.answer.set_exception(self._broken_error())
        self.resume_writing()
        if self._transport is not None:
            # Not close(): the send buffer only holds requests that have just failed.
            self._transport.abort()

    def _broken_error(self) -> Exception:
        """Return a new error with the reason: one exception object must not be raised in several tasks."""
        match self._broken:
            case Closed():
                return Closed(f"the connection to {self.address}")
            case NotKafka(why=why):
                return NotKafka(self.address, why)
            case ConnectionLost(why=why):
                return ConnectionLost(self.address, why)
            case other:
                return ConnectionLost(self.address, str(other))

    def _arm_idle_timer(self) -> None:
        self._idle_timer = self._loop.call_later(self._settings.connections_max_idle_ms / 1000, self._idle)

    def _idle(self) -> None:
        if not self._waiting and self.idle_s * 1000 >= self._settings.connections_max_idle_ms:
            self.drop(f"idle for {self.idle_s:.0f} s")
        else:
            self._arm_idle_timer()


async def open_connection(host: str, port: int, settings: ClientSettings) -> Connection:
    """Connect and negotiate API versions.

    BrokerUnavailable if connecting fails, NotKafka if the peer is not a broker, ConnectionLost or
    RequestTimedOut if the handshake fails.
    """
    address = join_address(host, port)
    loop = asyncio.get_running_loop()
    timeout_ms = settings.socket_connection_setup_timeout_ms
    connection = Connection(address, settings)
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await loop.create_connection(lambda: connection, host, port)
    except TimeoutError:
        raise BrokerUnavailable([address], f"no connection within {timeout_ms} ms") from None
    except OSError as error:
        raise BrokerUnavailable([address], _reason(error)) from None
    except (ValueError, OverflowError) as error:
        # The host name or port is invalid: metadata may contain anything.
        raise BrokerUnavailable([address], f"invalid address: {error}") from None
    try:
        # Limit the handshake by the connection timeout, so that a silent peer does not keep the client from
        # trying the next address.
        handshake_ms = min(settings.request_timeout_ms, timeout_ms)
        connection.finish_handshake(await negotiate_versions(connection, handshake_ms))
    except BaseException:
        await connection.close()
        raise
    return connection


def _reason(error: OSError) -> str:
    """Return the system's error text. Negative numbers are resolver errors with their own text."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)
