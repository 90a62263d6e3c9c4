"""Frames: a four-byte length, then that many bytes. Bytes in, frames out; no socket in sight."""

from collections.abc import Iterable
from struct import Struct

from barnabas.base.errors import Malformed

_LENGTH = Struct(">i")

# socket.request.max.bytes: Kafka's default limit for one request.
FRAME_BYTES_MAX = 104_857_600

# Pieces smaller than this are gathered: a peer that sends a large frame byte by byte must not make
# us keep an object for every byte.
SMALL_PIECE_BYTES = 4096


class FrameDecoder:
    """Cuts a stream into frames. Holds at most one unfinished frame, never larger than `limit`.

    A length that is negative or too large cannot be skipped, because nothing says where the next frame
    starts. The frames before it are still handed out; then `broken` is set, and feed() raises it.
    """

    def __init__(self, limit: int = FRAME_BYTES_MAX) -> None:
        self.broken: Malformed | None = None
        self._limit = limit
        self._pieces: list[bytes | bytearray] = []
        self._held = 0
        # How many bytes complete the unfinished frame, its length included; 4 while that is unknown.
        self._needed = 4

    @property
    def held(self) -> int:
        """How many bytes wait for the rest of their frame."""
        return self._held

    def feed(self, data: bytes) -> list[bytes]:
        """Return every frame that `data` completes; keep the rest."""
        if self.broken is not None:
            raise self.broken
        if self._held + len(data) < self._needed:
            self._keep(data)
            return []
        # A large frame comes in many pieces: they are joined once, when the last one is there.
        buf = b"".join((*self._pieces, data)) if self._held else data
        self._pieces = []
        self._held = 0
        return self._cut(buf)

    def _keep(self, data: bytes) -> None:
        self._held += len(data)
        if len(data) >= SMALL_PIECE_BYTES:
            self._pieces.append(data)
        elif self._pieces and isinstance(self._pieces[-1], bytearray):
            self._pieces[-1] += data
        else:
            self._pieces.append(bytearray(data))

    def _cut(self, buf: bytes) -> list[bytes]:
        frames: list[bytes] = []
        at, end = 0, len(buf)
        self._needed = 4
        while end - at >= 4:
            (size,) = _LENGTH.unpack_from(buf, at)
            if not 0 <= size <= self._limit:
                self.broken = _refusal(size, self._limit)
                if not frames:
                    raise self.broken
                return frames
            if end - at < 4 + size:
                self._needed = 4 + size
                break
            frames.append(buf[at + 4 : at + 4 + size])
            at += 4 + size
        if at < end:
            self._keep(buf[at:])
        return frames


def _refusal(size: int, limit: int) -> Malformed:
    what = f"length {size} is negative" if size < 0 else f"length {size} is over the limit of {limit}"
    return Malformed(what, where="frame")


def frame(parts: Iterable[bytes]) -> bytes:
    """One frame of the parts of a message."""
    body = b"".join(parts)
    return _LENGTH.pack(len(body)) + body
