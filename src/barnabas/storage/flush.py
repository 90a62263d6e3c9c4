"""From the page cache to the disk: flush a log, and close it for good.

What is to be synced is settled on the loop, the executor syncs, and only then does the recovery point move.
A sync that fails is final: the kernel may have dropped what it could not write, so nothing can be promised
any more, and the directory's owner takes it out of service.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from errno import EBADF, EDQUOT, EIO, ENOENT, ENOSPC, ESTALE

from barnabas.base.executor import Executor
from barnabas.storage.files import File, FileSystem, write_atomically
from barnabas.storage.log import Log
from barnabas.storage.names import LEADER_EPOCHS, SNAPSHOT, file_name
from barnabas.storage.segment.segment import Segment


@dataclass(slots=True)
class FlushJob:
    """What one flush has to do, and up to where the log is safe then."""

    fs: FileSystem
    directory: str
    upto: int
    truncations: int
    # With how much of each is synced then.
    segments: list[tuple[Segment, int]]
    files: list[File]
    indexes: list[File]
    new_names: bool
    epochs: bytes | None
    snapshots: list[int]

    def run(self) -> None:
        """Sync everything. For the executor."""
        try:
            for file in self.files:
                file.sync()
            for file in self.indexes:
                _sync_index(file)
            sync_snapshots(self.fs, self.directory, self.snapshots)
            if self.new_names:
                self.fs.sync_directory(self.directory)
        except OSError as error:
            # Also for lack of room, which is nothing serious elsewhere: pages that could not be written count
            # as clean now, and the next sync would say that all is well.
            if error.errno in (ENOSPC, EDQUOT):
                raise OSError(EIO, f"sync failed: {error}") from error
            raise
        if self.epochs is not None:
            write_atomically(self.fs, f"{self.directory}/{LEADER_EPOCHS}", self.epochs)


def _sync_index(file: File) -> None:
    try:
        file.sync()
    except OSError as error:
        # An index that was found to be damaged is made anew meanwhile, and the new one is synced by then.
        if error.errno not in (EBADF, ENOENT, ESTALE):
            raise


def sync_snapshots(fs: FileSystem, directory: str, offsets: Sequence[int]) -> None:
    """Wait until producer snapshots are on the disk. For the executor."""
    for at in offsets:
        try:
            file = fs.open(f"{directory}/{file_name(at, SNAPSHOT)}")
        except FileNotFoundError:
            # It went with its segment in the meantime.
            continue
        file.sync()
        file.close()


def begin_flush(log: Log) -> FlushJob:
    """Settle what has to be synced for everything that is in the log now."""
    segments = [
        segment
        for segment in log.segments
        if segment.changes > segment.changes_synced or not segment.names_synced
    ]
    files: list[File] = []
    indexes: list[File] = []
    for segment in segments:
        log.aborted.spill(segment)
        data, *others = segment.files_to_sync()
        files += [data, *log.aborted.files_to_sync(segment)]
        indexes += others
    return FlushJob(
        fs=log.fs,
        directory=log.directory,
        upto=log.end_offset,
        truncations=log.truncations,
        segments=[(segment, segment.changes) for segment in segments],
        files=files,
        indexes=indexes,
        new_names=any(not segment.names_synced for segment in segments) or bool(log.unsynced_snapshots),
        epochs=log.epochs.to_text() if log.epochs_changed else None,
        snapshots=log.unsynced_snapshots,
    )


def finish_flush(log: Log, job: FlushJob) -> None:
    """The job is done: everything before its end is safe, unless the log was cut meanwhile."""
    if log.truncations != job.truncations:
        return
    log.recovery_point = max(log.recovery_point, job.upto)
    for segment, changes in job.segments:
        segment.names_synced = True
        segment.changes_synced = max(segment.changes_synced, changes)
    log.unsynced_snapshots = [at for at in log.unsynced_snapshots if at not in job.snapshots]
    if job.epochs is not None and job.epochs == log.epochs.to_text():
        log.epochs_changed = False


async def flush(log: Log, executor: Executor) -> None:
    """Everything that is in the log now is on the disk when this returns."""
    async with log.turn():
        log.check_open()
        await _flush(log, executor)


async def _flush(log: Log, executor: Executor) -> None:
    job = begin_flush(log)
    await executor.run(job.run)
    finish_flush(log, job)


async def close(log: Log, executor: Executor) -> None:
    """Leave the log so that it can be opened without a look at it: indexes, a snapshot, all synced."""
    async with log.turn():
        log.check_open()
        log.closed = True
        log.active.finish()
        log.take_snapshot()
        await _flush(log, executor)
        for segment in log.segments:
            segment.close()
