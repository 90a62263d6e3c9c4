"""A plain client for one connection: requests out, response frames in, and what happens to the connection.

It knows no retries, no metadata and no batching, so a test sees exactly what the broker does: which answer
belongs to which bytes, and whether it closed the connection.
"""

import socket
from struct import Struct
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import FRAME_BYTES_MAX, decode_response, encode_request
from barnabas.protocol.schema.struct import schema_of

ANSWER_TIMEOUT_S = 30.0
CLIENT_ID = "wire-client"
_LENGTH = Struct(">i")


class ConnectionClosed(Exception):
    """The broker closed the connection where an answer was waited for."""


def key_of(body: object) -> ApiKey:
    """The API that a request belongs to."""
    key = schema_of(type(body)).key
    assert key is not None, f"{type(body).__name__} is no request"
    return ApiKey(key)


class WireClient:
    """One connection. Not for threads."""

    def __init__(self, address: str, *, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self._next_id = 0

    def __enter__(self) -> "WireClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    # Out

    def send(self, body: object, version: int, *, client_id: str | None = CLIENT_ID) -> int:
        """Send one request and return its correlation id; the answer is left to receive()."""
        self._next_id += 1
        data = encode_request(
            body, version, key=key_of(body), correlation_id=self._next_id, client_id=client_id
        )
        self.send_raw(data)
        return self._next_id

    def send_frame(self, frame: bytes) -> None:
        """Send a request whose bytes the test made, after their length."""
        self.send_raw(_LENGTH.pack(len(frame)) + frame)

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are. A broker that already closed the connection is seen when reading."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    # In

    def read_frame(self) -> bytes:
        """The next response without its length; ConnectionClosed if none comes any more."""
        (size,) = _LENGTH.unpack(self._read(_LENGTH.size))
        assert 0 <= size <= FRAME_BYTES_MAX, f"a response of {size} bytes"
        return self._read(size)

    def receive(self, key: ApiKey, version: int) -> tuple[int, Any]:
        """The next response: its correlation id and its body."""
        return decode_response(self.read_frame(), version, key=key)

    def ask(self, body: object, version: int) -> Any:
        """Send a request and return the body of its answer."""
        sent = self.send(body, version)
        answered, answer = self.receive(key_of(body), version)
        assert answered == sent, f"correlation id {answered} answers {sent}"
        return answer

    def is_closed(self, *, within_s: float = ANSWER_TIMEOUT_S) -> bool:
        """Whether the broker closes the connection in that time, without sending anything."""
        self._socket.settimeout(within_s)
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def _read(self, size: int) -> bytes:
        pieces = []
        left = size
        while left:
            try:
                piece = self._socket.recv(left)
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise ConnectionClosed(f"{size - left} of {size} bytes came")
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)
