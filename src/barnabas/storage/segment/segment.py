"""One segment of a log (compiled): a .log file with its offset and time indexes.

The log appends to its last segment and reads from all of them. Log and retention.py decide when to roll, what
may be read and what is kept. Aborted transactions are in txn_index.py.
"""

from collections.abc import Sequence
from typing import Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64, mypyc_attr

from barnabas.records.header import (
    BATCH_LENGTH_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LENGTH_EXCLUDES,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    MIN_BATCH_LENGTH,
)
from barnabas.storage.files import Buffer, File, FileSystem
from barnabas.storage.names import LOG, OFFSET_INDEX, SEGMENT_FILES, TIME_INDEX, TXN_INDEX, file_name
from barnabas.storage.segment.index import IndexDamaged, OffsetIndex, TimeIndex

# Bytes read at once to find a batch. Indexes have about one entry per 4 kB.
LOOK_BYTES: Final[i64] = 8192
# The last bytes written are assumed to be in the page cache without a probe.
HOT_BYTES: Final[i64] = 32 * 1024 * 1024

_UNKNOWN: Final[i64] = -2
# How a search ended: at the requested batch; at the end of the piece; at bytes that are no batch.
_FOUND: Final = 0
_MORE: Final = 1
_BAD: Final = 2


@mypyc_attr(acyclic=True)
class Found:
    """A batch in a segment."""

    def __init__(self, position: i64, data: bytes, at: i64) -> None:
        self.position: Final = position
        self.size: Final = LENGTH_EXCLUDES + i64(read_i32_be(data, at + BATCH_LENGTH_AT))
        self.base_offset: Final = read_i64_be(data, at)
        self.last_offset: Final = self.base_offset + i64(read_i32_be(data, at + LAST_OFFSET_DELTA_AT))
        self.max_timestamp: Final = read_i64_be(data, at + MAX_TIMESTAMP_AT)


