"""One listener: bound first, so that its port is known, and served when the broker is ready."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from barnabas.base.faults import report_fault
from barnabas.server.dispatch import Dispatcher
from barnabas.server.network.accepting import Accepting, socket_of_both_families
from barnabas.server.network.connection import Connection
from barnabas.server.network.pool import ConnectionPool
from barnabas.server.network.wire import RoomyWire, Wire
from barnabas.server.settings.endpoints import Endpoint

logger = logging.getLogger(__name__)


class Listener:
    """An endpoint, the connections that come in through it, and the APIs that are spoken there."""

    def __init__(
        self,
        endpoint: Endpoint,
        pool: ConnectionPool,
        dispatcher: Dispatcher,
        backlog: int,
        *,
        shares_port: bool = False,
    ) -> None:
        """With `shares_port` another listener has the same port for the other IP version."""
        self.endpoint: Final = endpoint
        self.pool: Final = pool
        self._dispatcher = dispatcher
        self._backlog = backlog
        self._shares_port = shares_port
        self._server: asyncio.AbstractServer | None = None
        self._accepting: Accepting | None = None
        self.port = endpoint.port

    async def bind(self) -> None:
        """Take the port; nobody is answered yet. OSError if it cannot be had."""
        loop = asyncio.get_running_loop()

        def make() -> Wire:
            return Wire(Connection(self.pool, self._dispatcher, loop, Wire, RoomyWire))

        def accepted() -> Wire:
            if self._accepting is not None:
                self._accepting.one_came()
            return make()

        self._server = server = await self._bound(loop, accepted)
        self._accepting = Accepting(loop, server.sockets, make, _report)
        self.port = server.sockets[0].getsockname()[1]

    async def _bound(self, loop: asyncio.AbstractEventLoop, accepted: Callable[[], Wire]) -> asyncio.Server:
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
        assert self._server is not None, "bind() comes first"
        await self._server.start_serving()
        logger.info(
            "listening name=%s host=%s port=%d", self.endpoint.name, self.endpoint.host or "*", self.port
        )

    def stop_accepting(self) -> None:
        if self._accepting is not None:
            self._accepting.stop()
        if self._server is not None:
            self._server.close()

    async def close(self, timeout_s: float) -> None:
        """Finish what was accepted, within the time."""
        self.stop_accepting()
        if self._accepting is not None:
            await self._accepting.close()
        await self.pool.close(timeout_s)


def _report(error: BaseException) -> None:
    report_fault(logger, error, "connection failed")
