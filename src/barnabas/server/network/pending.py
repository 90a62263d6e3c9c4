"""A request that is not answered at once: its place in the order of responses, and the work it waits for."""

import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import i64

from barnabas.base.errors import Malformed
from barnabas.base.faults import report_fault
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import DecodeInSteps, Request, decode_in_steps
from barnabas.protocol.schema.codec import NotEncodable
from barnabas.server.network.outlet import Part
from barnabas.server.network.request_bytes import DECODED_TIMES
from barnabas.server.requests.api import Api, Later, is_coroutine
from barnabas.server.requests.long_requests import ClientGone
from barnabas.server.requests.slices import Slices
from barnabas.server.requests.slicing import answer_in_slices, encode_in_steps

if TYPE_CHECKING:
    from barnabas.server.network.connection import Connection

logger = logging.getLogger(__name__)

# Larger requests are decoded in steps. Decoding one of this size takes a few milliseconds.
DECODED_AT_ONCE_BYTES_MAX: Final = 32 << 10
# The same for compiled decoders, which are ten times as fast.
COMPILED_AT_ONCE_BYTES_MAX: Final = 256 << 10
# Only records need more. An array of the smallest items takes sixty times its size in memory when decoded.
OTHER_REQUEST_BYTES_MAX: Final = 10 << 20

_PRODUCE: Final = ApiKey.PRODUCE
_PRODUCE_BYTES: Final = ApiKey.PRODUCE.to_bytes(2, "big")


class PendingRequest:
    """One request of a connection, from its start until its response is sent.

    While a coroutine works for it, the connection starts no other request. While it waits for a deferred
    response, it does.
    """

    __slots__ = ("_connection", "_size", "api", "is_ready", "later", "parts", "request", "started_ns")

    def __init__(
        self, connection: "Connection", api: Api, request: Request | None, started_ns: int, size: i64
    ) -> None:
        """Take the next place in the order. The request counts for `size` bytes until it has a response."""
        self._connection: Final = connection
        self.api: Final = api
        # None while it is being decoded.
        self.request = request
        self.started_ns: Final = started_ns
        self._size: i64 = size
        self.later: Later | None = None
        self.parts: list[Part] = []
        self.is_ready = False
        connection.pending.append(self)
        if size:
            connection.unanswered_bytes += size
            connection.hold(size)

    def wait_for(self, deferred: Later) -> None:
        self.later = deferred
        deferred.then_call(self.answer)

    def finish_work(self, work: object) -> None:
        """Run a handler's coroutine."""
        self._start_task(self._finish_work(work))

    def answer_in_slices(self, slices: Slices) -> None:
        """Handle a request with many items slice by slice."""
        self._start_task(self._answer_in_slices(slices))

    def decode(self, reading: DecodeInSteps) -> None:
        """Decode a large frame in steps, then handle the request."""
        self._start_task(self._decode(reading))

    def answer(self, answer: object) -> None:
        """The response is there: send it as soon as those before it are sent."""
        connection, request = self._connection, self.request
        assert request is not None, "decoded before it was handled"
        self.later = None
        self._release()
        if self.api.long_lists and self.api.long_list(answer) is not None:
            connection.pool.tasks.start(self._isolated(self._encode_in_steps(request, answer)))
            return
        self.is_ready = True
        self.parts = connection.encode(self.api, request, answer, self.started_ns)
        if not connection.is_serving:
            # Requests may have waited for the room that this response frees.
            connection.serve()

    def abandon(self) -> None:
        """The client has gone. A coroutine that has started runs to its end: part of it may be written."""
        if self.later is not None:
            self.later.cancel()
            self._release()

    def _release(self) -> None:
        if self._size:
            self._connection.unanswered_bytes -= self._size
            self._connection.release(self._size)
            self._size = 0

    # Tasks

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._connection.is_working = True
        self._connection.pool.tasks.start(self._isolated(work))

    async def _isolated(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self._connection.fail(error)

    async def _finish_work(self, work: Any) -> None:
        request = self.request
        assert request is not None
        self._worked(await self._connection.dispatcher.finish(self.api, request, work))

    def _worked(self, answer: object) -> None:
        connection = self._connection
        connection.is_working = False
        if isinstance(answer, Later):
            if connection.is_lost:
                self._release()
                answer.cancel()
                return
            self.wait_for(answer)
        else:
            self.answer(answer)
        connection.serve()

    async def _decode(self, reading: DecodeInSteps) -> None:
        connection, api = self._connection, self.api
        context, turns = connection.context, connection.pool.long_requests
        assert context is not None
        try:
            async with turns:
                read = await turns.run(reading.steps, self._is_gone)
                request = self.request = reading.request(read)
                slices = api.slices_of(request.body, is_large=True)
                api.check_whole(request.body, slices, read[2])
                if slices is not None:
                    answer = await answer_in_slices(api, slices, context, request, turns, self._is_gone)
                else:
                    answer = connection.dispatcher.call(api, context, request)
                    if is_coroutine(answer):
                        answer = await connection.dispatcher.finish(api, request, answer)
        except Exception as error:
            self._fail(error)
        else:
            self._worked(answer)

    async def _answer_in_slices(self, slices: Slices) -> None:
        context, request = self._connection.context, self.request
        assert context is not None
        assert request is not None
        turns = self._connection.pool.long_requests
        try:
            async with turns:
                answer = await answer_in_slices(self.api, slices, context, request, turns, self._is_gone)
        except Exception as error:
            self._fail(error)
        else:
            self._worked(answer)

    async def _encode_in_steps(self, request: Request, answer: object) -> None:
        turns = self._connection.pool.long_requests
        try:
            async with turns:
                encoded = await encode_in_steps(self.api, request, answer, turns, self._is_gone)
        except Exception as error:
            self._fail(error)
        else:
            self.answer(encoded)
            self._connection.serve()

    def _is_gone(self) -> bool:
        return self._connection.is_lost

    def _fail(self, error: Exception) -> None:
        """Close the connection: to refuse every item of a long request one by one would take long again."""
        connection = self._connection
        connection.is_working = False
        self._release()
        if self in connection.pending:
            connection.pending.remove(self)
        if isinstance(error, Malformed):
            connection.close_for(f"bad request: {error}")
        elif isinstance(error, NotEncodable):
            connection.close_for(f"response too long: {error}")
        elif not isinstance(error, ClientGone):
            report_fault(logger, error, "request failed api=%s", self.api.key.name)
            connection.close_for(f"{self.api.key.name} failed")


def decoded_bytes(api: Api, size: i64) -> i64:
    """Return how many bytes a decoded request counts for. Produce records are not copied by decoding."""
    return size if api.key is _PRODUCE else size * DECODED_TIMES


def decode_in_pauses(connection: "Connection", frame: bytes, started_ns: int) -> bool:
    """Start to decode a large frame in steps; return False if it should be decoded at once."""
    if frame[:2] == _PRODUCE_BYTES:
        # Mostly records, and the decoder is compiled.
        return False
    if len(frame) > OTHER_REQUEST_BYTES_MAX:
        connection.close_for(
            f"request of {len(frame)} bytes exceeds the limit of {OTHER_REQUEST_BYTES_MAX} "
            "for requests other than Produce"
        )
        return True
    reading = decode_in_steps(frame)
    api = connection.dispatcher.find(reading.api.key, reading.version, reading.correlation_id)
    if reading.is_compiled and api.takes_many and len(frame) <= COMPILED_AT_ONCE_BYTES_MAX:
        return False
    PendingRequest(connection, api, None, started_ns, len(frame)).decode(reading)
    return True
