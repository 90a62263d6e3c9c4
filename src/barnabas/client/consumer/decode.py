"""Decodes fetched bytes into Messages, batch by batch (compiled).

records/column_walk.py handles batches (CRC, control batches, aborted transactions, decompression, records
before the fetch offset), for Arrow tables as well, so that both read the same. The cursor of
records/decode.py finds the fields of a record, and a Message is made of them, with no object in between.
"""

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from barnabas.client.consumer.message import Message
from barnabas.records.area import BadRecord
from barnabas.records.codecs import MAX_DECOMPRESSED
from barnabas.records.column_walk import Walk, batch_size
from barnabas.records.decode import RecordCursor, add_timestamps
from barnabas.records.errors import CorruptBatch, batch_at
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    COUNT_AT,
    INT32_MAX,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LOG_APPEND_TIME_BIT,
    MAX_TIMESTAMP_AT,
    TimestampType,
)

CREATE_TIME: Final = TimestampType.CREATE_TIME
LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME


def find_complete_batches(data: bytes, start: i64, end: i64) -> tuple[int, int, int]:
    """Return end, next offset and last leader epoch of the complete batches in data[start:end].

    Without a complete batch these are `start`, -1 and -1. Only lengths are checked.
    """
    at: i64 = start
    last: i64 = -1
    while at < end:
        size = batch_size(data, at, end)
        if size == 0:
            break
        last = at
        at += size
    if last < 0:
        return start, -1, -1
    next_offset: i64 = read_i64_be(data, last) + i64(read_i32_be(data, last + LAST_OFFSET_DELTA_AT)) + 1
    return at, next_offset, i64(read_i32_be(data, last + LEADER_EPOCH_AT))


def claimed_next_offset(data: bytes, at: i64) -> int:
    """Return the next offset according to the header of the batch at `at`, which may be corrupt."""
    return read_i64_be(data, at) + i64(read_i32_be(data, at + LAST_OFFSET_DELTA_AT)) + 1


class BatchWalk(Walk):
    """A Walk over one batch at a time that keeps nothing of earlier batches."""

    def forget(self) -> None:
        """Release earlier batches, except for the arena that small decompressed areas share."""
        arena = self.arena
        if arena is None:
            self.sources = []
            self.ends = []
        else:
            self.sources = [self.sources[self.arena_source]]
            self.ends = [self.ends[self.arena_source]]
            self.arena_source = 0
        self.spans = self.spans[:0]
        self.rows = 0
        # The limit applies per batch, because one batch is decompressed at a time.
        self.left = MAX_DECOMPRESSED


class BatchReader:
    """Reads one partition's data of one fetch response. take() decodes the next batches.

    `next_offset` is the offset after the batches taken, `last_epoch` the leader epoch of the last one, -1
    before the first.
    """

    def __init__(
        self,
        topic: str,
        partition: i64,
        data: bytes,
        start: i64,
        end: i64,
        from_offset: i64,
        check_crc: bool,
        aborted: list[tuple[int, int]],
    ) -> None:
        """`data[start:end]` holds complete batches; `aborted` has pairs (first offset, producer id)."""
        self.topic = topic
        self.partition: i64 = partition
        self.data = data
        self.at: i64 = start
        self.end: i64 = end
        self.next_offset: i64 = from_offset
        self.last_epoch: i64 = -1
        self.cursor = RecordCursor()
        self.walk = BatchWalk(
            from_offset=from_offset,
            skip_control=True,
            check_crc=check_crc,
            limit=MAX_DECOMPRESSED,
            aborted=aborted,
        )

    @property
    def done(self) -> bool:
        return self.at >= self.end

    def take(self, enough: int) -> list[Message]:
        """Decode whole batches until there are `enough` messages or no data is left.

        A corrupt batch raises CorruptBatch or another Malformed. If messages precede it, they are returned
        first and the next call raises.
        """
        out: list[Message] = []
        least: i64 = enough
        while self.at < self.end and len(out) < least:
            before = len(out)
            try:
                self.take_batch(out)
            except Exception:
                del out[before:]
                if before == 0:
                    raise
                break
        return out

    def take_batch(self, out: list[Message]) -> None:
        walk = self.walk
        data = self.data
        at = self.at
        size = batch_size(data, at, self.end)
        walk.forget()
        # A corrupt batch is walked again by the next call. Noting its transactions twice is harmless.
        walk.feed(data, at, at + size, False)
        if len(walk.spans) > 0:
            self.read_records(walk.sources[walk.spans[0]], walk.spans[1], walk.spans[2], at, out)
        self.at = at + size
        if walk.next_offset > self.next_offset:
            self.next_offset = walk.next_offset
        self.last_epoch = i64(read_i32_be(data, at + LEADER_EPOCH_AT))

    def read_records(self, area: bytes, at: i64, end: i64, batch: i64, out: list[Message]) -> None:
        """Append the records of area[at:end], which are those of the batch at `batch`."""
        data = self.data
        count: i64 = i64(read_i32_be(data, batch + COUNT_AT))
        base_offset: i64 = read_i64_be(data, batch)
        epoch: i64 = i64(read_i32_be(data, batch + LEADER_EPOCH_AT))
        kind = CREATE_TIME
        base_timestamp: i64 = read_i64_be(data, batch + BASE_TIMESTAMP_AT)
        timestamp = base_timestamp
        append_time = i64(read_i16_be(data, batch + ATTRIBUTES_AT)) & LOG_APPEND_TIME_BIT != 0
        if append_time:
            kind = LOG_APPEND_TIME
            timestamp = read_i64_be(data, batch + MAX_TIMESTAMP_AT)
        cursor = self.cursor
        cursor.start_area(area, at, end, count)
        try:
            while cursor.next_record():
                if cursor.offset_delta < 0 or cursor.offset_delta > INT32_MAX:
                    raise BadRecord(f"offset delta {cursor.offset_delta} is out of range")
                if not append_time:
                    timestamp = add_timestamps(base_timestamp, cursor.time_delta)
                headers = cursor.headers()
                offset = base_offset + cursor.offset_delta
                # Decode skipped records, too: a batch is valid as a whole or not at all.
                if offset >= self.walk.from_offset:
                    out.append(
                        Message(
                            self.topic,
                            self.partition,
                            offset,
                            timestamp,
                            kind,
                            cursor.key(),
                            cursor.value(),
                            headers,
                            epoch,
                        )
                    )
        except BadRecord as wrong:
            raise CorruptBatch(str(wrong), where=f"{batch_at(batch)}, record {cursor.index}") from None
