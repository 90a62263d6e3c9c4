"""Flush a log from the page cache to the disk, and close it.

The loop decides what to sync, the executor syncs it, and only then does the recovery point move. A failed
sync is final: the kernel may have dropped the pages that it could not write, so LogManager takes the
directory offline.
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
    """The work of one flush, and the recovery point that it reaches."""

    fs: FileSystem
    directory: str
    upto: int
    truncations: int
    # Each with its `changes` counter, which is synced afterwards.
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
            # Here even a full disk is fatal: the kernel marks pages that it could not write as clean, so the
            # next sync would wrongly succeed.
            if error.errno in (ENOSPC, EDQUOT):
                raise OSError(EIO, f"sync failed: {error}") from error
            raise
        if self.epochs is not None:
            write_atomically(self.fs, f"{self.directory}/{LEADER_EPOCHS}", self.epochs)


def _sync_index(file: File) -> None:
    try:
        file.sync()
    except OSError as error:
        # The index was damaged and has since been rebuilt; the rebuilt one is already synced.
        if error.errno not in (EBADF, ENOENT, ESTALE):
            raise


def sync_snapshots(fs: FileSystem, directory: str, offsets: Sequence[int]) -> None:
    """Sync producer snapshots to the disk. For the executor."""
    for at in offsets:
        try:
            file = fs.open(f"{directory}/{file_name(at, SNAPSHOT)}")
        except FileNotFoundError:
            # It has since been deleted with its segment.
            continue
        file.sync()
        file.close()


def begin_flush(log: Log) -> FlushJob:
    """Collect what must be synced to make the current content of the log durable."""
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
    """Advance the recovery point after the job, unless the log was truncated during it."""
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
    """Make the current content of the log durable."""
    async with log.turn():
        log.check_open()
        await _flush(log, executor)


async def _flush(log: Log, executor: Executor) -> None:
    job = begin_flush(log)
    await executor.run(job.run)
    finish_flush(log, job)


async def close(log: Log, executor: Executor) -> None:
    """Close the log with complete indexes and a snapshot, all synced, so that it opens without recovery."""
    async with log.turn():
        log.check_open()
        log.closed = True
        log.active.finish()
        log.take_snapshot()
        await _flush(log, executor)
        for segment in log.segments:
            segment.close()
