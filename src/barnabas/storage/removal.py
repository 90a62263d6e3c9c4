"""Delete segments: from the log at once, from the disk after a delay.

The delay lets readers finish that hold ranges of them. A segment's files first get the suffix `.deleted`: if
the broker stops, opening the log removes them.
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
    """The input of retention.py. May raise NotCached or IndexDamaged."""
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
    """Decide which segments to delete now. May raise NotCached or IndexDamaged."""
    return decide(
        retention_facts(log),
        log.config,
        log_start_offset=log.start_offset,
        high_watermark=log.high_watermark,
        now_ms=now_ms,
    )


def apply_retention(log: Log, decision: Decision, now_ms: int) -> list[Segment]:
    """Remove the segments from the log, but not their files."""
    count, start = len(decision.departures), decision.log_start_offset
    if decision.roll:
        try:
            log.roll(now_ms)
        except OSError as error:
            if not is_full(error) or count == 1:
                raise
            # The disk has no room for a new segment, so keep the active one. Deleting the others makes room.
            count -= 1
            start = log.active.base_offset
    if count == 0:
        return []
    gone = log.drop_first(count)
    log.advance_start(start)
    return gone


async def retain(log: Log, executor: Executor, now_ms: int) -> list[str]:
    """Apply retention. Return the files that were renamed to `.deleted`."""
    async with log.turn():
        log.check_open()
        decision = await warmed(log, executor, partial(decide_retention, log, now_ms))
        gone = apply_retention(log, decision, now_ms)
        for departure in decision.departures[: len(gone)]:
            logger.info(
                "segment deleted tp=%s base=%d reason=%s", log.tp, departure.base_offset, departure.why
            )
        # The producer state of these segments is in later snapshots, which must be synced first.
        mark = partial(rename_deleted, log.fs, log.directory, gone, needs=log.unsynced_snapshots)
        return await executor.run(mark)


def rename_deleted(
    fs: FileSystem, directory: str, gone: Sequence[Segment], *, needs: Sequence[int] = ()
) -> list[str]:
    """Rename the files of removed segments to `.deleted`; return the new paths.

    The snapshots at the offsets `needs` are synced before. For the executor.
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
        # Sync after each segment, so that a power loss leaves no gap in the middle of the log.
        fs.sync_directory(directory)
        segment.close()
    return paths


def remove_all(fs: FileSystem, paths: Sequence[str]) -> None:
    """Remove `.deleted` files. For the executor."""
    for path in paths:
        try:
            fs.remove(path)
        except FileNotFoundError:
            # The whole partition has since been deleted.
            continue


def remove_directory(fs: FileSystem, path: str) -> None:
    """Remove a directory and its contents. For the executor."""
    for entry in fs.entries(path):
        below = f"{path}/{entry.name}"
        if entry.is_directory:
            remove_directory(fs, below)
        else:
            fs.remove(below)
    fs.remove_directory(path)
