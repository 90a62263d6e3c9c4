"""Which log is compacted next, and from where to where (pure).

A log is worth it when more than min.cleanable.dirty.ratio of its bytes were never compacted, or when some of
them have waited for longer than max.compaction.lag.ms. Of those that are worth it, the dirtiest is next.

Logs with cleanup.policy=compact,delete are picked like the others. What retention removes from them moves the
start of the log, so that a checkpoint which lies before it is nothing to wonder at.
"""

from collections.abc import Iterable, Sequence

from barnabas.base.values import value
from barnabas.storage.config import LogConfig


@value(kw_only=True)
class DirtySegment:
    """What is asked about a segment."""

    base_offset: int
    size: int
    # The latest timestamp in it; if it has none, when it was last written.
    largest_timestamp: int
    # The latest timestamp of its first batch; 0 or less if it has none. It is needed only for a log with a
    # max.compaction.lag.ms, and only for dirty segments.
    first_timestamp: int = 0


@value(kw_only=True)
class DirtyLog:
    """What is asked about a log that compacts, and is neither being compacted nor marked as damaged."""

    name: str
    # All of them; the last one is the active one.
    segments: Sequence[DirtySegment]
    start_offset: int
    end_offset: int
    last_stable_offset: int
    # How far it was compacted, by the cleaner's checkpoint; None if it is not in there.
    checkpoint: int | None
    config: LogConfig


@value(kw_only=True)
class Candidate:
    """A log, and what there is to do in it."""

    log: DirtyLog
    # Compaction is about [dirty_start, upper_bound): the latter is where a segment starts.
    dirty_start: int
    upper_bound: int
    clean_bytes: int
    dirty_bytes: int
    # For how long something has been waiting for longer than it may; 0 if nothing has.
    overdue_ms: int
    # Why the checkpoint was not followed, or None. Then it is to be written again.
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
    """The dirtiest of the logs that are worth it."""
    worth_it = [found for found in (weigh(log, now_ms) for log in logs) if found.is_worth_it]
    return max(worth_it, key=lambda found: found.dirty_ratio, default=None)


def weigh(log: DirtyLog, now_ms: int) -> Candidate:
    """What there is to do in a log, worth it or not."""
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
        return start, f"{log.name}: compacted up to {checkpoint}, and the log starts at {start}"
    if checkpoint > log.end_offset:
        # The end of the log was lost. What is there now may not be what was compacted.
        return start, f"{log.name}: compacted up to {checkpoint}, and the log ends at {log.end_offset}"
    return checkpoint, None


def _first_uncleanable(log: DirtyLog, start: int, now_ms: int) -> int:
    """Not compacted are: the active segment, what is not decided yet, and what is too young."""
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
    """The segments from the one with this offset on, without the active one."""
    closed, active = log.segments[:-1], log.segments[-1]
    if offset >= active.base_offset:
        return []
    before = [number for number, one in enumerate(closed) if one.base_offset <= offset]
    return list(closed[before[-1] if before else 0 :])
