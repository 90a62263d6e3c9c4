"""Recover a log after an unclean shutdown: truncate the torn end, rebuild indexes and state (compiled).

From the recovery point on every batch is checked, and the first torn one ends the log. Indexes, aborted
transactions, epochs and producers of that part are rebuilt. The headers of flushed batches are checked first:
if one is damaged, CorruptLog is raised and nothing has changed. Everything here blocks on the disk.
"""

from typing import NamedTuple

from barnabas.records.header import HEADER_SIZE
from barnabas.storage.config import LogConfig
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.errors import CorruptFile, CorruptLog
from barnabas.storage.files import FileSystem, write_atomically
from barnabas.storage.intake import Batch
from barnabas.storage.listing import Listing
from barnabas.storage.log import OFFSET_SPAN_MAX
from barnabas.storage.names import LOG, SNAPSHOT, file_name
from barnabas.storage.producers.snapshot import read_snapshot, write_snapshot
from barnabas.storage.producers.table import Producers
from barnabas.storage.segment.aborted import write_aborted
from barnabas.storage.segment.replay import BadBatch, BatchReader, Replay
from barnabas.storage.segment.segment import Segment


class Rebuilt(NamedTuple):
    """A recovered log with its remaining segments."""

    segments: list[Segment]
    end_offset: int
    producers: Producers
    epochs: LeaderEpochs
    epochs_changed: bool


