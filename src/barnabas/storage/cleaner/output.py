"""A buffer of batches for a new segment (compiled), with the facts that the indexes need.

Adjacent unchanged batches are merged into one part, so an unchanged segment is copied in large pieces
whatever the size of its batches.
"""

from librt.vecs import append, vec
from mypy_extensions import i64

from barnabas.storage.cleaner.batch import Batch
from barnabas.storage.files import Buffer
from barnabas.storage.segment.segment import Segment


class Output:
    """Batches that are not yet written. `size` counts the bytes already written as well."""

    def __init__(self) -> None:
        self._parts: list[Buffer] = []
        # The part that is still growing, a slice of the last added batch's data.
        self._view = memoryview(b"")
        self._start: i64 = 0
        self._end: i64 = 0
        # Size, last offset and maximum timestamp of each batch.
        self._sizes = vec[i64]()
        self._last_offsets = vec[i64]()
        self._max_timestamps = vec[i64]()
        self.waiting: i64 = 0
        self.size: i64 = 0
        self.last_offset: i64 = -1

    def add_same(self, batch: Batch) -> None:
        """Add an unchanged batch."""
        if batch.at != self._end or self._start == self._end:
            self._close_part()
            self._view = batch.view
            self._start = batch.at
        self._end = batch.end
        self._note(batch.end - batch.at, batch.last_offset, batch.max_timestamp)

    def add_new(self, made: bytes, last_offset: i64, max_timestamp: i64) -> None:
        """Add a rewritten batch."""
        self._close_part()
        self._parts.append(made)
        self._note(len(made), last_offset, max_timestamp)

    def _note(self, size: i64, last_offset: i64, max_timestamp: i64) -> None:
        self._sizes = append(self._sizes, size)
        self._last_offsets = append(self._last_offsets, last_offset)
        self._max_timestamps = append(self._max_timestamps, max_timestamp)
        self.waiting += size
        self.size += size
        self.last_offset = last_offset

    def _close_part(self) -> None:
        if self._start < self._end:
            self._parts.append(self._view[self._start : self._end])
        self._start = 0
        self._end = 0

    def begin_segment(self) -> None:
        """Start a new segment."""
        assert self.waiting == 0, f"{self.waiting} bytes are not written yet"
        self.size = 0
        self.last_offset = -1

    def write_to(self, segment: Segment, interval: i64) -> None:
        """Append the buffered batches to a segment and its indexes."""
        self._close_part()
        if self.waiting == 0:
            return
        sizes, last_offsets, max_timestamps = self._sizes, self._last_offsets, self._max_timestamps
        segment.open().write(segment.size, self._parts)
        count: i64 = len(sizes)
        index: i64 = 0
        while index < count:
            at: i64 = segment.size
            segment.make_room(max_timestamps[index])
            segment.size = at + sizes[index]
            segment.note(at, sizes[index], last_offsets[index], max_timestamps[index], interval)
            index += 1
        self.forget()

    def forget(self) -> None:
        """Drop the buffered batches and the references to their data."""
        self._parts = []
        self._view = memoryview(b"")
        self._start = 0
        self._end = 0
        self._sizes = vec[i64]()
        self._last_offsets = vec[i64]()
        self._max_timestamps = vec[i64]()
        self.waiting = 0
