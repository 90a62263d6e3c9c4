"""A small HTTP server for metrics and health, used by brokers and by streams in Spark.

It implements as much of HTTP/1.1 as Prometheus, curl and load balancers need: one GET or HEAD per connection,
which is then closed. The request size, the times to send a request and to read the response, and the number
of connections are bounded. Long responses are sent in pieces, and the event loop runs other work in between,
so that ten thousand partitions do not block it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias

from barnabas.base.exposition import Dialect
from barnabas.base.faults import report_fault
from barnabas.base.http_request import BadRequest, HttpRequest, parse_request

logger = logging.getLogger(__name__)

REQUEST_BYTES_MAX: Final = 8_192
CONNECTIONS_MAX: Final = 16
# Above CONNECTIONS_MAX a client gets an error response; at this number its connection is aborted.
REFUSALS_MAX: Final = 2 * CONNECTIONS_MAX
# For receiving the request, and for the whole exchange.
REQUEST_TIMEOUT_S: Final = 5.0
EXCHANGE_TIMEOUT_S: Final = 30.0
# For the client to close its side after the response.
PARTING_TIMEOUT_S: Final = 2.0

_END_OF_HEAD: Final = b"\r\n\r\n"
_PLAIN: Final = "text/plain; charset=utf-8"
_METHODS: Final = ("GET", "HEAD")
_OPEN_METRICS: Final = "application/openmetrics-text"


class Response(NamedTuple):
    status: HTTPStatus
    type: str
    pieces: Iterable[bytes]
    headers: tuple[str, ...] = ()


# Makes the response to a request for one path.
Page: TypeAlias = Callable[[HttpRequest], Awaitable[Response]]


def dialect_of(request: HttpRequest) -> Dialect:
    """OpenMetrics if the Accept header names it, otherwise the older text format."""
    for offer in request.headers.get("accept", "").lower().split(","):
        kind, *parameters = [part.strip() for part in offer.split(";")]
        if kind == _OPEN_METRICS and not any(one in ("q=0", "q=0.0") for one in parameters):
            return Dialect.OPEN_METRICS
    return Dialect.TEXT


def plain_text(status: HTTPStatus, text: str, *headers: str) -> Response:
    return Response(status, _PLAIN, [f"{text}\n".encode()], headers)


class MetricsServer:
    """start(), then close(). Owns its connections."""

    def __init__(self, served: Mapping[str, Page]) -> None:
        self._pages: Final = served
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def start(self, hosts: str | Sequence[str] | None, port: int) -> None:
        """Listen on one or several IPv4 or IPv6 addresses; None means all. OSError if that fails."""
        self._server = await asyncio.start_server(self._connected, hosts, port, limit=REQUEST_BYTES_MAX)
        for host, bound in self.addresses:
            logger.info("metrics served host=%s port=%d", host, bound)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The addresses and ports that the server listens on."""
        if self._server is None:
            return []
        return [sock.getsockname()[:2] for sock in self._server.sockets]

    async def close(self) -> None:
        """Stop listening and drop open connections: a scrape can be repeated."""
        if self._server is None:
            return
        self._server.close()
        clients = list(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        self._server = None

    # One connection

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= REFUSALS_MAX:
            writer.transport.abort()
            return
        # Start the task here: asyncio would report one that it started itself as failed when it is cancelled.
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(EXCHANGE_TIMEOUT_S):
                await self._exchange(reader, writer)
                await _part(reader, writer)
        except (ConnectionError, TimeoutError) as error:
            logger.debug("metrics client lost error=%r", error)
        except Exception as error:
            report_fault(logger, error, "metrics request failed")
        finally:
            # Everything has been sent, or the client has gone.
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) > CONNECTIONS_MAX:
            await _send(writer, None, plain_text(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections"))
            return
        request: HttpRequest | None = None
        try:
            request = await _receive(reader)
            if request is None:
                return
            response = await self._respond(request)
        except BadRequest as bad:
            response = plain_text(bad.status, bad.what)
        await _send(writer, request, response)

    async def _respond(self, request: HttpRequest) -> Response:
        page = self._pages.get(request.path)
        if page is None:
            return plain_text(HTTPStatus.NOT_FOUND, f"not found; available: {', '.join(sorted(self._pages))}")
        if request.method not in _METHODS:
            return plain_text(HTTPStatus.METHOD_NOT_ALLOWED, "use GET or HEAD", "Allow: GET, HEAD")
        try:
            return await page(request)
        except Exception as error:
            report_fault(logger, error, "page failed path=%s", request.path)
            return plain_text(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the log")


async def _receive(reader: asyncio.StreamReader) -> HttpRequest | None:
    """Receive a request; None if the client disconnected before. BadRequest if it is invalid."""
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            head = await reader.readuntil(_END_OF_HEAD)
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        raise BadRequest(status, f"request exceeds {REQUEST_BYTES_MAX} bytes") from None
    except TimeoutError:
        raise BadRequest(
            HTTPStatus.REQUEST_TIMEOUT, f"request not received within {REQUEST_TIMEOUT_S:.0f} s"
        ) from None
    return parse_request(head)


async def _part(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Wait until the client has closed its side, and discard what it still sends.

    Closing a socket with unread bytes resets the connection, and the client might lose the response.
    """
    writer.write_eof()
    try:
        async with asyncio.timeout(PARTING_TIMEOUT_S):
            while await reader.read(REQUEST_BYTES_MAX):
                pass
    except TimeoutError:
        logger.debug("metrics client did not close its connection")


async def _send(writer: asyncio.StreamWriter, request: HttpRequest | None, response: Response) -> None:
    # With chunks the client can tell a complete response from one that broke off.
    in_chunks = request is not None and request.minor_version >= 1
    status = response.status
    head = [f"HTTP/1.1 {status.value} {status.phrase}", f"Content-Type: {response.type}"]
    head += ["Connection: close", *response.headers]
    if in_chunks:
        head.append("Transfer-Encoding: chunked")
    writer.write("\r\n".join([*head, "\r\n"]).encode("ascii"))
    if request is None or request.method != "HEAD":
        for piece in response.pieces:
            if piece:
                # Not writelines(): in Python 3.12.0 to 3.12.8, 3.13.0 and 3.13.1 drain() does not wait after
                # it, so that a client that does not read would fill our memory. (CVE-2024-12254)
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if in_chunks else piece)
            await writer.drain()
            # drain() returns at once while there is room: let the loop run other work.
            await asyncio.sleep(0)
        if in_chunks:
            writer.write(b"0\r\n\r\n")
    await writer.drain()
