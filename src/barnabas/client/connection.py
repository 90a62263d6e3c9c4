"""One socket to one broker: versions, correlation ids, pipelining, time-outs.

Requests are written in the order of send(), many may be under way, and each answer finds its request by the
correlation id. Whatever breaks the connection fails every request that waits, at once and with the reason.
Which broker to speak to is cluster.py's business.
"""

import asyncio
import os
from asyncio import BufferedProtocol, Future, TimerHandle, Transport
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from barnabas.base.errors import Malformed
from barnabas.client.errors import BrokerUnavailable, Closed, ConnectionLost, NotKafka, RequestTimedOut
from barnabas.client.handshake import HELLO_BYTES_MAX, Offer, offer_of, say_hello, sounds_like
from barnabas.client.settings import ClientSettings, join_address
from barnabas.client.sockets import Alarm, tune_socket
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import decode_response, encode_request
from barnabas.protocol.frame import FrameDecoder
from barnabas.protocol.schema.struct import schema_of

_CORRELATION_IDS: Final = 1 << 31
# What is received at a time, but for large answers, which go straight to where they stay.
_SCRATCH_BYTES: Final = 256 * 1024


class _Waiting(NamedTuple):
    key: ApiKey
    version: int
    answer: Future[Any]
    timer: TimerHandle


def key_of(request: object) -> ApiKey:
    """The API that a request belongs to."""
    key = schema_of(type(request)).key
    assert key is not None, f"{type(request).__name__} is no request"
    return ApiKey(key)


