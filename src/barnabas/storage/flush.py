"""From the page cache to the disk: flush a log, and close it for good.

What is to be synced is settled on the loop, the executor syncs, and only then does the recovery point move.
A sync that fails is final: the kernel may have dropped what it could not write, so nothing can be promised
any more, and the directory's owner takes it out of service.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.base.executor import Executor
from barnabas.storage.files import File, FileSystem, write_atomically
from barnabas.storage.log import Log
from barnabas.storage.names import LEADER_EPOCHS, SNAPSHOT, file_name
from barnabas.storage.segment import Segment


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
    new_names: bool
    epochs: bytes | None
    snapshots: list[int]

    def run(self) -> None:
        """Sync everything. For the executor."""
        for file in self.files:
            file.sync()
        sync_snapshots(self.fs, self.directory, self.snapshots)
        if self.new_names:
            self.fs.sync_directory(self.directory)
        if self.epochs is not None:
            write_atomically(self.fs, f"{self.directory}/{LEADER_EPOCHS}", self.epochs)


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
    for segment in segments:
        log.aborted.spill(segment)
        files += segment.files_to_sync()
        files += log.aborted.files_to_sync(segment)
    return FlushJob(
        fs=log.fs,
        directory=log.directory,
        upto=log.end_offset,
        truncations=log.truncations,
        segments=[(segment, segment.changes) for segment in segments],
        files=files,
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
        job = begin_flush(log)
        await executor.run(job.run)
        finish_flush(log, job)


async def close(log: Log, executor: Executor) -> None:
    """Leave the log so that it can be opened without a look at it: indexes, a snapshot, all synced."""
    log.closed = True
    log.active.finish()
    # A write that failed may have left bytes behind the end.
    if log.active.open().size() > log.active.size:
        log.active.open().truncate(log.active.size)
    log.take_snapshot()
    await flush(log, executor)
    for segment in log.segments:
        segment.close()
