"""Choose the log to compact next, and the range of offsets (pure).

A log is worth compacting when more than min.cleanable.dirty.ratio of its bytes were never compacted, or when
some of them are older than max.compaction.lag.ms. Of those logs, the dirtiest is next.

Logs with cleanup.policy=compact,delete are picked like the others. Retention moves their start offset, so a
cleaner checkpoint below the log start is normal for them.
"""

from collections.abc import Iterable, Sequence

from barnabas.base.values import value
from barnabas.storage.config import LogConfig


@value(kw_only=True)
class DirtySegment:
    """The facts about a segment that matter here."""

    base_offset: int
    size: int
    # The latest timestamp, or the time of the last write if no record has one.
    largest_timestamp: int
    # The latest timestamp of the first batch; 0 or less if it has none. Needed only for dirty segments of a
    # log with a max.compaction.lag.ms.
    first_timestamp: int = 0


@value(kw_only=True)
class DirtyLog:
    """The facts about a compacted log that is neither being compacted now nor marked as uncleanable."""

    name: str
    # All segments; the last one is the active one.
    segments: Sequence[DirtySegment]
    start_offset: int
    end_offset: int
    last_stable_offset: int
    # The log's entry in the cleaner's checkpoint; None without one.
    checkpoint: int | None
    config: LogConfig


@value(kw_only=True)
class Candidate:
    """A log, and the work to do in it."""

    log: DirtyLog
    # Compaction covers [dirty_start, upper_bound); upper_bound is a segment's base offset.
    dirty_start: int
    upper_bound: int
    clean_bytes: int
    dirty_bytes: int
    # By how much the oldest dirty record exceeds max.compaction.lag.ms; 0 if none does.
    overdue_ms: int
    # Why the checkpoint was ignored and must be rewritten, or None.
    checkpoint_reset: str | None

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_worth_it(self) -> bool:
        if self.dirty_bytes == 0 or self.dirty_start >= self.upper_bound:
            return False
        return self.overdue_ms > 0 or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def pick(logs: Iterable[DirtyLog], now_ms: int) -> Candidate | None:
    """The dirtiest of the logs that are worth compacting."""
    worth_it = [found for found in (weigh(log, now_ms) for log in logs) if found.is_worth_it]
    return max(worth_it, key=lambda found: found.dirty_ratio, default=None)


def weigh(log: DirtyLog, now_ms: int) -> Candidate:
    """The work to do in a log, whether or not it is worth it."""
    start, reset = _dirty_start(log)
    bound = max(start, _first_uncleanable(log, start, now_ms))
    # A segment is compacted as a whole or not at all.
    upper_bound = next((one.base_offset for one in _closed_from(log, bound)), log.segments[-1].base_offset)
    dirty = [one.size for one in _closed_from(log, start) if one.base_offset < upper_bound]
    return Candidate(
        log=log,
        dirty_start=start,
        upper_bound=upper_bound,
        clean_bytes=sum(one.size for one in log.segments if one.base_offset < start),
        dirty_bytes=sum(dirty),
        overdue_ms=_overdue_ms(log, start, now_ms),
        checkpoint_reset=reset,
    )


def _dirty_start(log: DirtyLog) -> tuple[int, str | None]:
    start, checkpoint = log.start_offset, log.checkpoint
    if checkpoint is None:
        return start, None
    if checkpoint < start:
        return start, f"{log.name}: cleaner checkpoint {checkpoint} is below the log start offset {start}"
    if checkpoint > log.end_offset:
        # The end of the log was lost. The records there now may not be the ones that were compacted.
        end = log.end_offset
        return start, f"{log.name}: cleaner checkpoint {checkpoint} is above the log end offset {end}"
    return checkpoint, None


def _first_uncleanable(log: DirtyLog, start: int, now_ms: int) -> int:
    """The first offset that must not be compacted: active segment, open transactions, or too recent."""
    bounds = [log.segments[-1].base_offset, log.last_stable_offset]
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        young = (one for one in _closed_from(log, start) if one.largest_timestamp > now_ms - lag_ms)
        bounds += [one.base_offset for one in young][:1]
    return min(bounds)


def _overdue_ms(log: DirtyLog, start: int, now_ms: int) -> int:
    times = [one.first_timestamp for one in _closed_from(log, start) if one.first_timestamp > 0]
    if not times:
        return 0
    return max(0, now_ms - max(log.config.max_compaction_lag_ms, 0) - min(times))


def _closed_from(log: DirtyLog, offset: int) -> list[DirtySegment]:
    """The closed segments from the one that holds `offset` on."""
    closed, active = log.segments[:-1], log.segments[-1]
    if offset >= active.base_offset:
        return []
    before = [number for number, one in enumerate(closed) if one.base_offset <= offset]
    return list(closed[before[-1] if before else 0 :])
