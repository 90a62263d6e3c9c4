"""Frames: a four-byte length, then that many bytes. Sans-IO: bytes in, frames out."""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from librt.strings import read_i32_be
from mypy_extensions import i64

from barnabas.base.errors import Malformed
from barnabas.records.fresh_bytes import fresh_bytes

_LENGTH: Final = Struct(">i")

# socket.request.max.bytes: Kafka's default limit for one request.
FRAME_BYTES_MAX: Final = 104_857_600

# Frames from this size on are received directly into their final buffer. It is allocated once 1/64 of the
# frame has arrived, so that a length alone does not make us allocate memory.
ROOM_FROM_BYTES: Final = 64 * 1024
ROOM_TIMES: Final = 64

# Pieces smaller than this are merged: a peer that sends a large frame byte by byte must not make us hold an
# object per byte.
SMALL_PIECE_BYTES: Final = 4096


class FrameDecoder:
    """Splits a stream into frames. Buffers at most one incomplete frame, never larger than `limit`.

    A frame with a negative or too large length cannot be skipped, because the start of the next one is
    unknown. The frames before it are still returned; then `broken` is set, and feed() raises it.
    """

    def __init__(self, limit: int = FRAME_BYTES_MAX) -> None:
        # The invalid length, if one was received.
        self._bad_length: int | None = None
        self._limit = limit
        self._pieces: list[bytes | bytearray] = []
        self._held = 0
        # The size of the incomplete frame with its length field; 4 while that is unknown.
        self._needed = 4
        # The buffer of a large incomplete frame.
        self._room: bytes | None = None
        self._room_left = memoryview(b"")

    @property
    def held(self) -> int:
        """The number of buffered bytes of the incomplete frame."""
        return self._held

    @property
    def missing(self) -> int:
        """The number of bytes that complete the current frame; 0 between frames or if unknown."""
        return self._needed - self._held if self._held >= 4 else 0

    @property
    def is_broken(self) -> bool:
        return self._bad_length is not None

    @property
    def is_large(self) -> bool:
        """Whether the current frame is large enough for room()."""
        return self._needed >= ROOM_FROM_BYTES

    @property
    def broken(self) -> Malformed | None:
        """The error that ended the stream. A new object each time: a raised error keeps a traceback."""
        return None if self._bad_length is None else _length_error(self._bad_length, self._limit)

    def feed(self, data: bytes) -> list[bytes]:
        """Return every frame that `data` completes; buffer the rest."""
        if self._bad_length is not None:
            raise _length_error(self._bad_length, self._limit)
        if self._room is not None:
            taken = min(len(data), len(self._room_left))
            self._room_left[:taken] = data[:taken]
            frames = self.filled(taken)
            return frames + self.feed(data[taken:]) if taken < len(data) else frames
        if self._held + len(data) < self._needed:
            self._keep(data)
            return []
        # A large frame comes in many pieces; join them once, with the last one.
        buf = b"".join((*self._pieces, data)) if self._held else data
        self._pieces = []
        self._held = 0
        return self._cut(buf)

    def room(self) -> memoryview | None:
        """The buffer for the rest of a large frame; call filled() after writing to it.

        None if there is no large frame; then call feed(). Saving the copy saves a third of the work.
        """
        if self._room is not None:
            return self._room_left
        if self._needed < ROOM_FROM_BYTES or self._held * ROOM_TIMES < self._needed:
            return None
        held = b"".join(self._pieces)
        self._room, self._room_left = fresh_bytes(self._needed - 4)
        self._room_left[: len(held) - 4] = held[4:]
        self._room_left = self._room_left[len(held) - 4 :]
        self._pieces = []
        return self._room_left

    def filled(self, size: int) -> list[bytes]:
        """Note that `size` bytes were written to room(); return the frame if it is complete."""
        assert self._room is not None, "filled() without room()"
        self._room_left = self._room_left[size:]
        self._held += size
        if len(self._room_left):
            return []
        room, self._room = self._room, None
        self._room_left = memoryview(b"")
        self._held = 0
        self._needed = 4
        return [room]

    def drop(self) -> None:
        """Discard the incomplete frame. Do not feed any more, because the rest of it would follow."""
        self._pieces = []
        self._room = None
        self._room_left = memoryview(b"")
        self._held = 0
        self._needed = 4

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
        at: i64 = 0
        end: i64 = len(buf)
        self._needed = 4
        while end - at >= 4:
            size = i64(read_i32_be(buf, at))
            if not 0 <= size <= self._limit:
                self._bad_length = size
                if not frames:
                    raise _length_error(size, self._limit)
                return frames
            if end - at < 4 + size:
                self._needed = 4 + size
                break
            frames.append(buf[at + 4 : at + 4 + size])
            at += 4 + size
        if at < end:
            self._keep(buf[at:])
        return frames


def _length_error(size: int, limit: int) -> Malformed:
    what = f"length {size} is negative" if size < 0 else f"length {size} exceeds the limit of {limit}"
    return Malformed(what, where="frame")


def frame(parts: Iterable[bytes]) -> bytes:
    """Join the parts of a message to one frame."""
    body = b"".join(parts)
    return _LENGTH.pack(len(body)) + body
