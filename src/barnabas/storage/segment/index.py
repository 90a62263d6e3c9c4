"""The offset index and the time index of one segment (compiled).

An index is sparse: about one entry for every `index.interval.bytes` of log. The file has entries of a fixed
size in ascending order. New entries are buffered and written a page at a time. Losing them is harmless,
because recovery rebuilds indexes. So an index takes one page of memory, whatever its length.

Indexes are not trusted. A lookup returns a position to start from; the reader checks that a batch below the
target starts there, and has the index rebuilt if not.
"""

from struct import Struct
from typing import Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from barnabas.storage.files import File, FileSystem, NotCached

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")

# Entries are buffered up to this many bytes.
SPILL_BYTES: Final[i64] = 4092
# A binary search reads single entries until this many are left, and then all of them at once.
_READ_AT_ONCE: Final[i64] = 512


class IndexDamaged(Exception):
    """A segment's indexes do not match its log. Rebuild them, then retry."""

    def __init__(self, base_offset: int, what: str) -> None:
        super().__init__(what)
        self.base_offset = base_offset


class EntryFile:
    """Entries in a file, the newest ones in memory, in ascending order of their leading key."""

    def __init__(self, fs: FileSystem, path: str, base_offset: i64, entry_size: i64, size: i64) -> None:
        self.fs: Final = fs
        self.path = path
        self.base_offset: Final = base_offset
        self.entry_size: Final = entry_size
        # Number of entries in the file, and in total.
        self.written: i64 = size // entry_size
        self.count: i64 = self.written
        self.tail = b""
        # The last block that a search read from the file. Entries there do not change.
        self.block = b""
        self.block_first: i64 = 0
        self.file: File | None = None

    def open(self) -> File:
        file = self.file
        if file is None:
            file = self.file = self.fs.open(self.path, create=True)
        return file

    def add(self, entry: bytes) -> None:
        """Add an entry. This cannot fail: make_room() was called before the batch was written."""
        self.tail += entry
        self.count += 1

    def make_room(self) -> None:
        if len(self.tail) >= SPILL_BYTES:
            self.spill()

    def spill(self) -> None:
        """Write the buffered entries to the page cache, without a sync."""
        if not self.tail:
            return
        self.open().write(self.written * self.entry_size, [self.tail])
        self.written = self.count
        self.tail = b""

    def keep(self, count: i64) -> None:
        """Drop all entries except the first `count`."""
        if count >= self.count:
            return
        if count < self.written:
            self.open().truncate(count * self.entry_size)
            self.written = count
            self.block = b""
        self.tail = self.tail[: (count - self.written) * self.entry_size]
        self.count = count

    def entry(self, slot: i64) -> bytes:
        """One entry. Raises NotCached if it is not in memory."""
        return self.entries(slot, slot + 1)

    def entries(self, first: i64, end: i64) -> bytes:
        size = self.entry_size
        if first >= self.written:
            at = (first - self.written) * size
            return self.tail[at : at + (end - first) * size]
        at = (first - self.block_first) * size
        if at >= 0 and at + (end - first) * size <= len(self.block):
            return self.block[at : at + (end - first) * size]
        assert end <= self.written, "a range must not span the file and the buffer"
        try:
            found = self.open().read_cached(first * size, (end - first) * size)
        except NotCached as cold:
            # Warm up the whole file (at most segment.index.bytes), or a search would miss repeatedly.
            raise NotCached(cold.file, at=0, size=self.written * size) from None
        if len(found) != (end - first) * size:
            raise IndexDamaged(
                self.base_offset, f"{self.path}: file is shorter than its {self.written} entries"
            )
        return found

    def key(self, data: bytes, at: i64) -> i64:
        raise NotImplementedError

    def search(self, key: i64) -> i64:
        """The slot of the last entry whose key is at most `key`; -1 if there is none.

        The entries around it stay in `block`, from `block_first` on, for the next lookups of a sequential
        reader.
        """
        low: i64 = 0
        high = self.written
        if self.tail and self.key(self.tail, 0) <= key:
            return self.written + self._last_at_most(self.tail, key)
        if self.block:
            count: i64 = len(self.block) // self.entry_size
            last = self.key(self.block, (count - 1) * self.entry_size)
            if self.key(self.block, 0) <= key and (key < last or self.block_first + count == high):
                return self.block_first + self._last_at_most(self.block, key)
        while high - low > _READ_AT_ONCE:
            middle = (low + high) // 2
            if self.key(self.entry(middle), 0) <= key:
                low = middle
            else:
                high = middle
        if low == high:
            return low - 1
        self.block = self.entries(low, high)
        self.block_first = low
        return low + self._last_at_most(self.block, key)

    def _last_at_most(self, data: bytes, key: i64) -> i64:
        low: i64 = 0
        high: i64 = len(data) // self.entry_size
        while low < high:
            middle = (low + high) // 2
            if self.key(data, middle * self.entry_size) <= key:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def sync(self) -> None:
        """Sync the spilled entries. For the executor."""
        if self.file is not None:
            self.file.sync()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    def release(self) -> None:
        """Close the descriptor for good; unlike after close(), it is not reopened."""
        if self.file is not None:
            self.file.close()


