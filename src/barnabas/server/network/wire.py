"""The asyncio protocols of one client; each of their methods is a method of its Connection.

There are two, and a transport may switch between them. Most clients send small requests: a Wire receives
these as bytes, in one call. While requests are large, a RoomyWire provides the buffer, so that bytes are
received where they will stay.

asyncio requires its base classes, but a compiled class with a Python base class is slow. So these classes
stay in Python and copy the bound methods of the Connection: the loop calls the connection directly.
"""

import asyncio
from typing import Final

from barnabas.server.network.connection import Connection

_OF_BOTH: Final = ("connection_lost", "connection_made", "pause_writing", "resume_writing")
_OF_BYTES: Final = (*_OF_BOTH, "data_received")
_OF_ROOMS: Final = (*_OF_BOTH, "buffer_updated", "get_buffer")


class Wire(asyncio.Protocol):
    """The protocol of every new client. On end of file, the inherited eof_received() closes the transport."""

    __slots__ = _OF_BYTES

    def __init__(self, connection: Connection) -> None:
        for name in _OF_BYTES:
            setattr(self, name, getattr(connection, name))


class RoomyWire(asyncio.BufferedProtocol):
    """The protocol of a client whose requests are large."""

    __slots__ = _OF_ROOMS

    def __init__(self, connection: Connection) -> None:
        for name in _OF_ROOMS:
            setattr(self, name, getattr(connection, name))
