"""Truncate a log at an offset, as a follower does with records that its leader does not have.

The recovery point is lowered on the disk first, because after a power loss recovery does not check batches
below it. Then the executor finds the position, the loop truncates there, and the executor syncs. Without the
sync, old batches could reappear after new ones.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from barnabas.base.executor import Executor
from barnabas.base.values import value
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.errors import CorruptFile, CorruptLog, StorageError
from barnabas.storage.files import FileSystem, write_atomically
from barnabas.storage.log import Log
from barnabas.storage.names import LEADER_EPOCHS, LOG, SNAPSHOT, file_name
from barnabas.storage.producers.snapshot import read_snapshot
from barnabas.storage.producers.table import Producers
from barnabas.storage.removal import rename_deleted
from barnabas.storage.segment.replay import BadBatch, BatchReader, Replay
from barnabas.storage.segment.segment import Segment
from barnabas.storage.warming import warmed

LowerRecoveryPoint = Callable[[int], Awaitable[None]]


class ChangedMeanwhile(StorageError):
    """The log was appended to during a truncation."""

    def __init__(self, log: Log) -> None:
        super().__init__(f"log {log.tp} was appended to during a truncation")


@value
class Cut:
    """Where to truncate: the segments that stay, the position in the last one, and the state there."""

    keep: int
    position: int
    end_offset: int
    producers: Producers


async def truncate(
    log: Log, executor: Executor, offset: int, lower: LowerRecoveryPoint, now_ms: int
) -> list[str]:
    """Truncate the log at `offset`, or at the start of the batch that contains it.

    The new end is that of a batch, as it will be when the log is reopened; after compaction it may be below
    `offset`. `lower` writes the recovery point. Nothing may be appended during the call. Return the files
    that were renamed to `.deleted`.
    """
    async with log.turn():
        log.check_open()
        return await _truncate(log, executor, offset, lower, now_ms)


async def restart_at(
    log: Log, executor: Executor, offset: int, lower: LowerRecoveryPoint, now_ms: int
) -> list[str]:
    """Delete all records and continue with an empty log at `offset`."""
    async with log.turn():
        log.check_open()
        return await _restart_at(log, executor, offset, lower, now_ms)


async def _truncate(
    log: Log, executor: Executor, offset: int, lower: LowerRecoveryPoint, now_ms: int
) -> list[str]:
    if offset >= log.end_offset:
        return []
    if offset < log.bases[0] or offset < log.start_offset:
        return await _restart_at(log, executor, offset, lower, now_ms)
    end = log.end_offset
    cut = await executor.run(partial(find_cut, log.fs, log.directory, log.segments, log.snapshots, offset))
    if cut.end_offset < log.start_offset:
        # The log starts inside the batch that has to go.
        return await _restart_at(log, executor, log.start_offset, lower, now_ms)
    if log.recovery_point > cut.end_offset:
        log.recovery_point = cut.end_offset
        await lower(cut.end_offset)
    if log.end_offset != end:
        raise ChangedMeanwhile(log)
    stale = [at for at in log.snapshots if at > cut.end_offset]
    gone = await warmed(
        log, executor, partial(log.cut, cut.keep, cut.position, cut.end_offset, cut.producers)
    )
    return await executor.run(partial(_settle, log, gone, stale, log.epochs.to_text()))


async def _restart_at(
    log: Log, executor: Executor, offset: int, lower: LowerRecoveryPoint, now_ms: int
) -> list[str]:
    log.recovery_point = min(log.recovery_point, log.bases[0], offset)
    await lower(log.recovery_point)
    stale = log.snapshots
    gone = log.drop_all(offset, now_ms)
    return await executor.run(partial(_restart, log, gone, stale, log.epochs.to_text()))


def find_cut(
    fs: FileSystem, directory: str, segments: Sequence[Segment], snapshots: Sequence[int], offset: int
) -> Cut:
    """Find the position to truncate at, and the producer state there. For the executor."""
    keep = max(slot for slot, segment in enumerate(segments) if segment.base_offset <= offset)
    replay = Replay(_producers_before(fs, directory, snapshots, segments, offset), LeaderEpochs())
    end = segments[keep].base_offset
    for slot in range(keep + 1):
        if slot < keep and segments[slot + 1].base_offset <= replay.producers.end_offset:
            continue
        segment = segments[slot]
        reader = BatchReader(segment.open(), 0, segment.size)
        end = segment.base_offset
        try:
            while (batch := reader.next(False)) is not None:
                if batch.base_offset + batch.last_delta >= offset:
                    return _cut(keep, reader.position, end, replay.producers)
                replay.take(reader, batch)
                end = batch.base_offset + batch.last_delta + 1
        except BadBatch as wrong:
            raise CorruptLog(segment.path(LOG), position=wrong.position, what=wrong.what) from None
    # The offset is in a gap after the last batch of its segment.
    return _cut(keep, segments[keep].size, end, replay.producers)


def _cut(keep: int, position: int, end: int, producers: Producers) -> Cut:
    producers.end_offset = end
    return Cut(keep + 1, position, end, producers)


def _producers_before(
    fs: FileSystem, directory: str, snapshots: Sequence[int], segments: Sequence[Segment], offset: int
) -> Producers:
    for at in reversed(snapshots):
        if at <= offset:
            path = f"{directory}/{file_name(at, SNAPSHOT)}"
            try:
                return read_snapshot(fs.read(path), path, at)
            except (CorruptFile, FileNotFoundError):
                # An older snapshot will do; then more batches are replayed.
                continue
    empty = Producers()
    empty.end_offset = segments[0].base_offset
    return empty


def _settle(log: Log, gone: list[Segment], stale: list[int], epochs: bytes) -> list[str]:
    paths = rename_deleted(log.fs, log.directory, gone)
    _remove_snapshots(log, stale)
    for file in [*log.active.files_to_sync(), *log.aborted.files_to_sync(log.active)]:
        file.sync()
    write_atomically(log.fs, f"{log.directory}/{LEADER_EPOCHS}", epochs)
    return paths


def _remove_snapshots(log: Log, stale: list[int]) -> None:
    # A stale snapshot would be trusted once the log has grown to its offset again.
    for at in stale:
        try:
            log.fs.remove(f"{log.directory}/{file_name(at, SNAPSHOT)}")
        except FileNotFoundError:
            continue
    log.fs.sync_directory(log.directory)


def _restart(log: Log, gone: list[Segment], stale: list[int], epochs: bytes) -> list[str]:
    paths = rename_deleted(log.fs, log.directory, gone)
    _remove_snapshots(log, stale)
    log.active.make_files()
    log.fs.sync_directory(log.directory)
    write_atomically(log.fs, f"{log.directory}/{LEADER_EPOCHS}", epochs)
    return paths
