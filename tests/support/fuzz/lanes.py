"""Connections that send batches of mutated requests and check the order and the frames of what comes back.

A lane sends one batch at a time, pipelined, with an ApiVersions request at its end. Its answer says that all
requests before it are done. Where the broker closes the connection, the request after the last answer was the
cause; a new connection goes on behind it. Where only a request that may wait for others holds the lane up,
such as a Fetch, the lane gives that one up.
"""

import errno
import random
import select
import socket
import time
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import FRAME_BYTES_MAX, decode_request, decode_response, encode_request
from barnabas.protocol.messages.cluster import ApiVersionsRequest
from barnabas.server.handlers.table import APIS
from support.fuzz.requests import Batch, framed, header_of
from support.fuzz.words import LEARNED_FROM, Words

READ_BYTES: Final = 256 << 10
# After so long without a byte, a request that may wait is given up.
GIVEN_UP_S: Final = 0.2
# Any other request has to be answered, or its connection closed, within this time.
ANSWERED_WITHIN_S: Final = 30.0
# One of so many responses is decoded.
DECODED_ONE_OF: Final = 4
_POLL_S: Final = 0.05
_SIZE: Final = Struct(">i")
_MAY_WAIT: Final = frozenset({ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
# No mutation makes this correlation id.
_LAST: Final = 0x5EED1A57
_LAST_REQUEST: Final = encode_request(
    ApiVersionsRequest(), 0, key=ApiKey.API_VERSIONS, correlation_id=_LAST, client_id=None
)
_SPOKEN: Final = {(row.key, version) for row in APIS for version in row.versions}


class FuzzFailure(AssertionError):
    """The broker did what it must not do."""


class Tally:
    """What became of the requests."""

    def __init__(self) -> None:
        self.sent = 0
        self.answered = 0
        self.closed = 0
        self.given_up = 0
        # Responses with UNKNOWN_SERVER_ERROR: by API and version, the first request of each.
        self.unknown_errors: dict[tuple[int, int], bytes] = {}

    def __str__(self) -> str:
        return (
            f"{self.sent} sent, {self.answered} answered, {self.closed} connections closed, "
            f"{self.given_up} waited too long"
        )


class Lane:
    """One connection after another. `next_batch` gives it work, until it returns None."""

    def __init__(
        self, address: str, number: int, next_batch: Callable[[], Batch | None], words: Words, tally: Tally
    ) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))
        self._number = number
        self._next_batch = next_batch
        self._words = words
        self._tally = tally
        self._rng = random.Random(number)
        self._socket: socket.socket | None = None
        self._out = memoryview(b"")
        self._in = bytearray()
        # What is not done of the batch, and which of it are expected to be answered next.
        self._frames: list[bytes] = []
        self._end = b""
        self._at = 0
        self._is_ending = False
        self._moved_s = 0.0
        self.is_done = False
        self.batch: Batch | None = None

    # For the loop

    def fileno(self) -> int:
        assert self._socket is not None
        return self._socket.fileno()

    @property
    def wants_to_write(self) -> bool:
        return bool(self._out)

    def start(self, now_s: float) -> None:
        """Take the next batch, and send it over the connection that there is, or over a new one."""
        self.batch = self._next_batch()
        if self.batch is None:
            self.is_done = True
            self.close()
            return
        self._frames, self._end, self._at = self.batch.frames, self.batch.end, 0
        self._send(now_s)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, now_s: float) -> None:
        if self._socket is None:
            self._socket = self._connected()
            self._in.clear()
        self._out = memoryview(b"".join((*map(framed, self._frames), _LAST_REQUEST)))
        self._at = 0
        self._is_ending = False
        self._moved_s = now_s
        self.write()

    def _connected(self) -> socket.socket:
        """From one of many addresses: ports of closed connections stay in use for a minute."""
        while True:
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            rng = self._rng
            source = f"127.{rng.randrange(1, 255)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"
            try:
                sock.bind((source, 0))
                sock.settimeout(ANSWERED_WITHIN_S)
                sock.connect(self._address)
            except OSError as error:
                sock.close()
                if error.errno not in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
                    raise FuzzFailure(f"cannot connect: {error}") from error
                continue
            sock.setblocking(False)
            return sock

    def write(self) -> None:
        assert self._socket is not None
        try:
            while self._out:
                self._out = self._out[self._socket.send(self._out) :]
            if self._is_ending:
                self._socket.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return
        except OSError:
            # The broker closed it. Its answers are read first.
            self._out = memoryview(b"")

    def read(self, now_s: float) -> None:
        """Take what has come; go on behind the request that the broker closed the connection for."""
        assert self._socket is not None
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._closed_by_broker(now_s)
            return
        self._moved_s = now_s
        self._in += data
        for answer in self._answers():
            number = int.from_bytes(answer[:4], "big", signed=True)
            if self._is_ending:
                # Whatever the broker makes of the bytes, its frames are whole.
                continue
            if number == _LAST:
                self._check_skipped(self._frames[self._at :])
                self._batch_done(now_s)
                return
            self._take(number, answer)

    def _batch_done(self, now_s: float) -> None:
        self._tally.sent += len(self._frames)
        if not self._end:
            self.start(now_s)
            return
        # The connection ends with bytes that are no request.
        self._is_ending = True
        self._tally.sent += 1
        self._out = memoryview(self._end)
        self.write()

    def check_progress(self, now_s: float) -> None:
        """Give up a request that may wait; fail if any other is not answered."""
        if self._socket is None or now_s - self._moved_s < GIVEN_UP_S:
            return
        if self._is_ending:
            self.close()
            self.start(now_s)
            return
        # A Produce without acks is not answered: the first request behind it holds the lane up.
        head = self._at
        while head < len(self._frames) and _key_of(self._frames[head]) == ApiKey.PRODUCE:
            head += 1
        if head < len(self._frames) and _key_of(self._frames[head]) in _MAY_WAIT:
            self._at = head
            self._tally.given_up += 1
            self.close()
            self._go_on(now_s)
        elif now_s - self._moved_s > ANSWERED_WITHIN_S:
            about = self._frames[self._at][:300].hex() if self._at < len(self._frames) else "the last one"
            raise FuzzFailure(f"not answered within {ANSWERED_WITHIN_S:.0f} s: {about}")

    # Answers

    def _answers(self) -> list[bytes]:
        data, at, found = self._in, 0, []
        while len(data) - at >= 4:
            (size,) = _SIZE.unpack_from(data, at)
            if not 4 <= size <= FRAME_BYTES_MAX:
                raise FuzzFailure(f"a response of {size} bytes")
            if len(data) - at < 4 + size:
                break
            found.append(bytes(data[at + 4 : at + 4 + size]))
            at += 4 + size
        del data[:at]
        return found

    def _take(self, number: int, answer: bytes) -> None:
        """Find the request of a response: the next one, but for those that have no response."""
        skipped = self._at
        while self._at < len(self._frames):
            header = header_of(self._frames[self._at])
            self._at += 1
            if header is None or header[2] != number:
                continue
            self._check_skipped(self._frames[skipped : self._at - 1])
            self._tally.answered += 1
            self._look_at(header, answer)
            return
        waiting = [(at, header_of(frame)) for at, frame in enumerate(self._frames) if at >= skipped]
        before = [header_of(frame) for frame in self._frames[:skipped]]
        raise FuzzFailure(
            f"a response has correlation id {number}, which no request waits for: waiting {waiting}, "
            f"done {before}"
        )

    def _check_skipped(self, frames: list[bytes]) -> None:
        for frame in frames:
            header = header_of(frame)
            if header is None or header[0] != ApiKey.PRODUCE:
                raise FuzzFailure(f"not answered, though later ones were: {frame[:200].hex()}")

    def _look_at(self, header: tuple[int, int, int], answer: bytes) -> None:
        key, version, number = header
        if (key, version) not in _SPOKEN:
            if key != ApiKey.API_VERSIONS:
                raise FuzzFailure(f"answered, though not supported: key {key} version {version}")
            return
        if number % DECODED_ONE_OF and key not in LEARNED_FROM:
            return
        try:
            _, body = decode_response(answer, version, key=ApiKey(key))
        except BarnabasError as error:
            raise FuzzFailure(
                f"the response of key {key} version {version} is malformed: {error}: {answer[:500].hex()}"
            ) from error
        if key in LEARNED_FROM:
            self._words.learn(decode_request(self._frames[self._at - 1]), body)
        if (key, version) not in self._tally.unknown_errors and _has_unknown_error(body):
            self._tally.unknown_errors[key, version] = self._frames[self._at - 1]

    # The next connection

    def _closed_by_broker(self, now_s: float) -> None:
        self.close()
        self._tally.closed += 1
        if self._is_ending:
            self.start(now_s)
        else:
            self._go_on(now_s)

    def _go_on(self, now_s: float) -> None:
        """Send what is behind the request that ended the connection."""
        self._tally.sent += min(self._at + 1, len(self._frames))
        self._frames = self._frames[self._at + 1 :]
        if self._frames:
            self._send(now_s)
        else:
            self.start(now_s)


