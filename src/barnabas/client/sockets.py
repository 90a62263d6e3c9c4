"""Socket options of clients."""

import asyncio
import logging
import socket
from typing import Final

from barnabas.client.settings import ClientSettings

logger = logging.getLogger(__name__)

# Low-water mark for large responses: just more than the largest packet, so that two are read at a time. A
# larger one saves little, and a broker with less than this in flight (SO_SNDBUF) would wait for our ACK,
# which the system delays by about 40 ms.
_LOW_WATER_MARK_BYTES: Final = 64 * 1024
# After this many wakeups that were this late with this little data, assume such a broker.
_LATE_WAKEUP_S: Final = 0.03
_SMALL_READ_BYTES: Final = 2 * _LOW_WATER_MARK_BYTES
_LATE_WAKEUPS_MAX: Final = 3


def tune_socket(transport: asyncio.BaseTransport, settings: ClientSettings) -> None:
    """Disable Nagle's algorithm and set buffer sizes (-1: the system's default)."""
    sock = transport.get_extra_info("socket")
    if sock is None:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if settings.send_buffer_bytes >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
    if settings.receive_buffer_bytes >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)


class LowWaterMark:
    """Sets SO_RCVLOWAT, so that the process wakes for large parts of a response instead of every packet.

    A partial response is of no use. The option is only a hint: the end of the connection and a full receive
    buffer wake the process at once. It is disabled if it causes delays.
    """

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        self._socket: socket.socket | None = transport.get_extra_info("socket")
        self._bytes = 1
        self._last_read_s = 0.0
        self._late_wakeups = 0

    def expect(self, missing: int, received: int, now_s: float) -> None:
        """`received` bytes have arrived, `missing` complete the response (0: no response in progress)."""
        if self._socket is None:
            return
        if self._bytes > 1 and received < _SMALL_READ_BYTES and now_s - self._last_read_s > _LATE_WAKEUP_S:
            self._late_wakeups += 1
        self._last_read_s = now_s
        wanted = max(1, min(missing, _LOW_WATER_MARK_BYTES)) if self._late_wakeups < _LATE_WAKEUPS_MAX else 1
        # Skip small responses: two system calls per response must cost less than they save.
        if wanted == self._bytes or (self._bytes == 1 and wanted < _LOW_WATER_MARK_BYTES):
            return
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)
            self._bytes = wanted
        except OSError as error:
            logger.debug("SO_RCVLOWAT is not supported error=%s", error)
            self._socket = None
