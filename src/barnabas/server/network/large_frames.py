"""Receive large frames into buffers of their own, and count them in the request bytes of the broker.

Most clients send small requests, which a connection receives as bytes, in one call. While frames are large,
the event loop asks LargeFrames for a buffer instead, so that bytes are received where they will stay.
"""

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from barnabas.base.errors import Malformed
from barnabas.protocol.exchange import FrameDecoder
from barnabas.server.network.request_bytes import FRAME_BYTES_PER_S_MIN, FRAME_GRACE_MS

if TYPE_CHECKING:
    from barnabas.server.network.connection import Connection

# After this many reads without a large frame the connection receives bytes again.
SMALL_READS_MAX: Final = 32

_NS_PER_MS: Final = 1_000_000


class LargeFrames:
    """The large frames of one connection: made for the first, dropped after SMALL_READS_MAX small reads."""

    def __init__(self, connection: "Connection", frames: FrameDecoder) -> None:
        pool = connection.pool
        self._connection: Final = connection
        self._frames: Final = frames
        self._scratch: Final = pool.scratch
        self._request_bytes: Final = pool.request_bytes
        self._ticks_ns: Final = pool.clock.ticks_ns
        self._is_receiving = False
        self._buffer: memoryview | None = None
        self._small_reads: i64 = 0
        # Bytes of the incomplete frame, as counted in RequestBytes.
        self._counted: i64 = 0
        # Until when the frame arrived fast enough, and its size at that time.
        self._checked_ns = 0
        self._checked_bytes: i64 = 0
        # Reading is paused until other connections have freed some bytes.
        self.waits_for_room = False

    # Called by the event loop

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read: the frame's own, or the scratch buffer that all share."""
        self._buffer = self._frames.room()
        return self._scratch if self._buffer is None else self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        connection = self._connection
        connection.pool.bytes_in += nbytes
        if connection.is_closing or connection.is_lost:
            return
        try:
            if self._buffer is None:
                self._small_reads += 1
                frames = self._frames.feed(bytes(self._scratch[:nbytes]))
            else:
                self._small_reads = 0
                self._buffer = None
                frames = self._frames.filled(nbytes)
        except Malformed as error:
            connection.close_for(f"bad frame: {error}")
            return
        if frames:
            self.end_frame()
            connection.take(frames)
        if connection.is_closing or connection.is_lost:
            return
        if self._frames.is_large:
            self.count()
        elif self._small_reads > SMALL_READS_MAX:
            self._change_protocol(None)
            connection.large = None

    def _change_protocol(self, large: "LargeFrames | None") -> None:
        """Switch between the protocol that receives bytes and the one that provides buffers."""
        connection = self._connection
        transport = connection.transport
        if transport.is_closing():
            return
        # A transport only notices a new protocol when it starts reading.
        if not connection.is_paused:
            transport.pause_reading()
        transport.set_protocol(connection.make_protocol(connection, large))
        if not connection.is_paused:
            transport.resume_reading()

    # Request bytes

    def count(self) -> None:
        """Count the bytes received of the frame; pause reading if the broker's limit is reached."""
        if self._counted == 0:
            self._checked_ns = self._ticks_ns()
            self._checked_bytes = 0
        held: i64 = self._frames.held
        self._request_bytes.unfinished += held - self._counted
        self._counted = held
        if not self.waits_for_room and not self._request_bytes.may_read(self):
            self.waits_for_room = True
            self._connection.regulate()
        if not self._is_receiving:
            self._is_receiving = True
            self._change_protocol(self)

    def resume_reading(self) -> None:
        """Resume reading: there is room for more of the frame."""
        self.waits_for_room = False
        self._checked_ns = self._ticks_ns()
        self._checked_bytes = self._counted
        self._connection.regulate()

    def end_frame(self) -> None:
        """The frame is complete, or is discarded."""
        if self._counted:
            self._request_bytes.unfinished -= self._counted
            self._counted = 0
            self.waits_for_room = False
            self._request_bytes.finished(self)

    def is_too_slow(self) -> bool:
        """Whether the frame arrives more slowly than allowed while others wait for room."""
        if self._counted == 0 or self.waits_for_room:
            return False
        now_ns = self._ticks_ns()
        passed_ms = (now_ns - self._checked_ns) // _NS_PER_MS
        if int(self._counted - self._checked_bytes) * 1000 < passed_ms * FRAME_BYTES_PER_S_MIN:
            return passed_ms > FRAME_GRACE_MS
        self._checked_ns = now_ns
        self._checked_bytes = self._counted
        return False
