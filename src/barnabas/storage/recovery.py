"""From a directory to a Log: what is there, what can be believed, and what has to be made anew (compiled).

Everything here waits for the disk, so it runs in the executor. After a clean stop the files are believed and
only the last few batches are looked at. After any other, or if something is missing or does not fit,
rebuild.py makes it whole. What was flushed is never cut: damage there is a CorruptLog, and the log stays out.
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
        believed = self._indexes_are_good(listing) and clean and epochs is not None
        end = self._end_by_index(self.segments[-1]) if believed else None
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
            # The start is written down only as far as the log is flushed: no power loss has done this.
            raise CorruptLog(
                self.directory, position=0, what=f"it starts at {self.start_offset} and ends at {end}"
            )
        return self._opened(listing, end, producers, epochs, epochs_changed)

    # What is there

    def _tidy(self, listing: Listing) -> None:
        """Remove indexes without a log, unless it looks as if the log had been lost."""
        flushed = self.recovery_point or 0
        for name in listing.orphans:
            base = (split_name(name) or (0, ""))[0]
            if listing.segments and min(listing.segments) < base < flushed:
                missing = f"{self.directory}/{file_name(base, LOG)}"
                raise CorruptLog(missing, position=0, what=f"it is missing, and {name} is there")
        for name in listing.orphans:
            self.findings.append(f"{self.directory}/{name} belongs to no segment: removed")
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
        """The producers as the snapshot of a clean stop has them; None without a good one."""
        if at not in listing.snapshots:
            return None
        path = f"{self.directory}/{file_name(at, SNAPSHOT)}"
        try:
            return read_snapshot(self.fs.read(path), path, at)
        except CorruptFile as wrong:
            self.findings.append(f"{wrong}: made anew")
            return None

    def _end_by_index(self, segment: Segment) -> int | None:
        """Where the log ends after a clean stop, by the last entry of its index and the batches behind it."""
        try:
            start = 0
            if segment.size > _WALK_WHOLE_BYTES:
                start = waiting(segment.offset_index().last)[1]
                waiting(segment.latest)
                waiting(segment.earliest)
            end = self._walk_to_end(segment, start)
        except (BadBatch, IndexDamaged) as wrong:
            self.findings.append(f"{segment.path(LOG)}: {wrong}, after a clean stop")
            return None
        if self.recovery_point is not None and end > self.recovery_point:
            what = f"it was closed at offset {self.recovery_point}, and goes on to {end}"
            raise CorruptLog(segment.path(LOG), position=segment.size, what=what)
        return end if end == self.recovery_point else None

    def _walk_to_end(self, segment: Segment, start: int) -> int:
        if not 0 <= start <= segment.size:
            raise BadBatch(start, "the index leads here")
        reader = BatchReader(segment.open(), start, segment.size)
        end, latest, latest_at = segment.base_offset, -1, segment.base_offset
        while (batch := reader.next(False)) is not None:
            if batch.base_offset < end:
                raise BadBatch(reader.position, f"offset {batch.base_offset} comes after {end}")
            end = batch.base_offset + batch.last_delta + 1
            if reader.position == 0:
                segment.first_timestamp = max(batch.max_timestamp, -1)
            if batch.max_timestamp > latest:
                latest, latest_at = batch.max_timestamp, end - 1
        if start == 0:
            segment.knows_latest(latest, latest_at)
        elif latest > segment.max_timestamp:
            raise IndexDamaged(segment.base_offset, "the time index does not know the latest timestamp")
        return end

    # The result

    def _new_log(self) -> Opened:
        if (self.recovery_point or 0) > self.start_offset:
            raise CorruptLog(self.directory, position=0, what="all of its segments are missing")
        segment = Segment(self.fs, self.directory, self.start_offset, created_ms=self.now_ms)
        segment.make_files(self.config.segment_bytes if self.config.preallocate else 0)
        # Empty, as Kafka makes it: it is not written without an epoch, and would be missed at the next start.
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
        """Remove the snapshots but those where a segment starts, and the newest."""
        keep = {segment.base_offset for segment in self.segments}
        newest = max((at for at in listing.snapshots if at <= end), default=-1)
        stale = [at for at in listing.snapshots if at > end or (at not in keep and at != newest)]
        for at in stale:
            self.fs.remove(f"{self.directory}/{file_name(at, SNAPSHOT)}")
        if stale:
            # When the log has grown again they would be believed.
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
