"""Offsets by time: which record is the first of a timestamp or later, and which one is the latest.

Indexes and headers lead to one batch; its CRC is checked and its records are looked at one by one. Each of
these may raise NotCached or IndexDamaged, and may then be called again; or Malformed, for a rotten batch.
"""

from typing import NamedTuple

from barnabas.records.decode import decode_batch
from barnabas.records.header import HEADER_SIZE
from barnabas.records.record import Record
from barnabas.records.validate import check_batch
from barnabas.storage.log import Log
from barnabas.storage.segment.segment import Found, Segment


class TimedOffset(NamedTuple):
    """A record: where it is, of when it is, and under which leader epoch it was written."""

    offset: int
    timestamp: int
    leader_epoch: int


def offset_for_time(log: Log, timestamp: int) -> TimedOffset | None:
    """The first record of `timestamp` or later; None if all are earlier."""
    start = log.start_offset
    for segment, next_base in _segments_with_ends(log):
        if next_base <= start or (segment is not log.active and segment.latest()[0] < timestamp):
            continue
        floor = start
        while (found := segment.find_time(timestamp, floor)) is not None:
            epoch, records = _records(segment, found)
            for record in records:
                if record.timestamp >= timestamp and record.offset >= start:
                    return TimedOffset(record.offset, record.timestamp, epoch)
            # The records that its maximum was of may be gone by compaction, or lie before the start.
            floor = found.last_offset + 1
    return None


def latest_record(log: Log, *, start: int | None = None) -> TimedOffset | None:
    """The record of the latest timestamp, the first if there are several; None for a log without any.

    Records from `start` on count; that is the start of the log, if nothing else is said.
    """
    start = log.start_offset if start is None else start
    best: Found | None = None
    time, where = -1, log.active
    for segment, next_base in _segments_with_ends(log):
        if next_base <= start or segment.size == 0:
            continue
        latest, found = _latest_batch(segment, start)
        if found is not None and latest > time:
            best, time, where = found, latest, segment
    if best is None:
        return None
    epoch, records = _records(where, best)
    record = max(_readable(records, start), key=lambda record: record.timestamp)
    return TimedOffset(record.offset, record.timestamp, epoch)


def _latest_batch(segment: Segment, start: int) -> tuple[int, Found | None]:
    """The latest timestamp of a segment and the first batch that has it, of what can still be read."""
    if segment.base_offset >= start:
        timestamp, offset = segment.latest()
        found = segment.find(offset)
        if found is None or found.size > HEADER_SIZE:
            return timestamp, found
    # Records were deleted in the middle of it, perhaps the latest ones; or compaction has emptied the batch
    # that had them, and left it its time. Look at all that are left.
    latest, best = -1, None
    found = segment.find(max(start, segment.base_offset))
    while found is not None:
        timestamp = found.max_timestamp if found.size > HEADER_SIZE else -1
        if found.base_offset < start:
            # Also in the middle of this batch, and its own maximum may be of what was deleted.
            left = _readable(_records(segment, found)[1], start)
            timestamp = max([record.timestamp for record in left], default=-1)
        if timestamp > latest:
            latest, best = timestamp, found
        found = segment.find(found.last_offset + 1)
    return latest, best


def _readable(records: list[Record], start: int) -> list[Record]:
    return [record for record in records if record.offset >= start]


def _segments_with_ends(log: Log) -> list[tuple[Segment, int]]:
    ends = [*log.bases[1:], log.end_offset]
    return list(zip(log.segments, ends, strict=True))


def _records(segment: Segment, found: Found) -> tuple[int, list[Record]]:
    batch = segment.open().read_cached(found.position, found.size)
    return check_batch(batch).leader_epoch, decode_batch(batch)
