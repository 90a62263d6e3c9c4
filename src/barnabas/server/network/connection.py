"""One client connection: frames become requests, and responses go out in the order of the requests.

A request starts as soon as it has arrived, unless an earlier one is still being processed. An earlier one
that only waits for its response (Later) delays responses but not requests. Two limits bound what a client can
have in progress: the number of requests without a response, and the bytes of responses that it has not read.
At either limit the connection stops reading.

A request that is answered at once passes through this class alone. Others have a PendingRequest (pending.py).
Requests that may not start yet are in a Backlog (backlog.py), and large frames are received by LargeFrames
(large_frames.py).
"""

import asyncio
import errno
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from mypy_extensions import i64

from barnabas.base.errors import Malformed
from barnabas.base.faults import report_fault
from barnabas.protocol.exchange import (
    FrameDecoder,
    Request,
    UnsupportedRequest,
    decode_request,
    encoded_response_parts,
    response_parts,
)
from barnabas.protocol.schema.codec import NotEncodable
from barnabas.server.network.acceptor import names_of
from barnabas.server.network.backlog import Backlog
from barnabas.server.network.large_frames import LargeFrames
from barnabas.server.network.outlet import Outlet, Part, SocketOutlet, joined_parts
from barnabas.server.network.pending import (
    DECODED_AT_ONCE_BYTES_MAX,
    PendingRequest,
    decode_in_pauses,
    decoded_bytes,
)
from barnabas.server.network.pool import ConnectionPool
from barnabas.server.network.transport_outlet import TransportOutlet
from barnabas.server.requests.api import Api, Context, Dispatcher, EncodedBody, Later, NoAnswer, is_coroutine
from barnabas.storage.log import LogRead

logger = logging.getLogger(__name__)

# Makes the asyncio protocol through which the event loop drives a connection: one that is given bytes or,
# with LargeFrames, one that provides the buffers.
MakeProtocol: TypeAlias = Callable[["Connection", LargeFrames | None], asyncio.BaseProtocol]

# Kafka processes one request per connection at a time. Clients have about five in flight.
PIPELINED_MAX: Final = 100
# Responses that the client has not read; a single fetch response may be larger.
WAITING_BYTES_MAX: Final = 1 << 20
# Requests that have no response yet, counted as in RequestBytes. A single one may be larger.
UNANSWERED_BYTES_MAX: Final = 32 << 20


