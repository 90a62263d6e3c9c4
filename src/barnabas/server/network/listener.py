"""One listener: bind() first, so that its port is known, then serve() when the broker is ready."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from barnabas.base.faults import report_fault
from barnabas.server.network.acceptor import Acceptor, socket_of, socket_of_both_families
from barnabas.server.network.connection import Connection
from barnabas.server.network.large_frames import LargeFrames
from barnabas.server.network.pool import ConnectionPool
from barnabas.server.requests.api import Dispatcher
from barnabas.server.settings.endpoints import Endpoint

logger = logging.getLogger(__name__)


_CONNECTION_CALLBACKS: Final = ("connection_lost", "connection_made", "pause_writing", "resume_writing")
_BUFFER_CALLBACKS: Final = ("buffer_updated", "get_buffer")


class ClientProtocol(asyncio.Protocol):
    """The asyncio protocol of every new client. On end of file, eof_received() closes the transport.

    asyncio requires its base classes, but a compiled class with a Python base class is slow. So the protocols
    stay in Python and copy the bound methods of the Connection: the loop calls the connection directly.
    """

    __slots__ = (*_CONNECTION_CALLBACKS, "data_received")

    def __init__(self, connection: Connection) -> None:
        for name in ClientProtocol.__slots__:
            setattr(self, name, getattr(connection, name))


class LargeFrameProtocol(asyncio.BufferedProtocol):
    """The protocol of a client while it sends large frames."""

    __slots__ = (*_CONNECTION_CALLBACKS, *_BUFFER_CALLBACKS)

    def __init__(self, connection: Connection, large: LargeFrames) -> None:
        for name in _CONNECTION_CALLBACKS:
            setattr(self, name, getattr(connection, name))
        for name in _BUFFER_CALLBACKS:
            setattr(self, name, getattr(large, name))


def _protocol_of(connection: Connection, large: LargeFrames | None) -> asyncio.BaseProtocol:
    return ClientProtocol(connection) if large is None else LargeFrameProtocol(connection, large)


class Listener:
    """An endpoint, its connections, and the APIs that it serves."""

    def __init__(
        self,
        endpoint: Endpoint,
        pool: ConnectionPool,
        dispatcher: Dispatcher,
        backlog: int,
        *,
        shares_port: bool = False,
    ) -> None:
        """With `shares_port`, another listener uses the same port for the other IP version."""
        self.endpoint: Final = endpoint
        self.pool: Final = pool
        self._dispatcher = dispatcher
        self._backlog = backlog
        self._shares_port = shares_port
        # Used by the simulator's loop, which has its own sockets; other loops watch those of `_acceptor`.
        self._server: asyncio.Server | None = None
        self._acceptor: Acceptor | None = None
        self.port = endpoint.port

    async def bind(self) -> None:
        """Bind the port without accepting connections. OSError if that fails."""
        loop = asyncio.get_running_loop()

        def make(sock: Any = None, host: str = "", peer: str = "") -> tuple[Connection, ClientProtocol]:
            connection = Connection(self.pool, self._dispatcher, _protocol_of, sock, host, peer)
            return connection, ClientProtocol(connection)

        server = await self._bound(loop, lambda: make()[1])
        self.port = server.sockets[0].getsockname()[1]
        if _has_own_sockets(loop):
            self._server = server
            return
        # The server was only needed to resolve the host and bind the sockets.
        listening = [socket_of(one) for one in server.sockets]
        server.close()
        self._acceptor = Acceptor(loop, listening, self.pool, make, _report)

    async def _bound(
        self, loop: asyncio.AbstractEventLoop, accepted: Callable[[], ClientProtocol]
    ) -> asyncio.Server:
        host, port = self.endpoint.host, self.endpoint.port
        if host == "::" and not self._shares_port:
            sock = socket_of_both_families(port)
            try:
                return await loop.create_server(
                    accepted, sock=sock, backlog=self._backlog, start_serving=False
                )
            except BaseException:
                sock.close()
                raise
        return await loop.create_server(
            accepted, host or None, port, backlog=self._backlog, reuse_address=True, start_serving=False
        )

    async def serve(self) -> None:
        assert self._server is not None or self._acceptor is not None, "serve() was called before bind()"
        if self._server is not None:
            await self._server.start_serving()
        if self._acceptor is not None:
            self._acceptor.start(self._backlog)
        logger.info(
            "listening name=%s host=%s port=%d", self.endpoint.name, self.endpoint.host or "*", self.port
        )

    def stop_accepting(self) -> None:
        if self._acceptor is not None:
            self._acceptor.stop()
        if self._server is not None:
            self._server.close()

    async def close(self, timeout_s: float) -> None:
        """Stop accepting, and finish open connections within the timeout."""
        self.stop_accepting()
        if self._acceptor is not None:
            await self._acceptor.close()
        await self.pool.close(timeout_s)


def _has_own_sockets(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this is the simulator's loop: a subclass of asyncio's loop, with simulated sockets."""
    return isinstance(loop, asyncio.SelectorEventLoop) and type(loop) is not asyncio.SelectorEventLoop


def _report(error: BaseException) -> None:
    report_fault(logger, error, "connection failed")
