"""The aborted transactions of one log, over all of its segments.

An entry belongs to the segment with the marker. New entries stay in memory until the segment's other indexes
are written, so that appending a marker cannot fail half-way. A segment without entries has no file.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from barnabas.storage.files import File, FileSystem
from barnabas.storage.names import TXN_INDEX
from barnabas.storage.segment.segment import Segment
from barnabas.storage.segment.txn_index import (
    ENTRY_SIZE,
    AbortedTxn,
    aborted_in,
    append_entry,
    read_entries,
    truncate_entries,
)

# Maximum number of segments whose entries are cached after a read.
_CACHED_SEGMENTS: Final = 4


class AbortedIndex:
    """The aborted transactions by segment, which read_committed consumers skip."""

    __slots__ = ("_cached", "_fs", "_pending", "_without")

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        # Entries that are not yet in the file, by the segment's base offset.
        self._pending: dict[int, list[AbortedTxn]] | None = None
        self._cached: dict[int, list[AbortedTxn]] | None = None
        # Segments without a file, cached because most have none and a lagging reader asks for all each time.
        self._without: set[int] | None = None

    def add(self, segment: Segment, txn: AbortedTxn) -> None:
        if self._pending is None:
            self._pending = {}
        self._pending.setdefault(segment.base_offset, []).append(txn)

    def spill(self, segment: Segment) -> None:
        """Write a segment's pending entries."""
        pending = self._pending.get(segment.base_offset) if self._pending else None
        if not pending:
            return
        try:
            file = self._fs.open(segment.path(TXN_INDEX))
        except FileNotFoundError:
            file = self._fs.open(segment.path(TXN_INDEX), create=True)
            segment.names_synced = False
            if self._without is not None:
                self._without.discard(segment.base_offset)
        try:
            while pending:
                append_entry(file, pending[0])
                self._cached_entries(segment).append(pending.pop(0))
        except OSError:
            # Cut off a partial entry.
            with suppress(OSError):
                file.truncate(file.size() // ENTRY_SIZE * ENTRY_SIZE)
            raise
        finally:
            file.close()

    def _cached_entries(self, segment: Segment) -> list[AbortedTxn]:
        # A throw-away list if the segment is not cached.
        return self._cached.get(segment.base_offset, []) if self._cached else []

    def files_to_sync(self, segment: Segment) -> list[File]:
        """The segment's file, if it exists, opened for the executor to sync."""
        try:
            return [self._fs.open(segment.path(TXN_INDEX))]
        except FileNotFoundError:
            return []

    def collect(self, segments: Sequence[Segment], offset: int, upto: int) -> list[AbortedTxn]:
        """The transactions with records in [offset, upto); `segments` begin with the one of `offset`."""
        found: list[AbortedTxn] = []
        for segment in segments:
            part = aborted_in(self.entries(segment), offset, upto)
            found += part.found
            if part.complete:
                break
        return found

    def entries(self, segment: Segment) -> list[AbortedTxn]:
        """All entries of one segment. May raise NotCached."""
        pending = self._pending.get(segment.base_offset, []) if self._pending else []
        if self._without is not None and segment.base_offset in self._without:
            return pending
        return self._written(segment) + pending

    def _written(self, segment: Segment) -> list[AbortedTxn]:
        if self._cached is None:
            self._cached = {}
        known = self._cached.get(segment.base_offset)
        if known is not None:
            return known
        try:
            file = self._fs.open(segment.path(TXN_INDEX))
        except FileNotFoundError:
            if self._without is None:
                self._without = set()
            self._without.add(segment.base_offset)
            return []
        # If this raises NotCached, the file stays open: the warm-up reads through it.
        file.read_cached(0, file.size())
        known = read_entries(file, segment.base_offset)
        file.close()
        if len(self._cached) >= _CACHED_SEGMENTS:
            del self._cached[next(iter(self._cached))]
        self._cached[segment.base_offset] = known
        return known

    def cut(self, segment: Segment, offset: int) -> None:
        """Forget the markers from `offset`, the segment's new end, on. May raise NotCached."""
        self.forget(segment, keep_pending=True)
        if self._pending and segment.base_offset in self._pending:
            pending = self._pending[segment.base_offset]
            self._pending[segment.base_offset] = [txn for txn in pending if txn.last_offset < offset]
        try:
            file = self._fs.open(segment.path(TXN_INDEX))
        except FileNotFoundError:
            return
        # If this raises NotCached, the file stays open: the warm-up reads through it.
        file.read_cached(0, file.size())
        try:
            truncate_entries(file, segment.base_offset, offset)
        finally:
            file.close()

    def forget(self, segment: Segment, *, keep_pending: bool = False) -> None:
        """Drop what is cached of a segment that was removed or replaced."""
        if self._cached is not None:
            self._cached.pop(segment.base_offset, None)
        if self._without is not None:
            self._without.discard(segment.base_offset)
        if self._pending is not None and not keep_pending:
            self._pending.pop(segment.base_offset, None)


def write_aborted(fs: FileSystem, segment: Segment, txns: Sequence[AbortedTxn]) -> None:
    """Rewrite and sync a segment's entries. For the executor."""
    path = segment.path(TXN_INDEX)
    try:
        fs.open(path).truncate(0)
    except FileNotFoundError:
        if not txns:
            return
    file = fs.open(path, create=True)
    try:
        for txn in txns:
            append_entry(file, txn)
        file.sync()
    finally:
        file.close()
