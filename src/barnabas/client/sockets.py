"""How a client's sockets are set."""

import asyncio
import socket

from barnabas.client.settings import ClientSettings


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