class OffsetIndex(EntryFile):
    """Maps an offset to the position of a batch at or before it."""

    def __init__(self, fs: FileSystem, path: str, base_offset: i64, size: i64) -> None:
        super().__init__(fs, path, base_offset, OFFSET_ENTRY.size, size)
        # The slot of the last lookup.
        self.slot: i64 = -1

    def key(self, data: bytes, at: i64) -> i64:
        return i64(read_i32_be(data, at))

    def append(self, offset: i64, position: i64) -> None:
        """Add an entry for the batch at `position`, whose last offset is `offset`."""
        self.add(OFFSET_ENTRY.pack(offset - self.base_offset, position))

    def lookup(self, offset: i64) -> i64:
        """The position to start searching for `offset`."""
        slot = self.search(offset - self.base_offset)
        self.slot = slot
        if slot < 0:
            return 0
        return i64(read_i32_be(self.entry(slot), 4))

    def next_position(self, slot: i64) -> i64:
        """The position in the entry after `slot`, if it is in memory; otherwise -1."""
        slot += 1
        if slot >= self.written:
            return i64(read_i32_be(self.entry(slot), 4)) if slot < self.count else -1
        at = (slot - self.block_first) * self.entry_size
        if at < 0 or at >= len(self.block):
            return -1
        return i64(read_i32_be(self.block, at + 4))

    def offset_from(self, position: i64) -> i64:
        """The offset of the first entry at or after `position`; -1 without one."""
        low: i64 = 0
        high = self.count
        # Usually it is close after the last lookup.
        if 0 < self.slot < high and i64(read_i32_be(self.entry(self.slot), 4)) < position:
            low = self.slot + 1
        while low < high:
            middle = (low + high) // 2
            if i64(read_i32_be(self.entry(middle), 4)) < position:
                low = middle + 1
            else:
                high = middle
        if low >= self.count:
            return -1
        return self.base_offset + i64(read_i32_be(self.entry(low), 0))

    def last(self) -> tuple[int, int]:
        """Offset and position of the newest entry; the start of the segment without one."""
        if self.count == 0:
            return self.base_offset, 0
        relative, position = OFFSET_ENTRY.unpack(self.entry(self.count - 1))
        return self.base_offset + relative, position

    def keep_below(self, offset: i64) -> None:
        """Drop the entries at `offset` and above."""
        self.keep(self.search(offset - 1 - self.base_offset) + 1)


class TimeIndex(EntryFile):
    """Maps a timestamp to the offset up to which all records are no later."""

    def __init__(self, fs: FileSystem, path: str, base_offset: i64, size: i64) -> None:
        super().__init__(fs, path, base_offset, TIME_ENTRY.size, size)

    def key(self, data: bytes, at: i64) -> i64:
        return read_i64_be(data, at)

    def append(self, timestamp: i64, offset: i64) -> None:
        """Add an entry for the batch that ends at `offset` and has the latest timestamp so far."""
        self.add(TIME_ENTRY.pack(timestamp, offset - self.base_offset))

    def lookup(self, timestamp: i64) -> tuple[i64, i64]:
        """The last entry before `timestamp`; -1 and the base offset without one."""
        slot = self.search(timestamp - 1)
        if slot < 0:
            return -1, self.base_offset
        entry = self.entry(slot)
        return read_i64_be(entry, 0), self.base_offset + i64(read_i32_be(entry, 8))

    def last(self) -> tuple[int, int]:
        """The latest timestamp and its offset; -1 and the base offset without entries."""
        if self.count == 0:
            return -1, self.base_offset
        timestamp, relative = TIME_ENTRY.unpack(self.entry(self.count - 1))
        return timestamp, self.base_offset + relative

    def keep_below(self, offset: i64) -> None:
        """Drop the entries for `offset` and above."""
        # Offsets ascend as timestamps do, so the entries are in order by either.
        low: i64 = 0
        high = self.count
        while low < high:
            middle = (low + high) // 2
            if self.base_offset + i64(read_i32_be(self.entry(middle), 8)) < offset:
                low = middle + 1
            else:
                high = middle
        self.keep(low)
