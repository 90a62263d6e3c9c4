"""One batch of a log as compaction sees it (compiled): its header fields, and its records one by one.

Both passes visit millions of records, so no object is created per record: one Batch is refilled for every
batch, and one Cursor moves from record to record.
"""

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from barnabas.records.area import MIN_RECORD_SIZE, BadRecord
from barnabas.records.codecs import MAX_DECOMPRESSED, decompress
from barnabas.records.column_walk import batch_size, check_crc, control_type
from barnabas.records.decode import RecordCursor
from barnabas.records.errors import CorruptBatch, UnknownCodec, batch_at
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    CODEC_BITS,
    CODECS,
    CONTROL_BIT,
    COUNT_AT,
    DELETE_HORIZON_BIT,
    KNOWN_ATTRIBUTES,
    LAST_OFFSET_DELTA_AT,
    MAX_TIMESTAMP_AT,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    RECORDS_AT,
    TRANSACTIONAL_BIT,
)
from barnabas.records.lz4_blocks import Scratch, unpack_lz4

LZ4: Final = 3
# Returned by control_type() for a batch without records.
NO_CONTROL: Final = -1


class Batch:
    """A batch in data[at:end], and after unpack() its records in area[start:stop]."""

    def __init__(self) -> None:
        self.data = b""
        self.view = memoryview(b"")
        self.at: i64 = 0
        self.end: i64 = 0
        self.base_offset: i64 = 0
        self.last_offset: i64 = 0
        self.attributes: i64 = 0
        self.base_timestamp: i64 = 0
        self.max_timestamp: i64 = 0
        self.producer_id: i64 = 0
        self.producer_epoch: i64 = 0
        self.count: i64 = 0
        self.area = b""
        self.start: i64 = 0
        self.stop: i64 = 0
        self._scratch: Scratch | None = None
        # The next batch must lie in [_floor, _ceiling).
        self._floor: i64 = 0
        self._ceiling: i64 = 0

    def begin_segment(self, base_offset: i64, next_base_offset: i64) -> None:
        """Expect batches with offsets in [base_offset, next_base_offset) from now on."""
        self._floor = base_offset
        self._ceiling = next_base_offset

    def use(self, data: bytes) -> None:
        """Read batches from `data` from now on."""
        self.data = data
        self.view = memoryview(data)
        self.at = 0
        self.end = 0

    def load(self, at: i64) -> bool:
        """Read and check the batch that starts at `at`; False if not all of it is there."""
        data = self.data
        # Set before the checks: if one fails, `at` is the position of the damage.
        self.at = at
        size: i64 = batch_size(data, at, len(data))
        if size == 0:
            return False
        self.end = at + size
        check_crc(data, self.view, at, self.end)
        self.base_offset = read_i64_be(data, at)
        last_delta: i64 = i64(read_i32_be(data, at + LAST_OFFSET_DELTA_AT))
        self.last_offset = self.base_offset + last_delta
        self.attributes = i64(read_i16_be(data, at + ATTRIBUTES_AT))
        self.base_timestamp = read_i64_be(data, at + BASE_TIMESTAMP_AT)
        self.max_timestamp = read_i64_be(data, at + MAX_TIMESTAMP_AT)
        self.producer_id = read_i64_be(data, at + PRODUCER_ID_AT)
        self.producer_epoch = i64(read_i16_be(data, at + PRODUCER_EPOCH_AT))
        self.count = i64(read_i32_be(data, at + COUNT_AT))
        if last_delta < 0 or self.base_offset < self._floor or self.last_offset >= self._ceiling:
            raise CorruptBatch(
                f"offsets {self.base_offset} to {self.last_offset} are outside "
                f"[{self._floor}, {self._ceiling})",
                where=batch_at(at),
            )
        self._floor = self.last_offset + 1
        if self.count < 0:
            raise CorruptBatch(f"record count {self.count} is negative", where=batch_at(at))
        if self.attributes & ~KNOWN_ATTRIBUTES != 0:
            raise CorruptBatch(f"unknown attributes {self.attributes & 0xFFFF:#06x}", where=batch_at(at))
        return True

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether the base timestamp is the time from which tombstones and markers may go. (KIP-534)"""
        return self.attributes & DELETE_HORIZON_BIT != 0

    def unpack(self) -> None:
        """Decompress the records into area[start:stop] and check that `count` records fit in it."""
        codec: i64 = self.attributes & CODEC_BITS
        self.area = self.data
        self.start = self.at + RECORDS_AT
        self.stop = self.end
        # Compaction leaves batches without records; their area is empty with any codec.
        if codec != 0 and self.start < self.stop:
            self.area = self._unpacked(codec)
            self.start = 0
            self.stop = len(self.area)
        if self.count * MIN_RECORD_SIZE > self.stop - self.start:
            raise CorruptBatch(
                f"{self.count} records do not fit in {self.stop - self.start} bytes", where=batch_at(self.at)
            )

    def _unpacked(self, codec: i64) -> bytes:
        if codec >= len(CODECS):
            raise UnknownCodec(f"compression codec {codec} does not exist", where=batch_at(self.at))
        if codec == LZ4:
            scratch = self._scratch
            if scratch is None:
                scratch = self._scratch = Scratch()
            area = unpack_lz4(self.data, self.start, self.stop, MAX_DECOMPRESSED, scratch)
            if area is not None:
                return area
        return decompress(CODECS[codec], self.view[self.start : self.stop])

    def control_type(self) -> i64:
        """The type of the first record of an unpacked control batch, or NO_CONTROL."""
        if self.count == 0:
            return NO_CONTROL
        return control_type(self.area[self.start : self.stop], self.at)


class Cursor(RecordCursor):
    """The records of an unpacked batch, with their offsets."""

    def __init__(self) -> None:
        super().__init__()
        self._batch = Batch()
        self._last_delta: i64 = -1
        self.offset: i64 = 0

    def begin(self, batch: Batch) -> None:
        self._batch = batch
        self._last_delta = -1
        self.start_area(batch.area, batch.start, batch.stop, batch.count)

    def next(self) -> bool:
        """Move to the next record and check it; False after the last. CorruptBatch if it does not parse."""
        batch = self._batch
        try:
            if not self.next_record():
                return False
            delta = self.offset_delta
            # Deltas must ascend: compaction keeps the order of records, so it must be that of their offsets.
            if delta <= self._last_delta or delta > batch.last_offset - batch.base_offset:
                raise BadRecord(f"offset delta {delta} is out of order or out of range")
            self.check_headers()
        except BadRecord as wrong:
            raise CorruptBatch(str(wrong), where=f"{batch_at(batch.at)}, record {self.index}") from None
        self._last_delta = delta
        self.offset = batch.base_offset + delta
        return True
