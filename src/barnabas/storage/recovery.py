"""From a directory to a Log (compiled): what is there, what is torn, and what has to be made anew.

Everything here waits for the disk, so it runs in the executor. After a clean stop the files are believed and
only the last few batches are looked at. After any other, batches are checked from the recovery point on; what
is torn there is cut off, and indexes and producers of that part are made anew. What was flushed is never
cut: damage there is a CorruptLog, and the log stays out of service.
"""

from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.records.header import HEADER_SIZE
from barnabas.storage.aborted import write_aborted
from barnabas.storage.cleaner.swap import finish_swaps
from barnabas.storage.config import LogConfig
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.errors import CorruptFile, CorruptLog
from barnabas.storage.files import FileSystem, write_atomically
from barnabas.storage.index import IndexDamaged
from barnabas.storage.intake import Batch
from barnabas.storage.listing import Listing, list_log
from barnabas.storage.log import OFFSET_SPAN_MAX, Log
from barnabas.storage.names import LEADER_EPOCHS, LOG, SNAPSHOT, TXN_INDEX, file_name
from barnabas.storage.producer_snapshot import read_snapshot, write_snapshot
from barnabas.storage.producers import Producers
from barnabas.storage.replay import BadBatch, BatchReader, Replay
from barnabas.storage.segment import Segment
from barnabas.storage.txn_index import read_entries
from barnabas.storage.warming import waiting

# A segment no larger than this is walked from its start: one read, and no index has to be opened.
_WALK_WHOLE_BYTES = 1 << 16


class Opened(NamedTuple):
    """A log, and what was found and done on the way that an operator may want to know."""

    log: Log
    findings: list[str]


def open_log(
    fs: FileSystem,
    tp: TopicPartition,
    directory: str,
    config: LogConfig,
    *,
    clean: bool,
    recovery_point: int | None,
    start_offset: int,
    now_ms: int,
) -> Opened:
    """Open the log in `directory`, or start one there. An unknown recovery point is None."""
    return _Opening(fs, tp, directory, config, recovery_point, start_offset, now_ms).run(clean)


