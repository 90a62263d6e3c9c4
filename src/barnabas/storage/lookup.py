"""Look up offsets by time: the first record at or after a timestamp, and the record with the latest one.

Indexes and headers lead to one batch; its CRC is checked and its records are decoded. Both functions may
raise NotCached or IndexDamaged, after which they can be called again, or Malformed for a corrupt batch.
"""

from typing import NamedTuple

from barnabas.records.decode import decode_batch
from barnabas.records.header import HEADER_SIZE
from barnabas.records.record import Record
from barnabas.records.validate import check_batch
from barnabas.storage.log import Log
from barnabas.storage.segment.segment import Found, Segment


class TimedOffset(NamedTuple):
    """A record's offset, timestamp and leader epoch."""

    offset: int
    timestamp: int
    leader_epoch: int


def offset_for_time(log: Log, timestamp: int) -> TimedOffset | None:
    """The first record at or after `timestamp`; None if all are earlier."""
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
            # The record with the batch's max timestamp was compacted away or is below the log start.
            floor = found.last_offset + 1
    return None


def latest_record(log: Log, *, start: int | None = None) -> TimedOffset | None:
    """The first record with the latest timestamp; None without records.

    Only records from `start` on count (default: the log start offset).
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
    """The latest timestamp among a segment's readable records, and the first batch with it."""
    if segment.base_offset >= start:
        timestamp, offset = segment.latest()
        found = segment.find(offset)
        if found is None or found.size > HEADER_SIZE:
            return timestamp, found
    # The log starts inside this segment, or compaction emptied the batch with the latest timestamp but kept
    # its header. Look at all remaining batches.
    latest, best = -1, None
    found = segment.find(max(start, segment.base_offset))
    while found is not None:
        timestamp = found.max_timestamp if found.size > HEADER_SIZE else -1
        if found.base_offset < start:
            # The log starts inside this batch, and its max timestamp may belong to a deleted record.
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
