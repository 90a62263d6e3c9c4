"""Open the log in a directory, and recover it if necessary (compiled).

Everything here blocks on the disk, so it runs in the executor. After a clean shutdown the files are trusted
and only the last few batches are read. After an unclean one, or if a file is missing or implausible,
rebuild.py recovers the log. Flushed data is never truncated: damage there raises CorruptLog, and the log
stays offline.
"""

from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.storage.cleaner.swap import finish_swaps
from barnabas.storage.config import LogConfig
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.errors import CorruptFile, CorruptLog
from barnabas.storage.files import FileSystem, write_atomically
from barnabas.storage.listing import Listing, list_log
from barnabas.storage.log import Log
from barnabas.storage.names import LEADER_EPOCHS, LOG, SNAPSHOT, TXN_INDEX, file_name, split_name
from barnabas.storage.producers.snapshot import read_snapshot
from barnabas.storage.producers.table import Producers
from barnabas.storage.rebuild import Rebuild
from barnabas.storage.segment.index import IndexDamaged
from barnabas.storage.segment.replay import BadBatch, BatchReader
from barnabas.storage.segment.segment import Segment
from barnabas.storage.segment.txn_index import read_entries
from barnabas.storage.warming import waiting

# A segment up to this size is walked from its start: one read, and no index has to be opened.
_WALK_WHOLE_BYTES = 1 << 16