class Segment:
    """Batches from `base_offset` on. `size` is the valid part of the file."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        base_offset: i64,
        *,
        size: i64 = 0,
        index_size: i64 = 0,
        time_index_size: i64 = 0,
        created_ms: i64 = 0,
        suffix: str = "",
    ) -> None:
        self.fs: Final = fs
        self.directory = directory
        self.base_offset: Final = base_offset
        # Name suffixes. There are two because the .log gets its final name before the indexes.
        self.suffix = suffix
        self.index_suffix = suffix
        self.size = size
        # Time of creation; for a segment that existed when the log was opened, time of the last write.
        self.created_ms = created_ms
        # Time of the last write of a batch without timestamps, which retention uses instead.
        self.modified_ms = created_ms
        self.index_size = index_size
        self.time_index_size = time_index_size
        self.file: File | None = None
        self.offsets: OffsetIndex | None = None
        self.times: TimeIndex | None = None
        # The latest timestamp and the last offset of its batch, once known.
        self.max_timestamp = _UNKNOWN
        self.max_timestamp_offset = base_offset
        # The latest timestamp in the time index.
        self.indexed_timestamp: i64 = -1
        # The max timestamp of the first batch, for rolling by age.
        self.first_timestamp = _UNKNOWN
        self.bytes_since_entry: i64 = 0
        # Bytes from here on were written since the log was opened.
        self.written_from = size
        # Whether its names are on the disk: the first flush of a new segment must sync the directory.
        self.names_synced = False
        # The file may be larger than `size`.
        self.has_room = False
        # Number of writes to its files, and how many of them a flush has synced.
        self.changes: i64 = 0
        self.changes_synced: i64 = 0

    def path(self, kind: str) -> str:
        suffix = self.suffix if kind == LOG else self.index_suffix
        return f"{self.directory}/{file_name(self.base_offset, kind)}{suffix}"

    def open(self) -> File:
        file = self.file
        if file is None:
            file = self.file = self.fs.open(self.path(LOG))
        return file

    def offset_index(self) -> OffsetIndex:
        found = self.offsets
        if found is None:
            found = OffsetIndex(self.fs, self.path(OFFSET_INDEX), self.base_offset, self.index_size)
            self.offsets = found
        return found

    def time_index(self) -> TimeIndex:
        found = self.times
        if found is None:
            found = TimeIndex(self.fs, self.path(TIME_INDEX), self.base_offset, self.time_index_size)
            self.times = found
        return found

    def make_files(self, room: i64 = 0) -> None:
        """Create the files of a new, empty segment, with a .log file of `room` bytes (preallocate)."""
        self.max_timestamp = -1
        self.names_synced = False
        self.file = self.fs.open(self.path(LOG), create=True)
        if room > 0:
            self.file.truncate(room)
            self.has_room = True
        for kind in (OFFSET_INDEX, TIME_INDEX):
            self.fs.open(self.path(kind), create=True).close()

    # Writing

    def append(
        self, parts: Sequence[Buffer], size: i64, last_offset: i64, max_timestamp: i64, interval: i64
    ) -> None:
        """Append one batch, the concatenated `parts`.

        An OSError changes nothing: a partly written batch lies beyond `size` and is overwritten.
        """
        self.write(parts, max_timestamp)
        self.commit(size, last_offset, max_timestamp, interval)

    def write(self, parts: Sequence[Buffer], max_timestamp: i64) -> None:
        """Write a batch beyond `size`, where it is not visible before commit()."""
        self.make_room(max_timestamp)
        # The write may fail half-way, or the batch may turn out to be corrupt. Then finish() must cut it off.
        had_room = self.has_room
        self.has_room = True
        try:
            self.open().write(self.size, parts)
        except OSError:
            if not had_room:
                self._cut_torn()
            raise
        self.has_room = had_room

    def _cut_torn(self) -> None:
        """Truncate a partly written batch after a failed write."""
        try:
            self.open().truncate(self.size)
        except OSError:
            # The next batch overwrites it, and finish() tries again.
            return
        self.has_room = False

    def commit(self, size: i64, last_offset: i64, max_timestamp: i64, interval: i64) -> None:
        """Commit the batch that write() has written."""
        at = self.size
        self.changes += 1
        self.size = at + size
        self.note(at, size, last_offset, max_timestamp, interval)

    def discard(self) -> None:
        """Discard the batch that write() has written: the next one overwrites it."""
        self.has_room = True

    def make_room(self, max_timestamp: i64) -> None:
        """Do all file access that note() may need, so that note() cannot fail."""
        if self.max_timestamp == _UNKNOWN and max_timestamp >= 0:
            self.latest()
        self.spill_some()

    def note(self, at: i64, size: i64, last_offset: i64, max_timestamp: i64, interval: i64) -> None:
        """Update the state for a batch at position `at`, and the indexes if an entry is due."""
        if at == 0:
            # Rolling by age ignores times before 1970.
            self.first_timestamp = max_timestamp if max_timestamp >= 0 else -1
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_entry > interval:
            self.offset_index().append(last_offset, at)
            self.note_time()
            self.bytes_since_entry = 0
        self.bytes_since_entry += size

    def note_time(self) -> None:
        """Add the latest timestamp to the time index, unless it is in it."""
        times = self.time_index()
        if self.max_timestamp > self.indexed_timestamp:
            times.append(self.max_timestamp, self.max_timestamp_offset)
            self.indexed_timestamp = self.max_timestamp

    def finish(self) -> None:
        """Complete the indexes and truncate unused space, before a roll or close."""
        if self.max_timestamp != _UNKNOWN:
            self.note_time()
        if self.has_room:
            self.open().truncate(self.size)
            self.has_room = False
        self.changes += 1
        self.spill()

    def spill(self) -> None:
        """Write the buffered index entries."""
        if self.offsets is not None:
            self.offsets.spill()
        if self.times is not None:
            self.times.spill()

    def spill_some(self) -> None:
        """Write the buffered index entries if a page is full."""
        if self.offsets is not None:
            self.offsets.make_room()
        if self.times is not None:
            self.times.make_room()

    def is_full(self, index_bytes_max: i64) -> bool:
        """Whether an index is full. One entry of the time index is reserved for finish()."""
        offsets, times = self.offsets, self.times
        if offsets is not None and (offsets.count + 1) * 8 > index_bytes_max:
            return True
        return times is not None and (times.count + 2) * 12 > index_bytes_max

    # Reading: these methods may raise NotCached or IndexDamaged, and may then be called again.

    def find(self, offset: i64) -> Found | None:
        """The first batch that ends at or after `offset`; None if they all end before it."""
        start = self._start(offset)
        found = self._find_large(start, offset)
        if found is not None:
            return found
        position = start
        while position < self.size:
            data = self._look(position)
            state, at = _seek(data, offset)
            if state == _FOUND:
                found = Found(position + at, data, at)
                self._check(found, start, offset)
                return found
            position = self._next(state, position, at)
        if position > self.size:
            raise self._damaged(
                f"{self.path(LOG)}: batches from byte {start} extend past the end at {self.size}"
            )
        return None

    def _find_large(self, start: i64, offset: i64) -> Found | None:
        """Try the batch of the next index entry, if it lies too far from `start` for one read.

        Entries have the last offset of a batch, so an offset inside a large batch leads to the batch before
        it, and the target is the batch of the next entry.
        """
        index = self.offset_index()
        position = index.next_position(index.slot)
        if position - start < LOOK_BYTES or position > self.size - HEADER_SIZE:
            return None
        data = self.open().read_cached(position, HEADER_SIZE)
        if len(data) < HEADER_SIZE or _seek(data, offset)[0] != _FOUND:
            return None
        found = Found(position, data, 0)
        if found.base_offset > offset:
            return None
        self._check(found, start, offset)
        return found

    def find_time(self, timestamp: i64, floor: i64) -> Found | None:
        """The first batch from offset `floor` on with a record at or after `timestamp`."""
        earlier, at = self.time_index().lookup(timestamp)
        self._check_time(earlier, at)
        offset = max(at, floor)
        position = self._start(offset)
        while position < self.size:
            data = self._look(position)
            state, at = _seek_time(data, timestamp, floor)
            if state == _FOUND:
                return Found(position + at, data, at)
            position = self._next(state, position, at)
        if position > self.size:
            raise self._damaged(f"{self.path(LOG)}: batches extend past the end at {self.size}")
        return None

    def _start(self, offset: i64) -> i64:
        """The position to start searching for an offset, from the index."""
        position = self.offset_index().lookup(offset)
        if position < 0 or (position > 0 and position >= self.size):
            raise self._damaged(
                f"{self.path(OFFSET_INDEX)}: offset {offset} maps to byte {position}, outside the segment"
            )
        return position

    def _damaged(self, what: str) -> IndexDamaged:
        return IndexDamaged(self.base_offset, what)

    def _check_time(self, timestamp: i64, offset: i64) -> None:
        # A wrong timestamp would make retention delete young records, so compare it with the batch.
        if timestamp == -1 and offset == self.base_offset:
            return
        found = self.find(offset)
        if found is None or found.max_timestamp != timestamp:
            raise self._damaged(
                f"{self.path(TIME_INDEX)}: the batch at offset {offset} has no timestamp {timestamp}"
            )

    def _look(self, position: i64) -> bytes:
        return self.open().read_cached(position, min(LOOK_BYTES, self.size - position))

    def _next(self, state: i64, position: i64, at: i64) -> i64:
        if state != _MORE or at == 0:
            raise self._damaged(f"{self.path(LOG)}: no batch at byte {position + at}")
        return position + at

    def _check(self, found: Found, start: i64, offset: i64) -> None:
        # A wrong index entry could start the search after the target, or inside a batch. The search must have
        # started at a batch below `offset`.
        if found.position == start and start > 0 and found.base_offset > offset:
            raise self._damaged(f"{self.path(OFFSET_INDEX)}: offset {offset} lies before byte {start}")
        if found.base_offset < self.base_offset or found.position + found.size > self.size:
            raise self._damaged(f"{self.path(LOG)}: no batch of this segment at byte {found.position}")

    def need_cached(self, at: i64, size: i64) -> None:
        """Raise NotCached if sending these bytes could block on the disk."""
        if at >= self.written_from and at >= self.size - HOT_BYTES:
            return
        self.open().need_cached(at, size)

    def latest(self) -> tuple[int, int]:
        """The latest timestamp, and the last offset of its batch."""
        if self.max_timestamp == _UNKNOWN:
            timestamp, offset = self.time_index().last()
            self._check_time(timestamp, offset)
            self.max_timestamp, self.max_timestamp_offset = timestamp, offset
            self.indexed_timestamp = timestamp
        return self.max_timestamp, self.max_timestamp_offset

    def earliest(self) -> int:
        """The max timestamp of the first batch; -1 without one."""
        if self.first_timestamp == _UNKNOWN:
            if self.size < HEADER_SIZE:
                return -1
            data = self.open().read_cached(0, HEADER_SIZE)
            if len(data) < HEADER_SIZE:
                raise self._damaged(f"{self.path(LOG)}: file is shorter than {self.size} bytes")
            first = read_i64_be(data, MAX_TIMESTAMP_AT)
            self.first_timestamp = first if first >= 0 else -1
        return self.first_timestamp

    # Truncation, renaming and closing

    def cut(self, position: i64, offset: i64) -> None:
        """Truncate the file at `position`, where the first batch at or above `offset` begins."""
        self.offset_index().keep_below(offset)
        self.time_index().keep_below(offset)
        latest = self._latest_below(position)
        self.open().truncate(position)
        self.changes += 1
        self.size = position
        self.written_from = min(self.written_from, position)
        self.bytes_since_entry = 0
        if position == 0:
            self.first_timestamp = _UNKNOWN
        self.max_timestamp, self.max_timestamp_offset = latest
        self.indexed_timestamp = self.time_index().last()[0]

    def _latest_below(self, end: i64) -> tuple[i64, i64]:
        """The result of latest() once the file ends at `end`; the indexes are truncated already."""
        latest, offset = self.time_index().last()
        # The index is sparse: batches after its last entry may have a later timestamp.
        start = position = self._start(offset)
        while position < end:
            data = self._look(position)
            if _seek(data, 0)[0] != _FOUND:
                raise self._damaged(f"{self.path(LOG)}: no batch at byte {position}")
            batch = Found(position, data, 0)
            if position == start and start > 0 and batch.base_offset > offset:
                raise self._damaged(f"{self.path(OFFSET_INDEX)}: offset {offset} lies before byte {start}")
            if batch.max_timestamp > latest:
                latest, offset = batch.max_timestamp, batch.last_offset
            position += batch.size
        return latest, offset

    def knows_latest(self, timestamp: i64, offset: i64) -> None:
        """Set the result of latest(), for a caller that has read all batches."""
        self.max_timestamp, self.max_timestamp_offset = timestamp, offset
        self.indexed_timestamp = timestamp if self.time_index_size > 0 else -1

    def forget_indexes(self) -> None:
        """Start with empty indexes for a rebuild."""
        for kind in (OFFSET_INDEX, TIME_INDEX):
            file = self.fs.open(self.path(kind), create=True)
            file.truncate(0)
            file.close()
        self.close_indexes()
        self.index_size = self.time_index_size = 0
        self.max_timestamp = self.indexed_timestamp = -1
        self.max_timestamp_offset = self.base_offset
        self.bytes_since_entry = 0

    def settle_log(self) -> None:
        """Rename the .log, which is in use, to its final name."""
        file = self.open()
        self.suffix = ""
        file.rename(self.path(LOG))

    def settle_indexes(self) -> None:
        """Rename the indexes, which are in use, to their final names."""
        offsets, times = self.offset_index(), self.time_index()
        files = offsets.open(), times.open()
        aborted = self.path(TXN_INDEX)
        self.index_suffix = ""
        for file, index, kind in zip(files, (offsets, times), (OFFSET_INDEX, TIME_INDEX), strict=True):
            file.rename(self.path(kind))
            index.path = file.path
        try:
            self.fs.rename(aborted, self.path(TXN_INDEX))
        except FileNotFoundError:
            # The segment has no aborted transactions.
            return

    def files_to_sync(self) -> list[File]:
        """The files that a flush must sync in the executor, the .log first. Call this on the loop."""
        self.spill()
        files = [self.open()]
        if self.offsets is not None and self.offsets.file is not None:
            files.append(self.offsets.file)
        if self.times is not None and self.times.file is not None:
            files.append(self.times.file)
        return files

    def close_indexes(self) -> None:
        if self.offsets is not None:
            self.index_size = self.offsets.written * 8
            self.offsets.close()
        if self.times is not None:
            self.time_index_size = self.times.written * 12
            self.times.close()
        self.offsets = None
        self.times = None

    def remove_files(self) -> None:
        """Remove all its files, the .log first, because the others are useless without it."""
        self.close()
        for kind in SEGMENT_FILES:
            try:
                self.fs.remove(self.path(kind))
            except FileNotFoundError:
                continue

    def close(self) -> None:
        self.close_indexes()
        if self.file is not None:
            self.file.close()
            self.file = None

    def release(self) -> None:
        """Close the descriptors for good, because the log was deleted.

        After close() the files would be reopened by name, which may belong to another log by then.
        """
        if self.offsets is not None:
            self.offsets.release()
        if self.times is not None:
            self.times.release()
        if self.file is not None:
            self.file.close()


def _seek(data: bytes, target: i64) -> tuple[i64, i64]:
    """Find the first batch that ends at or after the offset `target`, from a batch's start at data[0].

    Return how the scan ended and the position: of the batch found, of the first header that is incomplete in
    `data` (it may lie beyond the end), or of the invalid header.
    """
    at: i64 = 0
    end: i64 = len(data)
    while at + HEADER_SIZE <= end:
        length: i64 = i64(read_i32_be(data, at + BATCH_LENGTH_AT))
        delta: i64 = i64(read_i32_be(data, at + LAST_OFFSET_DELTA_AT))
        if length < MIN_BATCH_LENGTH or delta < 0 or i64(data[at + MAGIC_AT]) != MAGIC:
            return _BAD, at
        if read_i64_be(data, at) + delta >= target:
            return _FOUND, at
        at += LENGTH_EXCLUDES + length
    return _MORE, at


def _seek_time(data: bytes, timestamp: i64, floor: i64) -> tuple[i64, i64]:
    """Find the first batch that ends at or after offset `floor` and has a record of `timestamp` or later."""
    at: i64 = 0
    end: i64 = len(data)
    while at + HEADER_SIZE <= end:
        length: i64 = i64(read_i32_be(data, at + BATCH_LENGTH_AT))
        delta: i64 = i64(read_i32_be(data, at + LAST_OFFSET_DELTA_AT))
        if length < MIN_BATCH_LENGTH or delta < 0 or i64(data[at + MAGIC_AT]) != MAGIC:
            return _BAD, at
        if read_i64_be(data, at + MAX_TIMESTAMP_AT) >= timestamp and read_i64_be(data, at) + delta >= floor:
            return _FOUND, at
        at += LENGTH_EXCLUDES + length
    return _MORE, at
