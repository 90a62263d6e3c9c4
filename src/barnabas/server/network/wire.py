"""What the loop calls for one client: each of its calls is one of a Connection.

There are two forms, and a transport may change from one to the other. Most clients send small requests, and a
Wire is given those as bytes, in one call. While large ones come a RoomyWire is asked where to put them, so
that they are received in the place where they will stay.

The loop asks for these base classes, and a compiled class that has a Python class for a base is a slow one.
The methods are handed over rather than called, so that nothing stands between the loop and the connection.
"""

import asyncio
from typing import Final

from barnabas.server.network.connection import Connection

_OF_BOTH: Final = ("connection_lost", "connection_made", "pause_writing", "resume_writing")
_OF_BYTES: Final = (*_OF_BOTH, "data_received")
_OF_ROOMS: Final = (*_OF_BOTH, "buffer_updated", "get_buffer")


class Wire(asyncio.Protocol):
    """Made for every client that comes in. A client that sends no more is gone: eof_received() says so."""

    __slots__ = _OF_BYTES

    def __init__(self, connection: Connection) -> None:
        for name in _OF_BYTES:
            setattr(self, name, getattr(connection, name))


class RoomyWire(asyncio.BufferedProtocol):
    """Made for a client whose requests are large."""

    __slots__ = _OF_ROOMS

    def __init__(self, connection: Connection) -> None:
        for name in _OF_ROOMS:
            setattr(self, name, getattr(connection, name))
