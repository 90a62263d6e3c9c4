"""Segments that leave a log: out of the list at once, off the disk a little later.

Readers may hold ranges of them, so there is a delay. A segment's files first get `.deleted` behind their
names: whatever happens then, opening the log finishes it.
"""

import logging
from collections.abc import Sequence
from functools import partial

from barnabas.base.executor import Executor
from barnabas.storage.errors import is_full
from barnabas.storage.files import FileSystem
from barnabas.storage.flush import sync_snapshots
from barnabas.storage.log import Log
from barnabas.storage.names import DELETED, SEGMENT_FILES, SNAPSHOT, file_name
from barnabas.storage.retention import Decision, SegmentFacts, decide
from barnabas.storage.segment.segment import Segment
from barnabas.storage.warming import warmed

logger = logging.getLogger(__name__)


def retention_facts(log: Log) -> list[SegmentFacts]:
    """What retention has to know of the segments. It may raise NotCached or IndexDamaged."""
    return [
        SegmentFacts(
            base_offset=segment.base_offset,
            end_offset=end,
            size=segment.size,
            largest_timestamp=segment.latest()[0],
            modified_ms=segment.modified_ms,
        )
        for segment, end in zip(log.segments, [*log.bases[1:], log.end_offset], strict=True)
    ]


def decide_retention(log: Log, now_ms: int) -> Decision:
    """Which segments have to go now. It may raise NotCached or IndexDamaged."""
    return decide(
        retention_facts(log),
        log.config,
        log_start_offset=log.start_offset,
        high_watermark=log.high_watermark,
        now_ms=now_ms,
    )


def apply_retention(log: Log, decision: Decision, now_ms: int) -> list[Segment]:
    """Take the segments out of the log; their files are still there."""
    count, start = len(decision.departures), decision.log_start_offset
    if decision.roll:
        try:
            log.roll(now_ms)
        except OSError as error:
            if not is_full(error) or count == 1:
                raise
            # There is no room for a new segment. There may be when the others are gone: the active one stays.
            count -= 1
            start = log.active.base_offset
    if count == 0:
        return []
    gone = log.drop_first(count)
    log.advance_start(start)
    return gone


async def retain(log: Log, executor: Executor, now_ms: int) -> list[str]:
    """Let go what retention does not keep. Return the files that were marked for deletion."""
    async with log.turn():
        log.check_open()
        decision = await warmed(log, executor, partial(decide_retention, log, now_ms))
        gone = apply_retention(log, decision, now_ms)
        for departure in decision.departures[: len(gone)]:
            logger.info("segment goes tp=%s base=%d why=%s", log.tp, departure.base_offset, departure.why)
        # What the segments said of producers is in the snapshots behind them: those must be there first.
        mark = partial(rename_deleted, log.fs, log.directory, gone, needs=log.unsynced_snapshots)
        return await executor.run(mark)


def rename_deleted(
    fs: FileSystem, directory: str, gone: Sequence[Segment], *, needs: Sequence[int] = ()
) -> list[str]:
    """Put `.deleted` behind the names of segments that are out of the log; return the new paths.

    The snapshots at `needs` are synced before. For the executor.
    """
    paths = []
    if gone and needs:
        sync_snapshots(fs, directory, needs)
        fs.sync_directory(directory)
    for segment in gone:
        names = [segment.path(kind) for kind in SEGMENT_FILES]
        names.append(f"{directory}/{file_name(segment.base_offset, SNAPSHOT)}")
        for path in names:
            try:
                fs.rename(path, path + DELETED)
            except FileNotFoundError:
                continue
            paths.append(path + DELETED)
        # One after another, so that a power loss leaves no hole in the middle of the log.
        fs.sync_directory(directory)
        segment.close()
    return paths


def remove_all(fs: FileSystem, paths: Sequence[str]) -> None:
    """Remove files that were marked a while ago. For the executor."""
    for path in paths:
        try:
            fs.remove(path)
        except FileNotFoundError:
            # The whole partition was deleted in the meantime.
            continue


def remove_directory(fs: FileSystem, path: str) -> None:
    """Remove a directory and what is in it. For the executor."""
    for entry in fs.entries(path):
        below = f"{path}/{entry.name}"
        if entry.is_directory:
            remove_directory(fs, below)
        else:
            fs.remove(below)
    fs.remove_directory(path)
