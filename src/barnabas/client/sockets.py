"""How a client's sockets are set."""

import asyncio
import logging
import socket
from typing import Final

from barnabas.client.settings import ClientSettings

logger = logging.getLogger(__name__)

# So much of a large answer is worth being woken for: just more than the largest packet, so that two are read
# at a time. More saves little, and a broker that has less than this under way (SO_SNDBUF) would wait for us
# to acknowledge it, which the system does only some 40 ms later.
_WORTH_WAKING_BYTES: Final = 64 * 1024
# Who was kept waiting so long for so little, so often, may have met such a broker.
_LATE_S: Final = 0.03
_LITTLE_BYTES: Final = 2 * _WORTH_WAKING_BYTES
_LATE_TIMES_MAX: Final = 3


def tune_socket(transport: asyncio.BaseTransport, settings: ClientSettings) -> None:
    """Small requests go out at once, and buffers have the sizes asked for (-1: the system's own)."""
    sock = transport.get_extra_info("socket")
    if sock is None:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if settings.send_buffer_bytes >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
    if settings.receive_buffer_bytes >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)


class Alarm:
    """Has the system wake us for a good part of a large answer, rather than for every packet of it.

    Nothing can be done with a part anyway. It is a hint: the end of the connection is told at once, and so is
    a receive buffer that is full. It is given up where it makes us wait.
    """

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        self._socket: socket.socket | None = transport.get_extra_info("socket")
        self._bytes = 1
        self._asked_s = 0.0
        self._times_late = 0

    def expect(self, missing: int, received: int, now_s: float) -> None:
        """`received` bytes have come, `missing` complete the answer (0 if none is under way)."""
        if self._socket is None:
            return
        if self._bytes > 1 and received < _LITTLE_BYTES and now_s - self._asked_s > _LATE_S:
            self._times_late += 1
        self._asked_s = now_s
        wanted = max(1, min(missing, _WORTH_WAKING_BYTES)) if self._times_late < _LATE_TIMES_MAX else 1
        # Two calls for an answer must cost less than what they save.
        if wanted == self._bytes or (self._bytes == 1 and wanted < _WORTH_WAKING_BYTES):
            return
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)
            self._bytes = wanted
        except OSError as error:
            logger.debug("SO_RCVLOWAT is not supported error=%s", error)
            self._socket = None
