"""The metadata log on disk: the core's view of it, and how much of it is synced.

A commit needs only the bytes of the `.log` file on the disk: indexes and epochs can be rebuilt from them.
Below the recovery point all files are synced. It is stored in the log's own directory, because the log
manager's checkpoints only cover the logs that it manages. A restart never truncates below it.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from barnabas.base.values import value
from barnabas.raft.facts import METADATA, OffsetAndEpoch
from barnabas.storage.directory.checkpoints import RECOVERY_POINTS, write_offsets
from barnabas.storage.files import File, FileSystem
from barnabas.storage.log import Log


@value
class SyncJob:
    """The files to sync so that everything below `upto` is durable, unless the log is truncated first."""

    fs: FileSystem
    directory: str
    upto: int
    truncations: int
    files: tuple[File, ...]
    new_names: tuple[int, ...]

    def run(self) -> None:
        """For the executor."""
        for file in self.files:
            file.sync()
        if self.new_names:
            self.fs.sync_directory(self.directory)


class MetadataLog:
    """The log, its snapshots with their sizes, and the flushed offset. Implements LogView."""

    def __init__(self, log: Log, snapshots: dict[OffsetAndEpoch, int]) -> None:
        self.log: Final = log
        self.snapshots = snapshots
        self._flushed = log.end_offset
        # Segments whose names are on the disk, by their base offsets.
        self._named = {segment.base_offset for segment in log.segments if segment.names_synced}
        self._segments_at_checkpoint = len(log.segments)
        self._checkpoint = -1

    # LogView

    @property
    def start_offset(self) -> int:
        return self.log.start_offset

    @property
    def end(self) -> OffsetAndEpoch:
        latest = self.log.epochs.latest
        if latest is None:
            snapshot = self.latest_snapshot
            latest = snapshot.epoch if snapshot is not None and snapshot.offset == self.log.end_offset else 0
        return OffsetAndEpoch(self.log.end_offset, latest)

    @property
    def flushed_offset(self) -> int:
        return min(self._flushed, self.log.end_offset)

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        found, offset = self.log.epochs.end_offset_for(epoch, self.log.end_offset)
        if offset < 0:
            return self.end
        earliest = self.earliest_snapshot
        if earliest is not None and earliest.offset == offset and found == epoch:
            # The epoch is older than the log's first entry, so it ends at the snapshot.
            return earliest
        return OffsetAndEpoch(offset, found)

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None:
        return min(self.snapshots, default=None)

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return max(self.snapshots, default=None)

    def has(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Whether the log continues this snapshot. If not, it is older than a leader's snapshot."""
        if not self.log.start_offset <= snapshot_id.offset <= self.log.end_offset:
            return False
        # The epochs below the last log start are unknown. That start was at one of our snapshots, so the log
        # continues it and those before it.
        epoch = self.log.epochs.epoch_for(snapshot_id.offset - 1)
        return epoch is None or epoch == snapshot_id.epoch

    # Syncing

    def begin_sync(self) -> SyncJob:
        """Collect what must be synced to make the current content durable."""
        log = self.log
        dirty = log.segments[max(0, bisect_right(log.bases, self._flushed) - 1) :]
        return SyncJob(
            log.fs,
            log.directory,
            log.end_offset,
            log.truncations,
            tuple([segment.open() for segment in dirty]),
            tuple([base for base in log.bases if base not in self._named]),
        )

    def finish_sync(self, job: SyncJob) -> bool:
        """Advance the flushed offset after the job; False if the log was truncated during it."""
        self._named.update(job.new_names)
        if self.log.truncations != job.truncations:
            return False
        self._flushed = max(self._flushed, job.upto)
        return True

    def all_is_synced(self) -> None:
        """Note that a flush, truncation or restart has synced everything."""
        self._flushed = self.log.end_offset
        self._named = set(self.log.bases)

    def names_are_synced(self, bases: tuple[int, ...]) -> None:
        self._named.update(bases)

    # The recovery point

    def checkpoint_is_due(self) -> bool:
        """Whether a segment was finished since the last checkpoint; with one, a restart need not read it."""
        return len(self.log.segments) != self._segments_at_checkpoint

    def checkpoint_job(self, high_watermark: int) -> Callable[[], None] | None:
        """The job that writes the recovery point; None if it has not moved. Flush the log first.

        It never exceeds the high watermark: a new leader may truncate the rest, even while Kafka has the
        directory.
        """
        self._segments_at_checkpoint = len(self.log.segments)
        point = min(self.log.recovery_point, high_watermark)
        if point == self._checkpoint:
            return None
        self._checkpoint = point
        fs, directory = self.log.fs, self.log.directory
        return lambda: write_recovery_point(fs, directory, point)

    def checkpoint_is(self, point: int) -> None:
        """Note that another operation has written this recovery point."""
        self._checkpoint = point


def write_recovery_point(fs: FileSystem, directory: str, offset: int) -> None:
    write_offsets(fs, f"{directory}/{RECOVERY_POINTS}", {METADATA: offset})
