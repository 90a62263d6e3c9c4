"""Compact one log while it is in use: decide on the loop, rewrite in the executor, swap in group by group.

Truncation, retention and deletion continue during a run. If they touch the sources of a group, that group and
the rest of the run are discarded, and the next run starts from the same offset.
"""

from errno import EIO
from functools import partial

from barnabas.base.executor import Executor
from barnabas.storage.cleaner.facts import CleanedGroup, CleanedTooLarge, CleaningFacts, CleaningStats
from barnabas.storage.cleaner.grouping import Source
from barnabas.storage.cleaner.job import Cleaning
from barnabas.storage.cleaner.pick import Candidate, DirtyLog, DirtySegment
from barnabas.storage.cleaner.swap import discard_cleaned, publish, retire
from barnabas.storage.errors import CorruptFile
from barnabas.storage.files import FileSystem
from barnabas.storage.log import Log
from barnabas.storage.names import SNAPSHOT, SWAP, file_name
from barnabas.storage.producers.snapshot import read_snapshot
from barnabas.storage.segment.segment import Segment
from barnabas.storage.segment.txn_index import AbortedTxn
from barnabas.storage.warming import warmed


class CleanResult:
    """The outcome of one run."""

    def __init__(self, next_dirty_offset: int, stats: CleaningStats, to_remove: list[str]) -> None:
        self.next_dirty_offset = next_dirty_offset
        self.stats = stats
        # Files renamed to .deleted; the caller removes them after file.delete.delay.ms.
        self.to_remove = to_remove


def dirty_log(log: Log, *, checkpoint: int | None, flushed: int) -> DirtyLog:
    """Collect the input of pick.py. May raise NotCached or IndexDamaged.

    Only data below the written recovery point is compacted: after a power loss, recovery would take offset
    gaps above that point for missing segments.
    """
    lagging = log.config.max_compaction_lag_ms < _FOREVER
    segments = []
    for segment in log.segments:
        latest = segment.latest()[0]
        first = segment.earliest() if lagging and segment is not log.active else 0
        segments.append(
            DirtySegment(
                base_offset=segment.base_offset,
                size=segment.size,
                largest_timestamp=latest if latest >= 0 else segment.modified_ms,
                first_timestamp=first,
            )
        )
    return DirtyLog(
        name=str(log.tp),
        segments=segments,
        start_offset=log.start_offset,
        end_offset=log.end_offset,
        last_stable_offset=min(log.last_stable_offset, flushed),
        checkpoint=checkpoint,
        config=log.config,
    )


async def clean(
    log: Log, executor: Executor, candidate: Candidate, *, map_bytes: int, secret: bytes, now_ms: int
) -> CleanResult:
    """Compact the candidate's range of offsets in this log."""
    run = partial(_clean, log, executor, candidate, map_bytes=map_bytes, secret=secret, now_ms=now_ms)
    try:
        return await run(group_bytes=log.config.segment_bytes)
    except CleanedTooLarge:
        # Batches may have grown by recompression. Retry with each segment by itself.
        return await run(group_bytes=1)


async def _clean(
    log: Log,
    executor: Executor,
    candidate: Candidate,
    *,
    group_bytes: int,
    map_bytes: int,
    secret: bytes,
    now_ms: int,
) -> CleanResult:
    sources = [segment for segment in log.segments if segment.base_offset < candidate.upper_bound]
    truncations = log.truncations
    facts = CleaningFacts(
        directory=log.directory,
        sources=[_source(segment) for segment in sources],
        dirty_start=candidate.dirty_start,
        upper_bound=candidate.upper_bound,
        aborted=await warmed(log, executor, partial(_aborted, log)),
        producers=log.producers.last_written(),
        open_before=await executor.run(partial(_open_before, log.fs, log.directory, sources[0].base_offset)),
        group_bytes=group_bytes,
        index_bytes=log.config.segment_index_bytes,
        index_interval_bytes=log.config.index_interval_bytes,
        delete_retention_ms=log.config.delete_retention_ms,
        map_bytes=map_bytes,
        secret=secret,
        now_ms=now_ms,
    )

    def is_outdated() -> bool:
        return log.closed or log.truncations != truncations

    cleaning = Cleaning(log.fs, facts, is_outdated)
    to_remove: list[str] = []
    await executor.run(cleaning.fill_map)
    for number, group in enumerate(cleaning.groups):
        cleaned = await executor.run(partial(cleaning.clean_group, number))
        async with log.turn():
            # The log was closed or truncated during the run, or its segments were replaced.
            if is_outdated() or not _all_there(log, sources, group):
                await executor.run(partial(discard_cleaned, log.fs, log.directory, cleaned.base_offset))
                return CleanResult(candidate.dirty_start, cleaning.stats, to_remove)
            try:
                to_remove += await _swap_in(log, executor, cleaned, sources)
            except OSError as error:
                # Even a full disk is fatal here: the swap is half done; only reopening the log repairs it.
                raise OSError(EIO, f"swap failed: {error}") from error
    return CleanResult(cleaning.next_dirty_offset, cleaning.stats, to_remove)


def _source(segment: Segment) -> Source:
    return Source(
        base_offset=segment.base_offset,
        size=segment.size,
        index_size=segment.offset_index().count * 8,
        time_index_size=segment.time_index().count * 12,
    )


def _open_before(fs: FileSystem, directory: str, base_offset: int) -> frozenset[int]:
    """Producers with a transaction open at the log's first segment, by its snapshot. For the executor."""
    path = f"{directory}/{file_name(base_offset, SNAPSHOT)}"
    try:
        entries = read_snapshot(fs.read(path), path, base_offset).entries()
    except (FileNotFoundError, CorruptFile):
        # Recovery would start without producer state, too.
        return frozenset()
    return frozenset(entry.producer_id for entry in entries if entry.txn_first_offset >= 0)


def _aborted(log: Log) -> list[AbortedTxn]:
    return [txn for segment in log.segments for txn in log.aborted.entries(segment)]


def _all_there(log: Log, sources: list[Segment], group: tuple[Source, ...]) -> bool:
    """Whether the log still has the same segment objects that the group was made from."""
    wanted = {source.base_offset for source in group}
    there = set(map(id, log.segments))
    return all(id(segment) in there for segment in sources if segment.base_offset in wanted)


async def _swap_in(log: Log, executor: Executor, cleaned: CleanedGroup, sources: list[Segment]) -> list[str]:
    fs, directory = log.fs, log.directory
    await executor.run(partial(publish, fs, directory, cleaned.base_offset))
    new = Segment(
        fs,
        directory,
        cleaned.base_offset,
        size=cleaned.size,
        index_size=cleaned.index_size,
        time_index_size=cleaned.time_index_size,
        created_ms=max(s.created_ms for s in sources if s.base_offset in cleaned.replaces),
        suffix=SWAP,
    )
    new.knows_latest(cleaned.max_timestamp, cleaned.max_timestamp_offset)
    new.modified_ms = max(s.modified_ms for s in sources if s.base_offset in cleaned.replaces)
    new.names_synced = True
    # New reads use the new segment; ranges of the old ones stay readable while they are held.
    gone = log.replace(cleaned.replaces, new)
    paths = await executor.run(partial(retire, fs, directory, cleaned.base_offset, cleaned.replaces))
    for segment in gone:
        segment.close()
    new.settle_log()
    await executor.run(partial(fs.sync_directory, directory))
    new.settle_indexes()
    await executor.run(partial(fs.sync_directory, directory))
    return paths


_FOREVER = 0x7FFFFFFFFFFFFFFF