def _key_of(frame: bytes) -> int:
    return int.from_bytes(frame[:2], "big")


def _has_unknown_error(body: Any) -> bool:
    """Whether a response says UNKNOWN_SERVER_ERROR anywhere."""
    if isinstance(body, list):
        return any(map(_has_unknown_error, body))
    schema = getattr(type(body), "__schema__", None)
    if schema is None:
        return False
    for field in schema.fields:
        value = getattr(body, field.name)
        if field.name.endswith("error_code") and value == ErrorCode.UNKNOWN_SERVER_ERROR:
            return True
        if _has_unknown_error(value):
            return True
    return False


def run_lanes(lanes: list[Lane], every_turn: Callable[[float], None]) -> None:
    """Drive all of them until none has work."""
    now_s = time.monotonic()
    for lane in lanes:
        lane.start(now_s)
    while active := [lane for lane in lanes if not lane.is_done]:
        poller = select.poll()
        by_number = {}
        for lane in active:
            number = lane.fileno()
            by_number[number] = lane
            poller.register(number, select.POLLIN | (select.POLLOUT if lane.wants_to_write else 0))
        ready = poller.poll(_POLL_S * 1000)
        now_s = time.monotonic()
        for number, events in ready:
            lane = by_number[number]
            if events & select.POLLOUT:
                lane.write()
            if events & ~select.POLLOUT:
                lane.read(now_s)
        for lane in active:
            if not lane.is_done:
                lane.check_progress(now_s)
        every_turn(now_s)
