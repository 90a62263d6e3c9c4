"""All connections of one listener: admission, idle and excess connections, and shutdown."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.base.clock import Clock
from barnabas.base.faults import report_fault
from barnabas.base.tasks import Tasks
from barnabas.server.metrics.request_stats import RequestStats
from barnabas.server.network.admission import Admission, Admitted, ConnectionLimits
from barnabas.server.network.backlog import StartBudget
from barnabas.server.network.outlet import BusyPoll, FlushQueue
from barnabas.server.network.request_bytes import RequestBytes
from barnabas.server.network.response_bytes import LIMIT_MIN, ResponseBytes
from barnabas.server.network.writable import Writable
from barnabas.server.requests.api import Context
from barnabas.server.requests.long_requests import LongRequests

if TYPE_CHECKING:
    from barnabas.server.network.connection import Connection

logger = logging.getLogger(__name__)

# The most bytes of one read from a socket, unless a large frame is being received. The bytes are copied out.
SCRATCH_BYTES: Final = 64 << 10
_NS_PER_MS: Final = 1_000_000
# Number of checks for idle connections within connections.max.idle.ms.
_SWEEPS: Final = 4
# The maximum time between two checks, because the limit may change.
_SWEEP_MS_MAX: Final = 60_000
# A check that is later than this means that the event loop was blocked.
_LATE_MS: Final = 200


class ConnectionPool:
    """The connections of one listener. Counts their traffic and owns the tasks of their requests."""

    def __init__(
        self,
        *,
        clock: Clock,
        limits: ConnectionLimits,
        request_bytes_max: int,
        stats: RequestStats,
        context: Callable[[str], Context],
        admitted: Admitted | None = None,
        is_protected: bool = False,
        busy_poll_ns: int = 0,
        long_requests: LongRequests | None = None,
        request_bytes: RequestBytes | None = None,
        response_bytes: ResponseBytes | None = None,
    ) -> None:
        self.clock: Final = clock
        self.admission: Final = Admission(limits, admitted, is_protected=is_protected)
        if not is_protected:
            self.admission.admitted.on_excess.append(self.close_excess)
        self.request_bytes_max: Final = request_bytes_max
        self.stats: Final = stats
        self.context: Final = context
        # Shared by all listeners of a broker.
        self.long_requests: Final = long_requests or LongRequests()
        self.request_bytes: Final = request_bytes or RequestBytes(request_bytes_max)
        # All connections read into this buffer: nothing else runs between get_buffer() and buffer_updated()
        # of one connection.
        self.scratch: Final = memoryview(bytearray(SCRATCH_BYTES))
        self.start_budget: Final = StartBudget()
        self.flush_queue: Final = FlushQueue(BusyPoll(clock.ticks_ns, clock.used_ns, busy_poll_ns))
        self.writable: Final = Writable()
        self.bytes_in = 0
        self.bytes_out = 0
        self.accepted = 0
        self.refused = 0
        self._connections: set[Connection] = set()
        self.request_bytes.watch(self._connections)
        self.response_bytes: Final = response_bytes or ResponseBytes(LIMIT_MIN)
        self.response_bytes.watch(self._connections)
        self.tasks: Final = Tasks(_report)
        self._all_gone: asyncio.Event | None = None

    def __len__(self) -> int:
        return len(self._connections)

    @property
    def limits(self) -> ConnectionLimits:
        return self.admission.limits

    def change_limits(self, limits: ConnectionLimits) -> None:
        self.admission.limits = limits
        self.close_excess()
        for callback in self.admission.admitted.on_room:
            callback()

    def enter(self, host: str, peer: str) -> bool:
        """Count a new connection. If this returns False, the connection must be closed at once."""
        why = self.admission.enter(host)
        if why is not None:
            self.refuse(peer, why)
        return why is None

    def enter_late(self, host: str, peer: str) -> bool:
        """The same for a connection that the loop has already accepted, so that it cannot wait."""
        if not self.admission.has_room:
            self.refuse(peer, "too many connections")
            return False
        return self.enter(host, peer)

    def refuse(self, peer: str, why: str) -> None:
        """Count and log a refused connection. There may be many, so not each one gets a log line."""
        self.refused += 1
        count = self.admission.to_log(self.clock.monotonic_ms())
        if count:
            logger.warning("connections refused count=%d last=%s reason=%s", count, peer, why)

    def add(self, connection: "Connection") -> None:
        """Add a connection that enter() has counted."""
        self.accepted += 1
        self._connections.add(connection)
        self.admission.make_room()

    def forget(self, connection: "Connection") -> None:
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self.admission.leave(connection.host)
        if not self._connections and self._all_gone is not None:
            self._all_gone.set()

    def close_excess(self) -> bool:
        """If there are more connections than allowed, close those that have been idle longest."""
        excess = self.admission.excess
        if excess <= 0:
            return False
        by_idleness = sorted(self._connections, key=lambda connection: connection.last_active_ns)
        for connection in by_idleness[:excess]:
            connection.close_for("max.connections is exceeded")
        return True

    def tune(self, sock: socket.socket) -> None:
        """Set the socket options of a client. TCP_NODELAY: small responses must not wait for more."""
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self.limits.send_buffer_bytes >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.limits.send_buffer_bytes)
        if self.limits.receive_buffer_bytes >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.limits.receive_buffer_bytes)

    async def run(self) -> None:
        """Close idle connections, until cancelled."""
        while True:
            sweep_ms = self.limits.idle_ms // _SWEEPS
            sleep_ms = _SWEEP_MS_MAX if sweep_ms < 0 else max(1, min(sweep_ms, _SWEEP_MS_MAX))
            before_ns = self.clock.ticks_ns()
            await asyncio.sleep(sleep_ms / 1000)
            # If the loop was blocked, requests may have arrived that have not been read yet.
            if self.clock.ticks_ns() - before_ns < (sleep_ms + _LATE_MS) * _NS_PER_MS:
                self.close_idle()

    def close_idle(self) -> None:
        """Close the connections whose client has sent no request and read no response for too long."""
        if self.limits.idle_ms < 0:
            return
        limit_ns = self.limits.idle_ms * _NS_PER_MS
        now_ns = self.clock.ticks_ns()
        for connection in list(self._connections):
            outlet = connection.outlet
            if outlet is not None and outlet.taken != connection.seen_taken:
                connection.seen_taken = outlet.taken
                connection.last_active_ns = now_ns
            if outlet is not None and now_ns - connection.last_active_ns >= limit_ns:
                _close_idle(connection, outlet.waiting)

    async def close(self, timeout_s: float) -> None:
        """Finish open connections within the timeout, then close those that are left."""
        self._all_gone = asyncio.Event()
        for connection in list(self._connections):
            try:
                connection.hurry()
                connection.finish()
            except Exception as error:
                report_fault(logger, error, "connection failed peer=%s", connection.peer)
                connection.abort()
        if self._connections:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._all_gone.wait()
            except TimeoutError:
                logger.warning("connections closed at shutdown timeout count=%d", len(self._connections))
        for connection in list(self._connections):
            connection.abort()
        await self.tasks.close()
        # connection_lost() of aborted connections runs in the loop's next iteration and drops what waits.
        await asyncio.sleep(0)
        self.writable.close()


def _close_idle(connection: "Connection", waiting: int) -> None:
    if connection.is_idle:
        connection.close_for("idle for too long")
    elif waiting:
        # Its responses would wait forever.
        connection.evict(f"client does not read its responses waiting={waiting}")
    elif not connection.is_working:
        # As in Kafka. The client may have gone: a connection that is not being read does not notice.
        connection.evict("request waited too long for its response")


def _report(error: BaseException) -> None:
    report_fault(logger, error, "request failed")