class Connection:
    """Driven by the event loop through an asyncio protocol (listener.py); owned by the listener's pool."""

    def __init__(
        self,
        pool: ConnectionPool,
        dispatcher: Dispatcher,
        make_protocol: MakeProtocol,
        sock: Any = None,
        host: str = "",
        peer: str = "",
    ) -> None:
        """A connection that Acceptor made has a socket, `host` and `peer`, and is already counted."""
        self.pool: Final = pool
        self.dispatcher: Final = dispatcher
        self.make_protocol: Final = make_protocol
        self._ticks_ns: Final = pool.clock.ticks_ns
        self._request_bytes: Final = pool.request_bytes
        self._frames: Final = FrameDecoder(pool.request_bytes_max)
        # While large frames arrive.
        self.large: LargeFrames | None = None
        self._backlog: Final = Backlog()
        # Requests without a sent response, in order, and the bytes that they count for.
        self.pending: deque[PendingRequest] = deque()
        self.unanswered_bytes: i64 = 0
        # Responses to send next, and the bytes of all that are ready: some wait for an earlier response.
        self._out: list[Part] = []
        self._ready_bytes = 0
        # A request is being processed, and the ones behind it must not start.
        self.is_working = False
        # Requests are being started; responses are sent after that.
        self.is_serving = False
        self.is_paused = False
        self.is_closing = False
        self.is_lost = False
        self.transport: Any = None
        # Whether connection_made() was called; if so, the loop will also call connection_lost().
        self.is_made = False
        # The system socket that the transport will use; None in the simulator.
        self._socket = sock
        self.outlet: Outlet | None = None
        # Bytes that the client had read at the last check for idle connections.
        self.seen_taken = 0
        self.context: Context | None = None
        self.host = host
        self.peer = peer
        self.last_active_ns = self._ticks_ns()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.is_made = True
        if not self.host:
            self.host, self.peer = names_of(transport.get_extra_info("peername"))
            if not self.pool.enter_late(self.host, self.peer):
                self.is_lost = True
                self.transport.abort()
                self.transport = None
                return
        self.pool.add(self)
        try:
            self._begin_to_serve(transport)
        except Exception as error:
            # The client may have gone already, or there is no memory for the connection.
            logger.warning("connection failed peer=%s error=%r", self.peer, error)
            self.is_closing = True
            self.transport.abort()

    def _begin_to_serve(self, transport: asyncio.BaseTransport) -> None:
        sock, self._socket = self._socket, None
        pool = self.pool
        if sock is not None and transport.get_extra_info("sslcontext") is None:
            pool.tune(sock)
            self.outlet = SocketOutlet(pool.writable, pool.flush_queue, sock, self._drained, self._broken)
        else:
            self.outlet = TransportOutlet(self.transport, self._drained)
        self.context = pool.context(self.host)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.is_lost:
            return
        self.is_lost = True
        self._backlog.clear(self)
        for one in self.pending:
            one.abandon()
        self.pending.clear()
        self._out = []
        self._drop_frame()
        if self.outlet is not None:
            self.outlet.close()
        self.pool.forget(self)
        # Break the reference cycles with these objects. Otherwise they would keep all that the client has
        # sent in memory until the next garbage collection.
        self.large = None
        self.outlet = None
        self.transport = None

    def pause_writing(self) -> None:
        if isinstance(self.outlet, TransportOutlet):
            self.outlet.pause()

    def resume_writing(self) -> None:
        if isinstance(self.outlet, TransportOutlet):
            self.outlet.resume_soon()

    def data_received(self, data: bytes) -> None:
        self.pool.bytes_in += len(data)
        if self.is_closing or self.is_lost:
            return
        try:
            frames = self._frames.feed(data)
        except Malformed as error:
            self.close_for(f"bad frame: {error}")
            return
        if frames:
            if self.large is not None:
                self.large.end_frame()
            self.take(frames)
        if self._frames.is_large:
            self._receive_large()

    # Large frames

    def _receive_large(self) -> None:
        if self.is_closing or self.is_lost:
            return
        if self.large is None:
            self.large = LargeFrames(self, self._frames)
        self.large.count()

    def _drop_frame(self) -> None:
        """Discard an incomplete frame."""
        self._frames.drop()
        if self.large is not None:
            self.large.end_frame()

    def is_too_slow(self) -> bool:
        """Whether the client sends a large frame more slowly than allowed while others wait for room."""
        return self.large is not None and self.large.is_too_slow()

    # Requests

    def take(self, frames: list[bytes]) -> None:
        """Process complete request frames."""
        backlog = self._backlog
        if len(frames) == 1 and not backlog.frames and not self.is_serving and not self.is_full():
            # A shorter serve() for the usual case of one request at a time.
            self.is_serving = True
            self.start(frames[0])
            self.flush()
            self.is_serving = False
            self.regulate()
        else:
            backlog.frames.extend(frames)
            self.serve()
            if backlog.frames:
                backlog.count_bytes(self)
        if self._frames.is_broken:
            self.close_for(f"bad frame: {self._frames.broken}")

    def serve(self) -> None:
        """Start the requests that can be started, then send the responses that are ready."""
        if self.is_serving:
            # A response became ready while requests are being started; the outer call handles it.
            return
        self.is_serving = True
        if self._backlog.frames:
            self._backlog.start_some(self)
        else:
            self.flush()
        self.is_serving = False
        self.regulate()

    def is_full(self) -> bool:
        outlet = self.outlet
        return (
            # The outlet could not be created, and the connection is closing.
            outlet is None
            or self.is_working
            or self.is_closing
            or self.is_lost
            or len(self.pending) >= PIPELINED_MAX
            or self.unanswered_bytes > UNANSWERED_BYTES_MAX
            or (self._request_bytes.is_full and len(self.pending) > 0)
            or self._ready_bytes + outlet.waiting > WAITING_BYTES_MAX
        )

    def start(self, frame: bytes) -> None:
        """Decode a request and call its handler."""
        self.last_active_ns = started_ns = self._ticks_ns()
        dispatcher = self.dispatcher
        is_large = len(frame) > DECODED_AT_ONCE_BYTES_MAX
        try:
            if is_large and decode_in_pauses(self, frame, started_ns):
                return
            request = decode_request(frame)
            api = dispatcher.find(request.api.key, request.version, request.correlation_id)
        except UnsupportedRequest as refused:
            parts = dispatcher.refuse_unsupported(refused)
            if parts is None:
                self.close_for(str(refused))
            else:
                self._put_ready(parts)
            return
        except Malformed as error:
            self.close_for(f"bad request: {error}")
            return
        assert self.context is not None
        if api.slices:
            slices = api.slices_of(request.body, is_large=is_large)
            if slices is not None:
                PendingRequest(self, api, request, started_ns, len(frame)).answer_in_slices(slices)
                return
        answer = dispatcher.call(api, self.context, request)
        if isinstance(answer, Later):
            PendingRequest(self, api, request, started_ns, decoded_bytes(api, len(frame))).wait_for(answer)
        elif is_coroutine(answer):
            PendingRequest(self, api, request, started_ns, decoded_bytes(api, len(frame))).finish_work(answer)
        elif not self.pending and (not api.long_lists or api.long_list(answer) is None):
            self._out += self.encode(api, request, answer, started_ns)
        else:
            PendingRequest(self, api, request, started_ns, 0).answer(answer)

    def fail(self, error: Exception) -> None:
        """A bug in processing one client closes this connection and nothing else."""
        report_fault(logger, error, "connection failed peer=%s", self.peer)
        self.abort()

    # Responses

    def _put_ready(self, parts: list[bytes]) -> None:
        self._ready_bytes += sum(map(len, parts))
        if not self.pending:
            self._out += parts
            return
        one = PendingRequest(self, self.pending[0].api, None, self._ticks_ns(), 0)
        one.parts = list(parts)
        one.is_ready = True

    def encode(self, api: Api, request: Request, answer: object, started_ns: int) -> list[Part]:
        """Encode a response, and count it as ready."""
        self.last_active_ns = now_ns = self._ticks_ns()
        self.pool.stats.served(api.key, now_ns - started_ns)
        if isinstance(answer, NoAnswer):
            if answer.closes:
                self.close_for(f"{api.key.name} without a response failed")
            return []
        try:
            if isinstance(answer, EncodedBody):
                parts: list[Any] = encoded_response_parts(
                    answer.parts, request.version, key=api.key, correlation_id=request.correlation_id
                )
            else:
                parts = response_parts(
                    answer, request.version, key=api.key, correlation_id=request.correlation_id
                )
        except NotEncodable as error:
            shorter = self.dispatcher.encode_shorter(api, request, answer, error)
            if shorter is None:
                # The responses behind this one must not wait for it forever.
                self.close_for("response could not be encoded")
                return []
            parts = shorter
        for part in parts:
            self._ready_bytes += len(part)
        return parts

    def flush(self) -> None:
        """Send the responses that are ready, in order."""
        pending = self.pending
        while pending and pending[0].is_ready:
            self._out += pending.popleft().parts
        if not self._out or self.is_lost:
            return
        out, self._out = self._out, []
        assert self.outlet is not None
        size = self.outlet.send(joined_parts(out))
        self._ready_bytes -= size
        self.pool.bytes_out += size

    def _drained(self) -> None:
        if self._backlog.frames or self.is_paused or self.is_closing:
            self.serve()
            self._close_if_done()

    def regulate(self) -> None:
        """Pause or resume reading, and close the connection if it is done."""
        if self.is_lost:
            return
        large = self.large
        is_full = bool(self._backlog.frames) or (large is not None and large.waits_for_room) or self.is_full()
        if is_full and not self.is_paused:
            self.is_paused = True
            self.transport.pause_reading()
        elif not is_full and self.is_paused:
            self.is_paused = False
            self.transport.resume_reading()
        if self.is_closing:
            self._close_if_done()

    # Memory that the client holds

    def hold(self, size: i64) -> None:
        """Count the bytes of a request that waits."""
        self._request_bytes.waiting += size
        if self._request_bytes.waiting >= self._request_bytes.bytes_max:
            self._request_bytes.limit_reached()

    def release(self, size: i64) -> None:
        """Stop counting a request that was answered or abandoned."""
        self._request_bytes.waiting -= size
        if self._request_bytes.is_short:
            self._request_bytes.released()

    def bytes_held_since(self, age_ns: int) -> int:
        """Return the bytes of requests if the first has waited at least `age_ns` for its response, else 0."""
        if not self.pending or self.is_working or self._ticks_ns() - self.pending[0].started_ns < age_ns:
            return 0
        return int(self.unanswered_bytes + self._backlog.size)

    def response_bytes(self) -> int:
        """Memory of the responses that the client has not read; ranges of files take none."""
        outlet = self.outlet
        if outlet is None or self._ready_bytes + outlet.waiting == 0:
            return 0
        size = outlet.held
        for one in self.pending:
            for part in one.parts:
                if not isinstance(part, LogRead):
                    size += len(part)
        return size

    # Closing

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in progress. An incomplete frame does not count: its sender may have stalled."""
        return not self.pending and not self.is_working and (self.outlet is None or self.outlet.waiting == 0)

    def close_for(self, why: str) -> None:
        """Close the connection, for a reason that is logged, after the responses in progress were sent."""
        if not self.is_closing and not self.is_lost:
            logger.info("connection closed peer=%s reason=%s", self.peer, why)
            self.finish()

    def evict(self, why: str) -> None:
        """Close the connection at once, for a reason that is logged."""
        logger.info("connection closed peer=%s reason=%s", self.peer, why)
        self.abort()

    def finish(self) -> None:
        """Take no more requests; close when those in progress have been answered."""
        self.is_closing = True
        self._backlog.clear(self)
        self._drop_frame()
        if not self.is_serving:
            self.regulate()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None and not self.is_lost:
            self.transport.abort()

    def hurry(self) -> None:
        """The broker is stopping: answer waiting fetches with the records that there are."""
        for one in list(self.pending):
            if one.later is not None and one.later.on_hurry is not None:
                one.later.on_hurry()

    def _close_if_done(self) -> None:
        if self.is_closing and not self.is_lost and self.is_idle and not self._out:
            self.transport.close()

    def _broken(self, error: OSError) -> None:
        # Sockets do not raise EIO, so a log file cannot be read.
        level = logging.ERROR if error.errno == errno.EIO else logging.DEBUG
        logger.log(level, "connection broken peer=%s error=%s", self.peer, error)
        self.abort()
