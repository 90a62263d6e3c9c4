"""Decide which segments at the start of a log to delete, and why (pure).

There are three reasons, applied in Kafka's order: the log start was moved past the segment; the log is larger
than retention.bytes; the segment's youngest record is older than retention.ms. Segments are deleted from the
oldest on, and the first that stays protects all later ones. Nothing above the high watermark is deleted, so
the log never starts above its followers.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, TypeAlias

from barnabas.base.values import value
from barnabas.storage.config import LogConfig

NO_TIMESTAMP: Final = -1


class Reason(Enum):
    """The limit that a segment exceeds."""

    LOG_START = "log start offset"
    BYTES = "retention.bytes"
    TIME = "retention.ms"


@value(kw_only=True)
class SegmentFacts:
    """One segment. The end offset is the next segment's base offset, or the end of the log."""

    base_offset: int
    end_offset: int
    size: int
    # Largest timestamp of its records; NO_TIMESTAMP if no record has one, and then modified_ms counts.
    largest_timestamp: int
    modified_ms: int

    @property
    def youngest_ms(self) -> int:
        return self.largest_timestamp if self.largest_timestamp >= 0 else self.modified_ms


@value
class Departure:
    """A segment to delete. `why` is for the log line."""

    base_offset: int
    reason: Reason
    why: str


@value(kw_only=True)
class Decision:
    """The steps to take, in this order: roll, move the log start, remove the segments."""

    departures: tuple[Departure, ...]
    # The active segment is to be deleted, so roll first.
    roll: bool
    log_start_offset: int
    # The segment that does not expire because of timestamps in the future, or None. Operators should know.
    future_base_offset: int | None


# The reason to delete a segment, or None.
_Test: TypeAlias = Callable[[SegmentFacts], str | None]


def decide(
    segments: Sequence[SegmentFacts],
    config: LogConfig,
    *,
    log_start_offset: int,
    high_watermark: int,
    now_ms: int,
) -> Decision:
    """Decide for all segments of a log, the active one last."""
    assert segments, "a log has at least one segment"
    active = segments[-1]
    departures: list[Departure] = []

    def may_go(segment: SegmentFacts) -> bool:
        # An empty active segment stays: rolling would only create another one.
        return segment.end_offset <= high_watermark and (segment is not active or segment.size > 0)

    def take(reason: Reason, test: _Test) -> None:
        for segment in segments[len(departures) :]:
            why = test(segment) if may_go(segment) else None
            if why is None:
                return
            departures.append(Departure(segment.base_offset, reason, why))

    take(Reason.LOG_START, _below_start(active, log_start_offset))
    if config.deletes and config.retention_bytes >= 0:
        take(Reason.BYTES, _too_much(segments[len(departures) :], config.retention_bytes))
    future: int | None = None
    if config.deletes and config.retention_ms >= 0:
        take(Reason.TIME, _too_old(now_ms, config.retention_ms))
        staying = segments[len(departures) :]
        if staying and may_go(staying[0]) and staying[0].youngest_ms > now_ms:
            future = staying[0].base_offset
    if departures:
        log_start_offset = max(log_start_offset, segments[len(departures) - 1].end_offset)
    return Decision(
        departures=tuple(departures),
        roll=len(departures) == len(segments),
        log_start_offset=log_start_offset,
        future_base_offset=future,
    )


def _below_start(active: SegmentFacts, log_start_offset: int) -> _Test:
    """The active segment stays even if the log starts at its end: a new one would gain nothing."""

    def test(segment: SegmentFacts) -> str | None:
        if segment is active or segment.end_offset > log_start_offset:
            return None
        return f"log starts at {log_start_offset}"

    return test


def _too_much(segments: Sequence[SegmentFacts], retention_bytes: int) -> _Test:
    """Delete a segment if the log keeps at least retention.bytes without it."""
    size = sum(segment.size for segment in segments)

    def test(segment: SegmentFacts) -> str | None:
        nonlocal size
        if size - segment.size < retention_bytes:
            return None
        size -= segment.size
        return f"retention.bytes={retention_bytes}, {size} bytes remain"

    return test


def _too_old(now_ms: int, retention_ms: int) -> _Test:
    def test(segment: SegmentFacts) -> str | None:
        age = now_ms - segment.youngest_ms
        if age <= retention_ms:
            return None
        of_what = "youngest record" if segment.largest_timestamp >= 0 else "file (no timestamps)"
        return f"retention.ms={retention_ms}, {of_what} is {age} ms old"

    return test
