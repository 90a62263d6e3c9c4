"""Run reads on the loop without blocking it: warm up missing pages in the executor, and retry."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from barnabas.base.executor import Executor
from barnabas.storage.errors import CorruptLog
from barnabas.storage.files import FileSystem, NotCached
from barnabas.storage.log import OFFSET_SPAN_MAX, Log
from barnabas.storage.names import LOG, OFFSET_INDEX, REBUILT, TIME_INDEX, file_name
from barnabas.storage.segment.index import IndexDamaged
from barnabas.storage.segment.replay import BadBatch, BatchReader
from barnabas.storage.segment.segment import Segment

T = TypeVar("T")

# A read needs a few index pages and one range of data. More misses than this mean that memory is so short
# that pages are evicted as fast as they are read.
_WARM_UPS_MAX: Final = 16


def waiting(read: Callable[[], T]) -> T:
    """Call `read`, and block on the disk for bytes that are not in memory."""
    while True:
        try:
            return read()
        except NotCached as cold:
            cold.warm()


async def warmed(log: Log, executor: Executor, read: Callable[[], T]) -> T:
    """Call `read` on the loop until it succeeds; warm up in the executor in between."""
    rebuilt = False
    for _ in range(_WARM_UPS_MAX):
        try:
            return read()
        except NotCached as cold:
            await executor.run(cold.warm)
        except IndexDamaged as damage:
            if rebuilt:
                raise _corrupt(log, damage) from None
            await mend_indexes(log, executor, damage.base_offset)
            rebuilt = True
    return waiting(read)


async def mend_indexes(log: Log, executor: Executor, base_offset: int) -> None:
    """Rebuild the indexes of one segment while the log is in use."""
    log.check_open()
    segment = _find(log, base_offset)
    if segment is None:
        # Retention or compaction has since removed it.
        return
    if segment is log.active:
        # Roll, because appends write to the indexes of the active segment.
        log.roll(segment.created_ms)
        if segment is log.active:
            return
    interval = log.config.index_interval_bytes
    try:
        fresh = await executor.run(partial(rebuild_indexes, log.fs, segment, interval))
    except BadBatch as wrong:
        raise CorruptLog(segment.path(LOG), position=wrong.position, what=wrong.what) from None
    # The segment may have been removed or truncated during the read.
    if log.closed or segment not in log.segments or segment.size != fresh.size:
        return
    segment.close_indexes()
    for kind in (OFFSET_INDEX, TIME_INDEX):
        log.fs.rename(fresh.path(kind), segment.path(kind))
    segment.index_size, segment.time_index_size = fresh.index_size, fresh.time_index_size
    segment.max_timestamp, segment.max_timestamp_offset = fresh.max_timestamp, fresh.max_timestamp_offset
    segment.indexed_timestamp = fresh.indexed_timestamp


def rebuild_indexes(fs: FileSystem, segment: Segment, interval: int) -> Segment:
    """Write new indexes for a finished segment next to the old ones. For the executor."""
    fresh = Segment(fs, segment.directory, segment.base_offset, suffix=REBUILT)
    fresh.forget_indexes()
    reader = BatchReader(segment.open(), 0, segment.size)
    end = segment.base_offset
    while (batch := reader.next(False)) is not None:
        last = batch.base_offset + batch.last_delta
        if batch.base_offset < end or last - segment.base_offset > OFFSET_SPAN_MAX:
            raise BadBatch(reader.position, f"batch starts at offset {batch.base_offset}, expected {end}")
        end = last + 1
        fresh.note(reader.position, batch.size, last, batch.max_timestamp, interval)
        fresh.spill_some()
    fresh.size = segment.size
    fresh.finish()
    for index in (fresh.offset_index(), fresh.time_index()):
        index.sync()
    fresh.close_indexes()
    return fresh


def _find(log: Log, base_offset: int) -> Segment | None:
    for segment in log.segments:
        if segment.base_offset == base_offset:
            return segment
    return None


def _corrupt(log: Log, damage: IndexDamaged) -> CorruptLog:
    path = f"{log.directory}/{file_name(damage.base_offset, LOG)}"
    return CorruptLog(path, position=0, what=str(damage))
