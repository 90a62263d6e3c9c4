"""How a client's sockets are set."""

import asyncio
import logging
import socket
from typing import Final

from barnabas.client.settings import ClientSettings

logger = logging.getLogger(__name__)

# So much of a large answer is worth being woken for: more saves little, and what is kept waiting gets cold.
_WORTH_WAKING_BYTES: Final = 256 * 1024


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
    a receive buffer that is full.
    """

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        self._socket: socket.socket | None = transport.get_extra_info("socket")
        self._bytes = 1

    def expect(self, missing: int) -> None:
        """So many bytes complete the answer; 0 if none is under way."""
        wanted = max(1, min(missing, _WORTH_WAKING_BYTES))
        # Two calls for an answer must cost less than what they save.
        if (
            wanted == self._bytes
            or self._socket is None
            or (self._bytes == 1 and wanted < _WORTH_WAKING_BYTES)
        ):
            return
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)
            self._bytes = wanted
        except OSError as error:
            logger.debug("no SO_RCVLOWAT here reason=%s", error)
            self._socket = None