class Rebuild:
    """The recovery of one log. Without `epochs` all segments are rebuilt."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        config: LogConfig,
        segments: list[Segment],
        listing: Listing,
        *,
        epochs: LeaderEpochs | None,
        recovery_point: int | None,
        findings: list[str],
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.interval = config.index_interval_bytes
        self.segments = segments
        self.listing = listing
        self.findings = findings
        self.epochs = epochs
        # If the recovery point is lost, it is unknown what was flushed.
        self.knows_flushed = recovery_point is not None
        self.flushed = recovery_point or 0

    def run(self) -> Rebuilt:
        first = 0 if self.epochs is None else self._first()
        base = self.segments[first].base_offset
        self._check(first)
        replay = Replay(
            self._producers_before(base),
            LeaderEpochs() if self.epochs is None else self.epochs,
            # For flushed batches trust the epoch file: the CRC does not cover a batch's epoch.
            epochs_from=0 if self.epochs is None else self.flushed,
        )
        self._forget_snapshots(base)
        self._replay_producers(replay, first)
        end = self._rebuild_from(first, replay)
        replay.producers.end_offset = end
        self.fs.sync_directory(self.directory)
        return Rebuilt(
            self.segments, end, replay.producers, replay.epochs, replay.epochs_changed or self.epochs is None
        )

    def _first(self) -> int:
        """The segment that contains the recovery point or ends there, or an earlier one without indexes.

        A segment that ends there may have been finished after the flush; then its indexes lack an entry.
        """
        for slot, segment in enumerate(self.segments[:-1]):
            if not self.listing.segments[segment.base_offset].has_plausible_indexes:
                return slot
            if self.segments[slot + 1].base_offset >= self.flushed:
                return slot
        return len(self.segments) - 1

    # Flushed data

    def _check(self, first: int) -> None:
        """Check the flushed data, which must not be truncated, before anything is changed."""
        end = self.segments[first].base_offset
        for segment in self.segments[first:]:
            if self.knows_flushed and max(end, segment.base_offset) >= self.flushed:
                return
            end = self._check_segment(segment, max(end, segment.base_offset))
        if end < self.flushed:
            last = self.segments[-1]
            raise CorruptLog(
                last.path(LOG),
                position=last.size,
                what=f"log ends at offset {end}, but was flushed up to {self.flushed}",
            )

    def _check_segment(self, segment: Segment, end: int) -> int:
        reader = BatchReader(segment.open(), 0, segment.size)
        try:
            while (batch := reader.next(not self.knows_flushed)) is not None:
                _check_place(segment, reader, batch, end)
                before, end = end, batch.base_offset + batch.last_delta + 1
                if not self.knows_flushed:
                    reader.verify(batch)
                elif before < self.flushed < end:
                    what = f"recovery point {self.flushed} is inside a batch that ends at {end}"
                    raise BadBatch(reader.position, what)
                elif end >= self.flushed:
                    break
        except BadBatch as wrong:
            if self.knows_flushed or not self._is_torn_end(segment, wrong):
                raise CorruptLog(segment.path(LOG), position=wrong.position, what=wrong.what) from None
        return end

    def _is_torn_end(self, segment: Segment, wrong: BadBatch) -> bool:
        """Without a recovery point: whether no valid batch follows, as after a torn write."""
        if segment is not self.segments[-1]:
            return False
        header = segment.open().read(wrong.position, HEADER_SIZE)
        if len(header) < HEADER_SIZE:
            return True
        after = wrong.position + Batch(header, 0).size
        if not wrong.position < after < segment.size:
            return True
        reader = BatchReader(segment.open(), after, segment.size)
        try:
            batch = reader.next(True)
            if batch is not None:
                reader.verify(batch)
        except BadBatch:
            return True
        return batch is None

    # Producers

    def _producers_before(self, base: int) -> Producers:
        """The newest valid snapshot at or before `base`; without one, no producers at the log's start."""
        for at in sorted(self.listing.snapshots, reverse=True):
            if at <= base:
                path = f"{self.directory}/{file_name(at, SNAPSHOT)}"
                try:
                    return read_snapshot(self.fs.read(path), path, at)
                except CorruptFile as wrong:
                    self.findings.append(f"{wrong}: removed")
                    self.fs.remove(path)
                    self.listing.snapshots.remove(at)
        empty = Producers()
        empty.end_offset = self.segments[0].base_offset
        return empty

    def _forget_snapshots(self, after: int) -> None:
        """Remove the snapshots above `after`: they may be torn, or include batches that will be truncated."""
        for at in [at for at in self.listing.snapshots if at > after]:
            self.fs.remove(f"{self.directory}/{file_name(at, SNAPSHOT)}")
            self.listing.snapshots.remove(at)
        self.fs.sync_directory(self.directory)

    def _keep_snapshot(self, replay: Replay, slot: int) -> None:
        """Write the snapshot at a segment's start if it is missing.

        Once retention has deleted the segments before it, only the snapshot has the state of their producers.
        """
        base = self.segments[slot].base_offset
        if slot == 0 or base in self.listing.snapshots:
            return
        replay.producers.end_offset = max(replay.producers.end_offset, base)
        path = f"{self.directory}/{file_name(base, SNAPSHOT)}"
        write_atomically(self.fs, path, write_snapshot(replay.producers))
        self.listing.snapshots.append(base)

    def _replay_producers(self, replay: Replay, upto: int) -> None:
        """Update the producers from their snapshot to the start of the rebuild, by the batches' headers."""
        for slot in range(upto):
            segment = self.segments[slot]
            if self.segments[slot + 1].base_offset <= replay.producers.end_offset:
                continue
            self._keep_snapshot(replay, slot)
            reader = BatchReader(segment.open(), 0, segment.size)
            try:
                while (batch := reader.next(False)) is not None:
                    replay.take(reader, batch)
            except BadBatch as wrong:
                raise CorruptLog(segment.path(LOG), position=wrong.position, what=wrong.what) from None
            segment.close()
        replay.aborted.clear()

    # Segments

    def _rebuild_from(self, first: int, replay: Replay) -> int:
        end = self.segments[first].base_offset
        for slot in range(first, len(self.segments)):
            segment = self.segments[slot]
            if slot > first and segment.base_offset != end and segment.base_offset > self.flushed:
                self._drop_from(slot, f"segment starts at {segment.base_offset}, but the log ends at {end}")
                break
            self._keep_snapshot(replay, slot)
            end, cut = self._rebuild(segment, max(end, segment.base_offset), replay)
            if cut:
                self._drop_from(slot + 1, "segment follows a truncated one")
                break
        return end

    def _rebuild(self, segment: Segment, end: int, replay: Replay) -> tuple[int, bool]:
        """Rebuild a segment's indexes and check unflushed batches; return its end and if it was truncated."""
        segment.forget_indexes()
        reader = BatchReader(segment.open(), 0, segment.size)
        cut = False
        try:
            while (batch := reader.next(end >= self.flushed)) is not None:
                _check_place(segment, reader, batch, end)
                if end >= self.flushed:
                    reader.verify(batch)
                replay.take(reader, batch)
                end = batch.base_offset + batch.last_delta + 1
                segment.note(reader.position, batch.size, end - 1, batch.max_timestamp, self.interval)
                segment.spill_some()
        except BadBatch as wrong:
            if end < self.flushed:
                raise AssertionError(f"{segment.path(LOG)}: {wrong} was missed by the first check") from None
            self._cut(segment, wrong)
            cut = True
        segment.finish()
        write_aborted(self.fs, segment, replay.aborted)
        replay.aborted.clear()
        for file in segment.files_to_sync():
            file.sync()
        segment.close()
        return end, cut

    def _cut(self, segment: Segment, wrong: BadBatch) -> None:
        gone = segment.size - wrong.position
        self.findings.append(f"{segment.path(LOG)}: {wrong}: truncated the last {gone} bytes")
        segment.open().truncate(wrong.position)
        segment.size = wrong.position

    def _drop_from(self, slot: int, reason: str) -> None:
        for segment in self.segments[slot:]:
            self.findings.append(f"{segment.path(LOG)}: removed, {reason}")
            segment.remove_files()
        del self.segments[slot:]


def _check_place(segment: Segment, reader: BatchReader, batch: Batch, expected: int) -> None:
    # The CRC does not cover offsets, so check that they are plausible.
    last = batch.base_offset + batch.last_delta
    if batch.base_offset < expected or last - segment.base_offset > OFFSET_SPAN_MAX:
        raise BadBatch(reader.position, f"batch starts at offset {batch.base_offset}, expected {expected}")