class Opened(NamedTuple):
    """An opened log, and messages for the operator about repairs."""

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
    """Open or create the log in `directory`. An unknown recovery point is None."""
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
        is_trusted = self._indexes_are_good(listing) and clean and epochs is not None
        end = self._end_by_index(self.segments[-1]) if is_trusted else None
        producers = self._read_producers(listing, end) if end is not None else None
        epochs_changed = False
        if end is None or producers is None or epochs is None:
            rebuild = Rebuild(
                self.fs,
                self.directory,
                self.config,
                self.segments,
                listing,
                epochs=epochs,
                recovery_point=self.recovery_point,
                findings=self.findings,
            )
            self.segments, end, producers, epochs, epochs_changed = rebuild.run()
        if end < self.start_offset:
            # The start checkpoint never exceeds the recovery point, so this is no effect of a power loss.
            what = f"log start offset {self.start_offset} is above the log end offset {end}"
            raise CorruptLog(self.directory, position=0, what=what)
        return self._opened(listing, end, producers, epochs, epochs_changed)

    # Reading the directory

    def _tidy(self, listing: Listing) -> None:
        """Remove leftovers, and indexes without a .log file unless that file seems to be lost."""
        flushed = self.recovery_point or 0
        for name in listing.orphans:
            base = (split_name(name) or (0, ""))[0]
            if listing.segments and min(listing.segments) < base < flushed:
                missing = f"{self.directory}/{file_name(base, LOG)}"
                raise CorruptLog(missing, position=0, what=f"file is missing, but {name} exists")
        for name in listing.orphans:
            self.findings.append(f"{self.directory}/{name}: removed, no segment has this index")
            self.fs.remove(f"{self.directory}/{name}")
        for name in listing.leftovers:
            self.fs.remove(f"{self.directory}/{name}")

    def _segments(self, listing: Listing) -> list[Segment]:
        return [
            Segment(
                self.fs,
                self.directory,
                base,
                size=files.log_size,
                index_size=max(0, files.index_size),
                time_index_size=max(0, files.time_index_size),
                created_ms=files.modified_ms,
            )
            for base, files in listing.segments.items()
        ]

    def _indexes_are_good(self, listing: Listing) -> bool:
        for base, files in listing.segments.items():
            if files.has_txn_index and not self._txn_index_is_good(base):
                files.index_size = -1
        return all(files.has_plausible_indexes for files in listing.segments.values())

    def _txn_index_is_good(self, base: int) -> bool:
        file = self.fs.open(f"{self.directory}/{file_name(base, TXN_INDEX)}")
        try:
            read_entries(file, base)
        except CorruptFile as wrong:
            self.findings.append(f"{wrong}: rebuilt")
            return False
        finally:
            file.close()
        return True

    def _read_epochs(self) -> LeaderEpochs | None:
        path = f"{self.directory}/{LEADER_EPOCHS}"
        try:
            return LeaderEpochs.from_text(self.fs.read(path), path)
        except FileNotFoundError:
            self.findings.append(f"{path}: missing, rebuilt")
        except CorruptFile as wrong:
            self.findings.append(f"{wrong}: rebuilt")
        return None

    def _read_producers(self, listing: Listing, at: int) -> Producers | None:
        """The producers from the snapshot of a clean shutdown; None without a valid one."""
        if at not in listing.snapshots:
            return None
        path = f"{self.directory}/{file_name(at, SNAPSHOT)}"
        try:
            return read_snapshot(self.fs.read(path), path, at)
        except CorruptFile as wrong:
            self.findings.append(f"{wrong}: rebuilt")
            return None

    def _end_by_index(self, segment: Segment) -> int | None:
        """The log end after a clean shutdown, from the last index entry and the batches after it."""
        try:
            start = 0
            if segment.size > _WALK_WHOLE_BYTES:
                start = waiting(segment.offset_index().last)[1]
                waiting(segment.latest)
                waiting(segment.earliest)
            end = self._walk_to_end(segment, start)
        except (BadBatch, IndexDamaged) as wrong:
            self.findings.append(f"{segment.path(LOG)}: {wrong}, after a clean shutdown")
            return None
        if self.recovery_point is not None and end > self.recovery_point:
            what = f"log was closed at offset {self.recovery_point}, but ends at {end}"
            raise CorruptLog(segment.path(LOG), position=segment.size, what=what)
        return end if end == self.recovery_point else None

    def _walk_to_end(self, segment: Segment, start: int) -> int:
        if not 0 <= start <= segment.size:
            raise BadBatch(start, "index points outside the file")
        reader = BatchReader(segment.open(), start, segment.size)
        end, latest, latest_at = segment.base_offset, -1, segment.base_offset
        while (batch := reader.next(False)) is not None:
            if batch.base_offset < end:
                raise BadBatch(
                    reader.position, f"batch starts at offset {batch.base_offset}, expected {end} or more"
                )
            end = batch.base_offset + batch.last_delta + 1
            if reader.position == 0:
                segment.first_timestamp = max(batch.max_timestamp, -1)
            if batch.max_timestamp > latest:
                latest, latest_at = batch.max_timestamp, end - 1
        if start == 0:
            segment.knows_latest(latest, latest_at)
        elif latest > segment.max_timestamp:
            raise IndexDamaged(segment.base_offset, "time index lacks the latest timestamp")
        return end

    # The result

    def _new_log(self) -> Opened:
        if (self.recovery_point or 0) > self.start_offset:
            raise CorruptLog(self.directory, position=0, what="all segments are missing")
        segment = Segment(self.fs, self.directory, self.start_offset, created_ms=self.now_ms)
        segment.make_files(self.config.segment_bytes if self.config.preallocate else 0)
        # Create it empty, as Kafka does: without an epoch it is not written, and the next start expects it.
        self.fs.open(f"{self.directory}/{LEADER_EPOCHS}", create=True).close()
        self.segments = [segment]
        producers = Producers()
        producers.end_offset = self.start_offset
        return Opened(self._log(self.start_offset, producers, LeaderEpochs()), self.findings)

    def _opened(
        self, listing: Listing, end: int, producers: Producers, epochs: LeaderEpochs, epochs_changed: bool
    ) -> Opened:
        changed = epochs.truncate_from_end(end)
        changed = epochs.truncate_from_start(self.start_offset) or changed
        if changed or epochs_changed:
            write_atomically(self.fs, f"{self.directory}/{LEADER_EPOCHS}", epochs.to_text())
        log = self._log(end, producers, epochs)
        log.snapshots = self._keep_snapshots(listing, end)
        for segment in self.segments:
            segment.names_synced = True
            segment.changes_synced = segment.changes
            segment.close()
        return Opened(log, self.findings)

    def _keep_snapshots(self, listing: Listing, end: int) -> list[int]:
        """Remove all snapshots except the newest and those at the start of a segment."""
        keep = {segment.base_offset for segment in self.segments}
        newest = max((at for at in listing.snapshots if at <= end), default=-1)
        stale = [at for at in listing.snapshots if at > end or (at not in keep and at != newest)]
        for at in stale:
            self.fs.remove(f"{self.directory}/{file_name(at, SNAPSHOT)}")
        if stale:
            # A stale snapshot would be trusted once the log has grown to its offset again.
            self.fs.sync_directory(self.directory)
        return sorted(set(listing.snapshots) - set(stale))

    def _log(self, end: int, producers: Producers, epochs: LeaderEpochs) -> Log:
        return Log(
            self.fs,
            self.tp,
            self.directory,
            self.config,
            segments=self.segments,
            start_offset=self.start_offset,
            end_offset=end,
            recovery_point=end,
            producers=producers,
            epochs=epochs,
        )
