"""What the loop calls for one client: each of its calls is one of a Connection.

The loop asks for this base class, and a compiled class that has a Python class for a base is a slow one. The
methods are handed over rather than called, so that nothing stands between the loop and the connection.
"""

import asyncio
from typing import Final

from barnabas.server.network.connection import Connection

_CALLED: Final = (
    "buffer_updated",
    "connection_lost",
    "connection_made",
    "get_buffer",
    "pause_writing",
    "resume_writing",
)


class Wire(asyncio.BufferedProtocol):
    """Made for every client that comes in. A client that sends no more is gone: eof_received() says so."""

    __slots__ = _CALLED

    def __init__(self, connection: Connection) -> None:
        for name in _CALLED:
            setattr(self, name, getattr(connection, name))