class _Opening:
    def __init__(
        self,
        fs: FileSystem,
        tp: TopicPartition,
        directory: str,
        config: LogConfig,
        recovery_point: int | None,
        start_offset: int,
        now_ms: int,
    ) -> None:
        self.fs = fs
        self.tp = tp
        self.directory = directory
        self.config = config
        self.recovery_point = recovery_point
        self.start_offset = start_offset
        self.now_ms = now_ms
        self.findings: list[str] = []
        self.segments: list[Segment] = []
        self.epochs_changed = False
        self.rebuilt_epochs = LeaderEpochs()

    def run(self, clean: bool) -> Opened:
        listing = list_log(self.fs, self.directory)
        if listing.unfinished:
            self.findings += finish_swaps(self.fs, self.directory)
            listing = list_log(self.fs, self.directory)
        self._tidy(listing)
        self.segments = self._segments(listing)
        if not self.segments:
            return self._new_log()
        self.start_offset = max(self.start_offset, self.segments[0].base_offset)
        epochs = self._read_epochs()
        end = producers = None
        if clean and epochs is not None and self._indexes_are_there(listing):
            end = self._end_by_index(self.segments[-1])
            if end is not None and end == self.recovery_point:
                producers = self._read_producers(listing, end)
        else:
            self._indexes_are_there(listing)
        if producers is None or end is None:
            end, producers = self._recover(listing, epochs)
        if end < self.start_offset:
            # Records were deleted up to an offset that was not flushed. Offsets are not given out again.
            self._drop_from(0, f"its end, {end}, is before the start of the log, {self.start_offset}")
            return self._new_log(producers)
        return self._opened(listing, end, producers, epochs)

    # What is there

    def _tidy(self, listing: Listing) -> None:
        for name in listing.orphans:
            self.findings.append(f"{self.directory}/{name} belongs to no segment: removed")
            self.fs.remove(f"{self.directory}/{name}")

    def _segments(self, listing: Listing) -> list[Segment]:
        return [
            Segment(
                self.fs,
                self.directory,
                base,
                size=files.log_size,
                index_size=files.index_size,
                time_index_size=files.time_index_size,
                created_ms=files.modified_ms,
            )
            for base, files in listing.segments.items()
        ]

    def _indexes_are_there(self, listing: Listing) -> bool:
        for base, files in listing.segments.items():
            if files.has_txn_index and not self._txn_index_is_good(base):
                files.index_size = -1
        return all(files.has_plausible_indexes for files in listing.segments.values())

    def _txn_index_is_good(self, base: int) -> bool:
        file = self.fs.open(f"{self.directory}/{file_name(base, TXN_INDEX)}")
        try:
            read_entries(file, base)
        except CorruptFile as wrong:
            self.findings.append(f"{wrong}: made anew")
            return False
        finally:
            file.close()
        return True

    def _read_epochs(self) -> LeaderEpochs | None:
        path = f"{self.directory}/{LEADER_EPOCHS}"
        try:
            return LeaderEpochs.from_text(self.fs.read(path), path)
        except FileNotFoundError:
            self.findings.append(f"{path} is missing: made anew")
        except CorruptFile as wrong:
            self.findings.append(f"{wrong}: made anew")
        return None

    def _read_producers(self, listing: Listing, at: int) -> Producers | None:
        """The producers as a snapshot at this offset has them; None without a good one."""
        if at not in listing.snapshots:
            return None
        path = f"{self.directory}/{file_name(at, SNAPSHOT)}"
        try:
            return read_snapshot(self.fs.read(path), path, at)
        except CorruptFile as wrong:
            self.findings.append(f"{wrong}: removed")
            self.fs.remove(path)
            listing.snapshots.remove(at)
            return None

    def _end_by_index(self, segment: Segment) -> int | None:
        """Where the log ends, by the last entry of its index and the few batches behind it."""
        try:
            start = 0
            if segment.size > _WALK_WHOLE_BYTES:
                start = waiting(segment.offset_index().last)[1]
                waiting(segment.latest)
                waiting(segment.earliest)
            return self._walk_to_end(segment, start)
        except (BadBatch, IndexDamaged) as wrong:
            self.findings.append(f"{segment.path(LOG)}: {wrong}, after a clean stop")
            return None

    def _walk_to_end(self, segment: Segment, start: int) -> int:
        reader = BatchReader(segment.open(), start, segment.size)
        end, latest, latest_at = segment.base_offset, -1, segment.base_offset
        while (batch := reader.next(False)) is not None:
            if batch.base_offset < end:
                raise BadBatch(reader.position, f"offset {batch.base_offset} comes after {end}")
            end = batch.base_offset + batch.last_delta + 1
            if reader.position == 0:
                segment.first_timestamp = batch.max_timestamp
            if batch.max_timestamp > latest:
                latest, latest_at = batch.max_timestamp, end - 1
        if start == 0:
            segment.knows_latest(latest, latest_at)
        elif latest > segment.max_timestamp:
            raise IndexDamaged(segment.base_offset, "the time index does not know the latest timestamp")
        return end

    # Recovery

    def _recover(self, listing: Listing, epochs: LeaderEpochs | None) -> tuple[int, Producers]:
        """Check, cut and make anew, from the recovery point or the first segment without indexes on."""
        flushed = self.recovery_point or 0
        first = self._first_to_rebuild(listing, flushed)
        base = self.segments[first].base_offset if first < len(self.segments) else flushed
        if epochs is None:
            first, base = 0, self.segments[0].base_offset
        producers = self._producers_before(listing, base)
        replay = Replay(producers, LeaderEpochs() if epochs is None else epochs)
        self._forget_snapshots(listing, base)
        self._replay_producers(listing, replay, upto_segment=first)
        end = max(base, self.segments[0].base_offset)
        for slot in range(first, len(self.segments)):
            segment = self.segments[slot]
            if segment.base_offset != end and slot > first and segment.base_offset > flushed:
                self._drop_from(slot, f"it starts at {segment.base_offset}, and the log ends at {end}")
                break
            self._keep_snapshot(listing, replay, slot)
            end, cut = self._rebuild(segment, max(end, segment.base_offset), flushed, replay)
            if cut:
                self._drop_from(slot + 1, "it lies behind what was torn")
                break
        if self.recovery_point is not None and end < flushed:
            raise CorruptLog(
                self.segments[-1].path(LOG),
                position=self.segments[-1].size,
                what=f"the log ends at offset {end}, and was flushed up to {flushed}",
            )
        self.epochs_changed = self.epochs_changed or replay.epochs_changed
        self.rebuilt_epochs = replay.epochs
        producers.end_offset = end
        self.fs.sync_directory(self.directory)
        return end, producers

    def _first_to_rebuild(self, listing: Listing, flushed: int) -> int:
        """The segment that holds the recovery point or ends there, or an earlier one without indexes.

        One that ends there may have been finished after the flush: then its indexes lack the last entry.
        """
        for slot, segment in enumerate(self.segments):
            last = slot + 1 == len(self.segments)
            if not listing.segments[segment.base_offset].has_plausible_indexes:
                return slot
            if last or self.segments[slot + 1].base_offset >= flushed:
                return slot
        return len(self.segments)

    def _producers_before(self, listing: Listing, base: int) -> Producers:
        """The newest good snapshot at or before `base`, or nobody at the start of the log."""
        for at in sorted(listing.snapshots, reverse=True):
            if at <= base:
                found = self._read_producers(listing, at)
                if found is not None:
                    return found
        nobody = Producers()
        nobody.end_offset = self.segments[0].base_offset
        return nobody

    def _forget_snapshots(self, listing: Listing, after: int) -> None:
        """Remove the snapshots of what is looked at again: they may be torn, or tell of what will be cut."""
        for at in [at for at in listing.snapshots if at > after]:
            self.fs.remove(f"{self.directory}/{file_name(at, SNAPSHOT)}")
            listing.snapshots.remove(at)
        self.fs.sync_directory(self.directory)

    def _keep_snapshot(self, listing: Listing, replay: Replay, slot: int) -> None:
        """See to it that there is a snapshot where a segment starts, if the ones before it could tell.

        It is what is left of their producers when retention has taken those segments.
        """
        base = self.segments[slot].base_offset
        if slot == 0 or base in listing.snapshots:
            return
        replay.producers.end_offset = max(replay.producers.end_offset, base)
        path = f"{self.directory}/{file_name(base, SNAPSHOT)}"
        write_atomically(self.fs, path, write_snapshot(replay.producers))
        listing.snapshots.append(base)

    def _replay_producers(self, listing: Listing, replay: Replay, *, upto_segment: int) -> None:
        """Bring producers from their snapshot to where rebuilding begins, by the batches' headers."""
        for slot in range(upto_segment):
            segment = self.segments[slot]
            if self.segments[slot + 1].base_offset <= replay.producers.end_offset:
                continue
            self._keep_snapshot(listing, replay, slot)
            reader = BatchReader(segment.open(), 0, segment.size)
            try:
                while (batch := reader.next(False)) is not None:
                    replay.take(reader, batch)
            except BadBatch as wrong:
                raise CorruptLog(segment.path(LOG), position=wrong.position, what=wrong.what) from None
            segment.close()
        replay.aborted.clear()

    def _rebuild(self, segment: Segment, expected: int, flushed: int, replay: Replay) -> tuple[int, bool]:
        """Make a segment's indexes anew and check what was not flushed. Return its end, and if it was cut."""
        segment.forget_indexes()
        reader = BatchReader(segment.open(), 0, segment.size)
        interval = self.config.index_interval_bytes
        end, cut = expected, False
        try:
            while (batch := reader.next(end >= flushed)) is not None:
                self._check_place(segment, reader, batch, end)
                if end >= flushed:
                    self._check_fresh(reader, batch, end, replay)
                replay.take(reader, batch)
                end = batch.base_offset + batch.last_delta + 1
                segment.note(reader.position, batch.size, end - 1, batch.max_timestamp, interval)
                segment.spill_some()
        except BadBatch as wrong:
            if end < flushed or (self.recovery_point is None and not self._looks_torn(segment, wrong)):
                raise CorruptLog(segment.path(LOG), position=wrong.position, what=wrong.what) from None
            self._cut(segment, wrong)
            cut = True
        segment.finish()
        write_aborted(self.fs, segment, replay.aborted)
        replay.aborted.clear()
        for file in segment.files_to_sync():
            file.sync()
        segment.close()
        return end, cut

    def _check_place(self, segment: Segment, reader: BatchReader, batch: Batch, expected: int) -> None:
        # Offsets are not covered by the CRC, so they must make sense by themselves.
        last = batch.base_offset + batch.last_delta
        if batch.base_offset < expected or last - segment.base_offset > OFFSET_SPAN_MAX:
            raise BadBatch(reader.position, f"offset {batch.base_offset}, and {expected} was expected")

    def _check_fresh(self, reader: BatchReader, batch: Batch, expected: int, replay: Replay) -> None:
        """Check what was not flushed: all that is covered by the CRC, and what is not."""
        reader.verify(batch)
        epoch = replay.epochs.epoch_for(expected)
        if epoch is not None and 0 <= batch.leader_epoch < epoch:
            raise BadBatch(reader.position, f"leader epoch {batch.leader_epoch} comes after {epoch}")

    def _looks_torn(self, segment: Segment, wrong: BadBatch) -> bool:
        """Without a recovery point: whether nothing good follows, so that it is the end of all."""
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

    def _cut(self, segment: Segment, wrong: BadBatch) -> None:
        gone = segment.size - wrong.position
        self.findings.append(f"{segment.path(LOG)}: {wrong}: the last {gone} bytes are cut off")
        segment.open().truncate(wrong.position)
        segment.size = wrong.position

    def _drop_from(self, slot: int, why: str) -> None:
        for segment in self.segments[slot:]:
            self.findings.append(f"{segment.path(LOG)}: {why}: removed")
            segment.remove_files()
        del self.segments[slot:]

    # The result

    def _new_log(self, producers: Producers | None = None) -> Opened:
        segment = Segment(self.fs, self.directory, self.start_offset, created_ms=self.now_ms)
        segment.make_files(self.config.segment_bytes if self.config.preallocate else 0)
        self.segments = [segment]
        known = producers or Producers()
        known.end_offset = self.start_offset
        log = self._log(self.start_offset, known, LeaderEpochs())
        if producers is not None:
            path = f"{self.directory}/{file_name(self.start_offset, SNAPSHOT)}"
            write_atomically(self.fs, path, write_snapshot(producers))
            log.snapshots.append(self.start_offset)
        return Opened(log, self.findings)

    def _opened(
        self, listing: Listing, end: int, producers: Producers, epochs: LeaderEpochs | None
    ) -> Opened:
        if epochs is None:
            epochs = self.rebuilt_epochs
            self.epochs_changed = True
        changed = epochs.truncate_from_end(end)
        changed = epochs.truncate_from_start(self.start_offset) or changed
        if changed or self.epochs_changed:
            write_atomically(self.fs, f"{self.directory}/{LEADER_EPOCHS}", epochs.to_text())
        log = self._log(end, producers, epochs)
        log.epochs_changed = False
        keep = {segment.base_offset for segment in self.segments}
        newest = max((at for at in listing.snapshots if at <= end), default=-1)
        stale = [at for at in listing.snapshots if at > end or (at not in keep and at != newest)]
        for at in stale:
            self.fs.remove(f"{self.directory}/{file_name(at, SNAPSHOT)}")
        if stale:
            # When the log has grown again they would be believed.
            self.fs.sync_directory(self.directory)
        log.snapshots = sorted(set(listing.snapshots) - set(stale))
        for segment in self.segments:
            segment.names_synced = True
            segment.changes_synced = segment.changes
            segment.close()
        return Opened(log, self.findings)

    def _log(self, end: int, producers: Producers, epochs: LeaderEpochs) -> Log:
        return Log(
            self.fs,
            self.tp,
            self.directory,
            self.config,
            segments=self.segments,
            start_offset=min(self.start_offset, end),
            end_offset=end,
            recovery_point=end,
            producers=producers,
            epochs=epochs,
        )
