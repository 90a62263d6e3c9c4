"""One client connection: frames become requests, and responses go out in the order of the requests.

A request starts as soon as it has arrived, unless an earlier one is still being processed. An earlier one
that only waits for its response (see Later) delays responses but not requests. Two limits bound what a
client can have in progress: the number of requests without a response, and the bytes of responses that it
has not read. At either limit the connection stops reading.
"""

import asyncio
import errno
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from mypy_extensions import i64

from barnabas.base.errors import Malformed
from barnabas.base.faults import report_fault
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import (
    DecodeInSteps,
    Request,
    UnsupportedRequest,
    decode_in_steps,
    decode_request,
    encoded_response_parts,
    response_parts,
)
from barnabas.protocol.frame import FrameDecoder
from barnabas.protocol.schema.codec import NotEncodable
from barnabas.server.network.accepting import names_of
from barnabas.server.network.outlet import Outlet, Part, SocketOutlet, TransportOutlet
from barnabas.server.network.pool import ConnectionPool
from barnabas.server.network.request_bytes import (
    DECODED_TIMES,
    FRAME_BYTES_PER_S_MIN,
    FRAME_GRACE_MS,
)
from barnabas.server.requests.api import Api, Context, Dispatcher, EncodedBody, Later, NoAnswer
from barnabas.server.requests.error_messages import cut_messages
from barnabas.server.requests.long_requests import ClientGone
from barnabas.server.requests.slices import Slices
from barnabas.server.requests.slicing import answer_in_slices, encode_in_steps
from barnabas.storage.log import LogRead

logger = logging.getLogger(__name__)

MakeWire: TypeAlias = Callable[["Connection"], asyncio.BaseProtocol]

# Kafka processes one request per connection at a time. Clients have about five in flight.
PIPELINED_MAX: Final = 100
# Only records need more. An array of the smallest items takes sixty times its size in memory when decoded.
OTHER_REQUEST_BYTES_MAX: Final = 10 << 20
# Larger requests are decoded in steps. Decoding one of this size takes a few milliseconds.
DECODED_AT_ONCE_BYTES_MAX: Final = 32 << 10
# The same for compiled decoders, which are ten times as fast.
COMPILED_AT_ONCE_BYTES_MAX: Final = 256 << 10
# Responses that the client has not read; a single fetch response may be larger.
WAITING_BYTES_MAX: Final = 1 << 20
# Requests that have no response yet, counted as in RequestBytes. A single one may be larger.
UNANSWERED_BYTES_MAX: Final = 32 << 20
# After this many reads without a large request the connection goes back to the wire for small ones.
SMALL_READS_MAX: Final = 32

_NS_PER_MS: Final = 1_000_000
_PRODUCE_KEY: Final = ApiKey.PRODUCE
_PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2, "big")


class _Slot:
    """The place of one response in the order of responses."""

    __slots__ = ("api", "later", "parts", "ready", "request", "size", "started_ns")

    def __init__(self, api: Api, request: Request | None, started_ns: int, size: i64) -> None:
        self.api = api
        # None while it is being decoded.
        self.request = request
        self.started_ns = started_ns
        # Bytes that the request counts for until it has a response.
        self.size: i64 = size
        self.later: Later | None = None
        self.parts: list[Part] = []
        self.ready = False