class Connection(BufferedProtocol):
    """Made by open_connection(), which returns it when the broker has said what it speaks."""

    def __init__(self, address: str, settings: ClientSettings) -> None:
        self.address = address
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._transport: Transport | None = None
        self._frames = FrameDecoder(HELLO_BYTES_MAX)
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._in_room = False
        self._alarm: Alarm | None = None
        self._waiting: dict[int, _Waiting] = {}
        self._next_id = 0
        self._offer = Offer(address)
        self._broken: Exception | None = None
        self._gone: Future[None] = self._loop.create_future()
        # Set while the socket takes no more, or the broker asked us to wait.
        self._paused: Future[None] | None = None
        self._stuck_timer: TimerHandle | None = None
        self._throttled_until = 0.0
        self._last_used = self._loop.time()
        self._idle_timer: TimerHandle | None = None

    # What others ask

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    @property
    def closed(self) -> bool:
        return self._broken is not None

    @property
    def idle_s(self) -> float:
        """Since something was sent or answered."""
        return self._loop.time() - self._last_used

    @property
    def api_versions(self) -> Mapping[int, tuple[int, int]]:
        """First and last version of each API key, as the broker said."""
        return self._offer.apis

    @property
    def supported_features(self) -> Mapping[str, tuple[int, int]]:
        return self._offer.supported_features

    @property
    def finalized_features(self) -> Mapping[str, tuple[int, int]]:
        return self._offer.finalized_features

    def version_of(self, key: ApiKey) -> int:
        """The newest version that both sides speak; UnsupportedByBroker if there is none."""
        return self._offer.version_of(key)

    def send(self, request: object, *, timeout_ms: float, version: int | None = None) -> "Future[Any]":
        """Write a request now. The future is its answer, or the error.

        ConnectionLost at once if the connection is closed. Cancelling the future only means that nobody
        waits: the request is out, and its answer is dropped when it comes. A request that times out closes
        the connection, because brokers answer in order: what comes after it would wait as well.
        """
        key = key_of(request)
        version = self.version_of(key) if version is None else version
        number = self._write(request, key, version)
        answer: Future[Any] = self._loop.create_future()
        timer = self._loop.call_later(timeout_ms / 1000, self._timed_out, number, timeout_ms)
        self._waiting[number] = _Waiting(key, version, answer, timer)
        return answer

    async def ask(self, request: object, *, timeout_ms: float, version: int | None = None) -> Any:
        """Send, and wait for the answer."""
        await self.drained()
        return await self.send(request, timeout_ms=timeout_ms, version=version)

    def tell(self, request: object, *, version: int | None = None) -> None:
        """Send a request that has no answer: a produce with acks=0."""
        key = key_of(request)
        self._write(request, key, self.version_of(key) if version is None else version)

    async def drained(self) -> None:
        """Wait until the socket takes more and the broker does not ask us to wait (throttle_time_ms)."""
        while self._paused is not None:
            await asyncio.shield(self._paused)
        wait_s = self._throttled_until - self._loop.time()
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    def drop(self, why: str) -> None:
        """Close it as if the broker had: whoever had a use for it opens another."""
        self._break(ConnectionLost(self.address, why))

    async def close(self) -> None:
        """Close it, and wait until the socket is gone."""
        self._break(Closed(f"the connection to {self.address}"))
        if self._transport is not None:
            await asyncio.shield(self._gone)

    def introduced(self, offer: Offer) -> None:
        """The broker has said what it speaks; from here on answers may be large."""
        self._offer = offer
        self._frames = FrameDecoder(self._settings.receive_message_max_bytes)

    # What is sent

    def _write(self, request: object, key: ApiKey, version: int) -> int:
        if self._broken is not None:
            raise self._broken_again()
        assert self._transport is not None, "nothing is sent before the connection is made"
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

    # What arrives (BufferedProtocol)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(Transport, transport)
        tune_socket(self._transport, self._settings)
        self._alarm = Alarm(self._transport)
        self._arm_idle_timer()

    def get_buffer(self, sizehint: int) -> memoryview:
        room = self._frames.room()
        self._in_room = room is not None
        return self._scratch if room is None else room

    def buffer_updated(self, nbytes: int) -> None:
        try:
            if self._in_room:
                frames = self._frames.filled(nbytes)
            else:
                frames = self._frames.feed(bytes(self._scratch[:nbytes]))
            for frame in frames:
                self._answered(frame)
            if self._frames.broken is not None:
                raise self._frames.broken
            if self._alarm is not None and self._broken is None:
                self._alarm.expect(self._frames.missing, nbytes, self._loop.time())
        except Malformed as error:
            self._break(NotKafka(self.address, str(error) + self._sounds_like()))

    def _sounds_like(self) -> str:
        """A guess at what else it is, by its first words."""
        words = b"" if self._in_room else bytes(self._scratch[:4])
        return sounds_like(words) if not self._offer.apis else ""

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
            # Nobody waits any more.
            return
        try:
            body = offer_of(frame, waiting.version) if waiting.key is ApiKey.API_VERSIONS else None
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
        # Requests that are answered have time-outs of their own. Those with acks=0 have none, and a broker
        # that reads nothing any more would hold up whoever has something to say to it.
        timeout_s = self._settings.request_timeout_ms / 1000
        self._stuck_timer = self._loop.call_later(timeout_s, self.drop, "the broker stopped reading")

    def resume_writing(self) -> None:
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
        if self._paused is not None:
            self._paused.set_result(None)
            self._paused = None

    # The end

    def _break(self, error: Exception) -> None:
        """Fail whatever waits, and close the socket."""
        if self._broken is not None:
            return
        self._broken = error
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            each.timer.cancel()
            if not each.answer.done():
                each.answer.set_exception(self._broken_again())
        self.resume_writing()
        if self._transport is not None:
            # Not close(): what is still in the buffer is of requests that have failed just now.
            self._transport.abort()

    def _broken_again(self) -> Exception:
        """The reason, as an error of its own: one exception object must not be raised in many places."""
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
    """Connect and ask what the broker speaks.

    BrokerUnavailable if nobody is there, NotKafka if somebody else is, ConnectionLost or RequestTimedOut if
    it goes away or stays silent while being asked.
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
        # No host has such a name, or no socket such a port: metadata may say anything.
        raise BrokerUnavailable([address], f"invalid address: {error}") from None
    try:
        # Who accepts connections and never answers keeps a client no longer than who does not accept them:
        # another address may be that of a broker.
        hello_ms = min(settings.request_timeout_ms, timeout_ms)
        connection.introduced(await say_hello(connection, hello_ms))
    except BaseException:
        await connection.close()
        raise
    return connection


def _reason(error: OSError) -> str:
    """The system's words. Numbers below zero are of names not found, and have words of their own."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)
