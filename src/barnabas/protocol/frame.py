"""Frames: a four-byte length, then that many bytes. Bytes in, frames out; no socket in sight."""

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

# Larger frames are received in the place where they will stay, once a part of them is there: 1/64, so that
# nobody gets memory on the word of a length alone.
ROOM_FROM_BYTES: Final = 64 * 1024
ROOM_TIMES: Final = 64

# Pieces smaller than this are gathered: a peer that sends a large frame byte by byte must not make
# us keep an object for every byte.
SMALL_PIECE_BYTES: Final = 4096


class FrameDecoder:
    """Cuts a stream into frames. Holds at most one unfinished frame, never larger than `limit`.

    A length that is negative or too large cannot be skipped, because nothing says where the next frame
    starts. The frames before it are still handed out; then `broken` is set, and feed() raises it.
    """

    def __init__(self, limit: int = FRAME_BYTES_MAX) -> None:
        # A length that no frame can have.
        self._refused: int | None = None
        self._limit = limit
        self._pieces: list[bytes | bytearray] = []
        self._held = 0
        # How many bytes complete the unfinished frame, its length included; 4 while that is unknown.
        self._needed = 4
        # The room of a large frame that is under way.
        self._room: bytes | None = None
        self._room_left = memoryview(b"")

    @property
    def held(self) -> int:
        """How many bytes wait for the rest of their frame."""
        return self._held

    @property
    def missing(self) -> int:
        """How many bytes complete the frame that is under way; 0 between frames, or if that is not known."""
        return self._needed - self._held if self._held >= 4 else 0

    @property
    def is_large(self) -> bool:
        """Whether the frame that is under way is one that room() is for."""
        return self._needed >= ROOM_FROM_BYTES

    @property
    def broken(self) -> Malformed | None:
        """Why nothing can follow. Made anew each time: a raised error refers to the frames that it passed."""
        return None if self._refused is None else _refusal(self._refused, self._limit)

    def feed(self, data: bytes) -> list[bytes]:
        """Return every frame that `data` completes; keep the rest."""
        if self._refused is not None:
            raise _refusal(self._refused, self._limit)
        if self._room is not None:
            taken = min(len(data), len(self._room_left))
            self._room_left[:taken] = data[:taken]
            frames = self.filled(taken)
            return frames + self.feed(data[taken:]) if taken < len(data) else frames
        if self._held + len(data) < self._needed:
            self._keep(data)
            return []
        # A large frame comes in many pieces: they are joined once, when the last one is there.
        buf = b"".join((*self._pieces, data)) if self._held else data
        self._pieces = []
        self._held = 0
        return self._cut(buf)

    def room(self) -> memoryview | None:
        """Where the rest of a large frame is to be put, by whoever can: then filled() says how much was.

        None if there is no such frame, and feed() takes what comes. One copy less is a third of the work.
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
        """So many bytes were put into the room. The frame, if it is whole."""
        assert self._room is not None, "there is no room"
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
        """Forget the unfinished frame. Nothing can be fed any more, because the rest of it would follow."""
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
                self._refused = size
                if not frames:
                    raise _refusal(size, self._limit)
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
