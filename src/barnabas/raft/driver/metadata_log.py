"""The metadata log on its disk: what the core sees of it, and what of it is safe.

A commit needs the bytes of the `.log` on the disk and nothing else: indexes and epochs are made anew from
them. What has all of that synced lies below the recovery point, which is kept in a file in the log's own
directory, because the log manager's checkpoints are about the logs that it manages. Nothing below it is ever
cut off by a restart.
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
    """What has to be synced so that everything before `upto` is safe, if the log is not cut meanwhile."""

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
    """The log, its snapshots with their sizes, and how much of it is flushed. It is what LogView promises."""

    def __init__(self, log: Log, snapshots: dict[OffsetAndEpoch, int]) -> None:
        self.log: Final = log
        self.snapshots = snapshots
        self._flushed = log.end_offset
        # Segments whose names are on the disk, by their base offsets.
        self._named = {segment.base_offset for segment in log.segments if segment.names_synced}
        self._segments_at_checkpoint = len(log.segments)
        self._checkpoint = -1

    # What the core sees

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
            # The epoch is older than all that the log has: its end is the snapshot's.
            return earliest
        return OffsetAndEpoch(offset, found)

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None:
        return min(self.snapshots, default=None)

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return max(self.snapshots, default=None)

    def has(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Whether the log goes on from this snapshot. If not, it is of before a leader's snapshot came."""
        if not self.log.start_offset <= snapshot_id.offset <= self.log.end_offset:
            return False
        # Epochs are not known before the last place where the log was said to start. That was at a snapshot
        # of ours, so the log goes on from that one, and from those before it.
        epoch = self.log.epochs.epoch_for(snapshot_id.offset - 1)
        return epoch is None or epoch == snapshot_id.epoch

    # What is safe

    def begin_sync(self) -> SyncJob:
        """Settle what has to be synced for everything that is in the log now."""
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
        """The job is done. False if it says nothing, because the log was cut meanwhile."""
        self._named.update(job.new_names)
        if self.log.truncations != job.truncations:
            return False
        self._flushed = max(self._flushed, job.upto)
        return True

    def all_is_synced(self) -> None:
        """Somebody else has synced all there is: the log was flushed, cut or started anew."""
        self._flushed = self.log.end_offset
        self._named = set(self.log.bases)

    def names_are_synced(self, bases: tuple[int, ...]) -> None:
        self._named.update(bases)

    # The recovery point

    def checkpoint_is_due(self) -> bool:
        """A segment was finished since the last time, so that a restart need not look at it."""
        return len(self.log.segments) != self._segments_at_checkpoint

    def checkpoint_job(self, high_watermark: int) -> Callable[[], None] | None:
        """What writes the recovery point down; None if it has not moved. The log must have been flushed.

        Only what is committed: the rest may be cut off by another leader, even while Kafka has the directory.
        """
        self._segments_at_checkpoint = len(self.log.segments)
        point = min(self.log.recovery_point, high_watermark)
        if point == self._checkpoint:
            return None
        self._checkpoint = point
        fs, directory = self.log.fs, self.log.directory
        return lambda: write_recovery_point(fs, directory, point)

    def checkpoint_is(self, point: int) -> None:
        """It was written down for another reason."""
        self._checkpoint = point


def write_recovery_point(fs: FileSystem, directory: str, offset: int) -> None:
    write_offsets(fs, f"{directory}/{RECOVERY_POINTS}", {METADATA: offset})