class Connection:
    """Driven by the event loop through one of two protocols (wire.py); owned by the pool of its listener."""

    def __init__(
        self,
        pool: ConnectionPool,
        dispatcher: Dispatcher,
        loop: asyncio.AbstractEventLoop,
        wire: MakeWire,
        roomy_wire: MakeWire,
        sock: Any = None,
        host: str = "",
        peer: str = "",
    ) -> None:
        """A connection that Accepting made has a socket, `host` and `peer`, and is already counted."""
        self._pool = pool
        self._dispatcher = dispatcher
        self._loop = loop
        self._wire = wire
        self._roomy_wire = roomy_wire
        # Whether large requests arrive, and how many reads without one have followed the last.
        self._is_roomy = False
        self._small_reads: i64 = 0
        self._ticks_ns = pool.clock.ticks_ns
        self._frames = FrameDecoder(pool.request_bytes_max)
        self._room: memoryview | None = None
        self._backlog: deque[bytes] = deque()
        self._slots: deque[_Slot] = deque()
        # This connection's share of the broker's request bytes: an incomplete large frame, requests without
        # a response, the backlog.
        self._request_bytes = pool.request_bytes
        self._unfinished: i64 = 0
        self._unanswered: i64 = 0
        self._backlog_bytes: i64 = 0
        # Until when the unfinished frame arrived fast enough, and its size at that time.
        self._read_since_ns = 0
        self._read_before: i64 = 0
        # Reading is paused until other connections have freed some bytes.
        self._waits_for_room = False
        self._out: list[Part] = []
        # Bytes of responses that are ready but wait for an earlier response.
        self._ready_bytes = 0
        # A request is being processed, and the ones behind it must not start.
        self._working = False
        self._serving = False
        self._next_turn: asyncio.Handle | None = None
        self._paused = False
        self._closing = False
        self._lost = False
        self._transport: Any = None
        # Whether connection_made() was called; if so, the loop will also call connection_lost().
        self.is_made = False
        # The system socket that the transport will use; None in the simulator.
        self._socket = sock
        self._outlet: Outlet | None = None
        self._ctx: Context | None = None
        self._seen_taken = 0
        self.host = host
        self.peer = peer
        self.last_active_ns = self._ticks_ns()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.is_made = True
        if not self.host:
            self.host, self.peer = names_of(transport.get_extra_info("peername"))
            if not self._pool.enter_late(self.host, self.peer):
                self._lost = True
                self._transport.abort()
                self._transport = None
                return
        self._pool.add(self)
        try:
            self._begin_to_serve(transport)
        except Exception as error:
            # The client may have gone already, or there is no memory for the connection.
            logger.warning("connection failed peer=%s error=%r", self.peer, error)
            self._closing = True
            self._transport.abort()

    def _begin_to_serve(self, transport: asyncio.BaseTransport) -> None:
        sock, self._socket = self._socket, None
        if sock is not None and transport.get_extra_info("sslcontext") is None:
            self._pool.tune(sock)
            self._outlet = SocketOutlet(
                self._pool.writable, self._pool.turn, sock, self._drained, self._broken
            )
        else:
            self._outlet = TransportOutlet(self._transport, self._drained)
        self._ctx = self._pool.context(self.host)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        self._give_up()
        self._drop_frame()
        if self._outlet is not None:
            self._outlet.close()
        self._pool.forget(self)
        # Break the reference cycles with the transport and the outlet. Otherwise they would keep all that the
        # client has sent in memory until the next garbage collection.
        self._outlet = None
        self._transport = None

    def pause_writing(self) -> None:
        if isinstance(self._outlet, TransportOutlet):
            self._outlet.has_room(False)

    def resume_writing(self) -> None:
        # Not within this call: _write_on() may close the transport, and asyncio would then close it twice.
        self._loop.call_soon(self._write_on)

    def _write_on(self) -> None:
        if isinstance(self._outlet, TransportOutlet) and not self._lost:
            self._outlet.has_room(True)

    def data_received(self, data: bytes) -> None:
        self._pool.bytes_in += len(data)
        if self._closing or self._lost:
            return
        try:
            frames = self._frames.feed(data)
        except Malformed as error:
            self.close_for(f"bad frame: {error}")
            return
        if frames:
            if self._unfinished:
                self._frame_is_complete()
            self._take(frames)
        if self._frames.is_large:
            self._count_frame()
            self._change_wire(True)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read: a large frame's own, or the pool's scratch buffer."""
        self._room = self._frames.room()
        return self._pool.scratch if self._room is None else self._room

    def buffer_updated(self, nbytes: int) -> None:
        self._pool.bytes_in += nbytes
        if self._closing or self._lost:
            return
        try:
            if self._room is None:
                self._small_reads += 1
                frames = self._frames.feed(bytes(self._pool.scratch[:nbytes]))
            else:
                self._small_reads = 0
                self._room = None
                frames = self._frames.filled(nbytes)
        except Malformed as error:
            self.close_for(f"bad frame: {error}")
            return
        if frames:
            if self._unfinished:
                self._frame_is_complete()
            self._take(frames)
        if self._frames.is_large:
            self._count_frame()
        elif self._small_reads > SMALL_READS_MAX:
            self._change_wire(False)

    def _change_wire(self, is_roomy: bool) -> None:
        """Switch between the protocol that receives bytes and the one that provides buffers."""
        transport = self._transport
        if is_roomy == self._is_roomy or self._closing or self._lost or transport.is_closing():
            return
        self._is_roomy = is_roomy
        self._small_reads = 0
        # A transport only notices a new protocol when it starts reading.
        if not self._paused:
            transport.pause_reading()
        transport.set_protocol(self._roomy_wire(self) if is_roomy else self._wire(self))
        if not self._paused:
            transport.resume_reading()

    # Request bytes

    def _count_frame(self) -> None:
        """Count the bytes received of a large frame; pause reading if the broker's limit is reached."""
        if self._closing or self._lost:
            return
        if self._unfinished == 0:
            self._read_since_ns = self._ticks_ns()
            self._read_before = 0
        held: i64 = self._frames.held
        self._request_bytes.unfinished += held - self._unfinished
        self._unfinished = held
        if not self._waits_for_room and not self._request_bytes.may_read(self):
            self._waits_for_room = True
            self._regulate()

    def read_on(self) -> None:
        """Resume reading: there is room for more of the large frame."""
        self._waits_for_room = False
        self._read_since_ns = self._ticks_ns()
        self._read_before = self._unfinished
        self._regulate()

    def _frame_is_complete(self) -> None:
        self._request_bytes.unfinished -= self._unfinished
        self._unfinished = 0
        self._waits_for_room = False
        self._request_bytes.finished(self)

    def _drop_frame(self) -> None:
        """Discard an incomplete frame."""
        self._frames.drop()
        if self._unfinished:
            self._frame_is_complete()

    def _count_backlog(self) -> None:
        """Update the counted bytes of the backlog."""
        held: i64 = 0
        for frame in self._backlog:
            held += len(frame)
        self._request_bytes.release(self._backlog_bytes)
        self._request_bytes.hold(held)
        self._backlog_bytes = held

    def _put(self, slot: _Slot) -> None:
        """Add a request that waits for its response."""
        self._slots.append(slot)
        self._unanswered += slot.size
        self._request_bytes.hold(slot.size)

    def _release(self, slot: _Slot) -> None:
        """Stop counting the request of a slot: it has a response or was abandoned."""
        if slot.size:
            self._unanswered -= slot.size
            self._request_bytes.release(slot.size)
            slot.size = 0

    def is_too_slow(self) -> bool:
        """Whether the client sends a large frame more slowly than allowed while others wait for room."""
        if self._unfinished == 0 or self._waits_for_room:
            return False
        now_ns = self._ticks_ns()
        passed_ms = (now_ns - self._read_since_ns) // _NS_PER_MS
        if int(self._unfinished - self._read_before) * 1000 < passed_ms * FRAME_BYTES_PER_S_MIN:
            return passed_ms > FRAME_GRACE_MS
        self._read_since_ns = now_ns
        self._read_before = self._unfinished
        return False

    def bytes_held_since(self, age_ns: int) -> int:
        """Return the bytes of requests if the first has waited at least `age_ns` for its response, else 0."""
        if not self._slots or self._working or self._ticks_ns() - self._slots[0].started_ns < age_ns:
            return 0
        return int(self._unanswered + self._backlog_bytes)

    def evict(self, why: str) -> None:
        """Close the connection at once, because others need the memory that it holds."""
        logger.info("connection closed peer=%s reason=%s", self.peer, why)
        self.abort()

    def response_bytes(self) -> int:
        """Memory of the responses that the client has not read; ranges of files take none."""
        outlet = self._outlet
        if outlet is None or self._ready_bytes + outlet.waiting == 0:
            return 0
        size = outlet.held
        for slot in self._slots:
            for part in slot.parts:
                if not isinstance(part, LogRead):
                    size += len(part)
        return size

    # Requests

    def _take(self, frames: list[bytes]) -> None:
        """Process complete request frames."""
        if len(frames) == 1 and not self._backlog and not self._serving and not self._is_full():
            # A shorter _serve() for the usual case of one request at a time.
            self._serving = True
            self._begin(frames[0])
            self._flush()
            self._serving = False
            self._regulate()
        else:
            self._backlog.extend(frames)
            self._serve()
            if self._backlog:
                self._count_backlog()
        if self._frames.broken is not None:
            self.close_for(f"bad frame: {self._frames.broken}")

    def _serve(self) -> None:
        """Start the requests that can be started, then send the responses that are ready."""
        if self._serving:
            # A response became ready while requests are being started; the outer call handles it.
            return
        self._serving = True
        backlog, budget = self._backlog, self._pool.turn.share()
        while True:
            while backlog and budget > 0 and not self._is_full():
                self._begin(backlog.popleft())
                budget -= 1
            self._flush()
            # The flush may have made room for more requests.
            if not backlog or budget == 0 or self._is_full():
                break
        self._serving = False
        if self._backlog_bytes and not backlog:
            self._count_backlog()
        if budget == 0 and backlog and self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._serve_on)
            self._pool.turn.backlogs += 1
        self._regulate()

    def _serve_on(self) -> None:
        self._next_turn = None
        self._pool.turn.backlogs -= 1
        if not self._lost:
            try:
                self._serve()
            except Exception as error:
                self._failed(error)

    def _is_full(self) -> bool:
        outlet = self._outlet
        return (
            # The outlet could not be created, and the connection is closing.
            outlet is None
            or self._working
            or self._closing
            or self._lost
            or len(self._slots) >= PIPELINED_MAX
            or self._unanswered > UNANSWERED_BYTES_MAX
            or (self._request_bytes.is_full and len(self._slots) > 0)
            or self._ready_bytes + outlet.waiting > WAITING_BYTES_MAX
        )

    def _begin(self, frame: bytes) -> None:
        self.last_active_ns = started_ns = self._ticks_ns()
        dispatcher = self._dispatcher
        is_large = len(frame) > DECODED_AT_ONCE_BYTES_MAX
        try:
            if is_large and self._begin_large(frame, started_ns):
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
        assert self._ctx is not None
        if api.slices:
            slices = api.slices_of(request.body, is_large=is_large)
            if slices is not None:
                slot = _Slot(api, request, started_ns, len(frame))
                self._start_work(slot, self._work_in_slices(slot, slices, request))
                return
        answer = dispatcher.call(api, self._ctx, request)
        if isinstance(answer, Later):
            slot = _Slot(api, request, started_ns, _counts_for(api, len(frame)))
            slot.later = answer
            self._put(slot)
            answer.then_call(lambda response: self._answered(slot, response))
        elif _is_work(answer):
            slot = _Slot(api, request, started_ns, _counts_for(api, len(frame)))
            self._start_work(slot, self._work(slot, request, answer))
        elif not self._slots and not api.long_lists:
            self._out += self._encode(api, request, answer, started_ns)
        else:
            slot = _Slot(api, request, started_ns, 0)
            self._slots.append(slot)
            self._answered(slot, answer)

    def _start_work(self, slot: _Slot, work: Coroutine[Any, Any, None]) -> None:
        """Run a request's coroutine; no other request starts until it is done."""
        self._put(slot)
        self._working = True
        self._pool.tasks.start(self._isolated(work))

    async def _isolated(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine of one client. A bug in it closes this connection and nothing else."""
        try:
            await work
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        report_fault(logger, error, "connection failed peer=%s", self.peer)
        self.abort()

    async def _work(self, slot: _Slot, request: Request, work: Any) -> None:
        self._worked(slot, await self._dispatcher.finish(slot.api, request, work))

    def _worked(self, slot: _Slot, answer: object) -> None:
        self._working = False
        if isinstance(answer, Later):
            if self._lost:
                self._release(slot)
                answer.cancel()
                return
            slot.later = answer
            answer.then_call(lambda response: self._answered(slot, response))
        else:
            self._answered(slot, answer)
        self._serve()

    # Long requests

    def _begin_large(self, frame: bytes, started_ns: int) -> bool:
        """Start to decode a frame in steps; return False if it should be decoded at once."""
        if frame[:2] == _PRODUCE:
            # Mostly records, and the decoder is compiled.
            return False
        if len(frame) > OTHER_REQUEST_BYTES_MAX:
            self.close_for(
                f"request of {len(frame)} bytes exceeds the limit of {OTHER_REQUEST_BYTES_MAX} "
                "for requests other than Produce"
            )
            return True
        reading = decode_in_steps(frame)
        api = self._dispatcher.find(reading.api.key, reading.version, reading.correlation_id)
        if reading.is_compiled and api.takes_many and len(frame) <= COMPILED_AT_ONCE_BYTES_MAX:
            return False
        slot = _Slot(api, None, started_ns, len(frame))
        self._start_work(slot, self._work_large(slot, reading))
        return True

    async def _work_large(self, slot: _Slot, reading: DecodeInSteps) -> None:
        assert self._ctx is not None
        api, turns = slot.api, self._pool.long_requests
        try:
            async with turns:
                read = await turns.run(reading.steps, self._is_gone)
                request = slot.request = reading.request(read)
                slices = api.slices_of(request.body, is_large=True)
                api.check_whole(request.body, slices, read[2])
                if slices is not None:
                    answer = await answer_in_slices(api, slices, self._ctx, request, turns, self._is_gone)
                else:
                    answer = self._dispatcher.call(api, self._ctx, request)
                    if _is_work(answer):
                        answer = await self._dispatcher.finish(api, request, answer)
        except Exception as error:
            self._long_failed(slot, error)
        else:
            self._worked(slot, answer)

    async def _work_in_slices(self, slot: _Slot, slices: Slices, request: Request) -> None:
        assert self._ctx is not None
        turns = self._pool.long_requests
        try:
            async with turns:
                answer = await answer_in_slices(slot.api, slices, self._ctx, request, turns, self._is_gone)
        except Exception as error:
            self._long_failed(slot, error)
        else:
            self._worked(slot, answer)

    def _long_failed(self, slot: _Slot, error: Exception) -> None:
        """Close the connection: to refuse every item of a long request one by one would take long again."""
        self._working = False
        self._release(slot)
        if slot in self._slots:
            self._slots.remove(slot)
        if isinstance(error, Malformed):
            self.close_for(f"bad request: {error}")
        elif isinstance(error, NotEncodable):
            self.close_for(f"response too long: {error}")
        elif not isinstance(error, ClientGone):
            report_fault(logger, error, "request failed api=%s", slot.api.key.name)
            self.close_for(f"{slot.api.key.name} failed")

    def _is_gone(self) -> bool:
        return self._lost

    async def _encode_long(self, slot: _Slot, request: Request, answer: object) -> None:
        assert self._ctx is not None
        turns = self._pool.long_requests
        try:
            async with turns:
                encoded = await encode_in_steps(slot.api, request, answer, turns, self._is_gone)
        except Exception as error:
            self._long_failed(slot, error)
        else:
            self._answered(slot, encoded)
            self._serve()

    # Answers

    def _put_ready(self, parts: list[bytes]) -> None:
        self._ready_bytes += _size_of(list(parts))
        if not self._slots:
            self._out += parts
            return
        slot = _Slot(self._slots[0].api, None, self._ticks_ns(), 0)
        slot.parts = list(parts)
        slot.ready = True
        self._slots.append(slot)

    def _answered(self, slot: _Slot, answer: object) -> None:
        request = slot.request
        assert request is not None, "decoded before it was handled"
        slot.later = None
        self._release(slot)
        if slot.api.long_lists and slot.api.long_list(answer) is not None:
            self._pool.tasks.start(self._isolated(self._encode_long(slot, request, answer)))
            return
        slot.ready = True
        slot.parts = self._encode(slot.api, request, answer, slot.started_ns)
        if not self._serving:
            # Requests may have waited for the room that this response frees.
            self._serve()

    def _encode(self, api: Api, request: Request, answer: object, started_ns: int) -> list[Part]:
        self.last_active_ns = now_ns = self._ticks_ns()
        self._pool.stats.served(api.key, now_ns - started_ns)
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
            if not isinstance(answer, EncodedBody) and cut_messages(answer):
                return self._encode(api, request, answer, started_ns)
            # A bug. The responses behind this one must not wait for it forever.
            report_fault(
                logger, error, "response not encodable api=%s version=%d", api.key.name, request.version
            )
            self.close_for("response could not be encoded")
            return []
        self._ready_bytes += _size_of(parts)
        return parts

    def _flush(self) -> None:
        slots = self._slots
        while slots and slots[0].ready:
            self._out += slots.popleft().parts
        if not self._out or self._lost:
            return
        out, self._out = self._out, []
        assert self._outlet is not None
        size = _size_of(out)
        self._ready_bytes -= size
        self._pool.bytes_out += size
        self._outlet.send(gathered(out))

    def _drained(self) -> None:
        if self._backlog or self._paused or self._closing:
            self._serve()
            self._close_if_done()

    def _regulate(self) -> None:
        """Pause or resume reading, and close the connection if it is done."""
        if self._lost:
            return
        full = bool(self._backlog) or self._waits_for_room or self._is_full()
        if full and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        elif not full and self._paused:
            self._paused = False
            self._transport.resume_reading()
        self._close_if_done()

    # The end

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in progress. An incomplete frame does not count: its sender may have stalled."""
        return not self._slots and not self._working and (self._outlet is None or self._outlet.waiting == 0)

    def close_if_idle(self, limit_ns: int, now_ns: int) -> None:
        """Close the connection if for `limit_ns` the client has sent no request and read no response."""
        outlet = self._outlet
        if outlet is None:
            return
        if outlet.taken != self._seen_taken:
            self._seen_taken = outlet.taken
            self.last_active_ns = now_ns
        if now_ns - self.last_active_ns < limit_ns:
            return
        if self.is_idle:
            self.close_for("idle for too long")
        elif not self._working and not outlet.waiting:
            # As in Kafka. The client may have gone: a connection that is not being read does not notice.
            logger.info(
                "connection closed peer=%s reason=request waited too long for its response", self.peer
            )
            self.abort()
        elif outlet.waiting:
            # The client does not read, so its responses would wait forever.
            logger.info(
                "connection closed peer=%s reason=client does not read its responses waiting=%d",
                self.peer,
                outlet.waiting,
            )
            self.abort()

    def close_for(self, why: str) -> None:
        """Close the connection, for a reason that is logged, after the responses in progress were sent."""
        if not self._closing and not self._lost:
            logger.info("connection closed peer=%s reason=%s", self.peer, why)
            self.finish()

    def finish(self) -> None:
        """Take no more requests; close when those in progress have been answered."""
        self._closing = True
        self._clear_backlog()
        self._drop_frame()
        if not self._serving:
            self._regulate()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None and not self._lost:
            self._transport.abort()

    def hurry(self) -> None:
        """The broker is stopping: answer waiting fetches with the records that there are."""
        for slot in list(self._slots):
            if slot.later is not None and slot.later.on_hurry is not None:
                slot.later.on_hurry()

    def _close_if_done(self) -> None:
        if self._closing and not self._lost and self.is_idle and not self._out:
            self._transport.close()

    def _broken(self, error: OSError) -> None:
        # Sockets do not raise EIO, so a log file cannot be read.
        level = logging.ERROR if error.errno == errno.EIO else logging.DEBUG
        logger.log(level, "connection broken peer=%s error=%s", self.peer, error)
        self.abort()

    def _clear_backlog(self) -> None:
        self._backlog.clear()
        if self._backlog_bytes:
            self._count_backlog()

    def _give_up(self) -> None:
        self._clear_backlog()
        for slot in self._slots:
            if slot.later is not None:
                slot.later.cancel()
                self._release(slot)
            # A coroutine that has started runs to its end: part of its changes may be written.
        self._slots.clear()
        self._out = []


def _counts_for(api: Api, size: i64) -> i64:
    """Return how many bytes a decoded request counts for. Produce records are not copied by decoding."""
    return size if api.key is _PRODUCE_KEY else size * DECODED_TIMES


def _is_work(answer: Any) -> bool:
    """Whether a handler returned a coroutine. Cached by class: isinstance() with an ABC is slow."""
    kind = type(answer)
    known = _IS_WORK.get(kind)
    if known is None:
        known = _IS_WORK[kind] = isinstance(answer, Coroutine)
    return known


# Bounded by the number of response classes.
_IS_WORK: Final[dict[type, bool]] = {}


def _size_of(parts: list[Part]) -> int:
    size = 0
    for part in parts:
        size += len(part)
    return size


def gathered(parts: list[Part]) -> list[Part]:
    """Join adjacent small pieces, so that they are sent with one system call."""
    if all(type(part) is bytes for part in parts):
        return [b"".join(parts)]  # type: ignore[arg-type]
    result: list[Part] = []
    run: list[Any] = []
    for part in parts:
        if isinstance(part, (bytes, memoryview)) and len(part) < _LARGE_BYTES:
            run.append(part)
            continue
        if run:
            result.append(b"".join(run))
            run = []
        result.append(part)
    if run:
        result.append(b"".join(run))
    return result


# Larger pieces are not worth a copy.
_LARGE_BYTES: Final = 64 << 10
