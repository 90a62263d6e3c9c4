"""Write the headers and CRCs of batches made from columns (compiled).

A header has two parts. The CRC is in the first ATTRIBUTES_AT bytes and does not cover them, so they are
written last and separately. The rest is in the area, before the records: open_batch() writes it as if the
first record were the only one, and end_batch() corrects it after the last one.
"""

from collections.abc import Callable
from typing import Final, TypeAlias, final

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from librt.vecs import append, vec
from mypy_extensions import i16, i32, i64, u8

from barnabas.base.crc32c import crc32c
from barnabas.records.codecs import compress
from barnabas.records.column_cells import Area
from barnabas.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    COUNT_AT,
    COVERED_SIZE,
    INT32_MAX,
    LAST_OFFSET_DELTA_AT,
    MAGIC,
    MAX_TIMESTAMP_AT,
    MIN_BATCH_LENGTH,
    Codec,
)

# Up to this size copying the batch once more is cheaper than joining its parts.
SMALL: Final = 2048
# Batches are gathered in groups of this size: a call costs about 10 us, and the result should stay in the
# CPU cache.
GATHER_BYTES: Final = 1024 * 1024

# Calling an imported function costs a look-up each time, calling a Final does not.
crc_of: Final = crc32c

# From the text and views of an area to the gathered bytes.
Gather: TypeAlias = Callable[[bytes, bytes], memoryview]


@final
class Stamp:
    """Header fields of the batches of one call; base offset and sequence advance from batch to batch."""

    def __init__(
        self,
        *,
        codec: Codec,
        level: int | None,
        attributes: i64,
        base_offset: i64,
        leader_epoch: i64,
        producer_id: i64,
        producer_epoch: i64,
        base_sequence: i64,
    ) -> None:
        self.codec = codec
        self.level = level
        self.attributes: i64 = attributes
        self.base_offset: i64 = base_offset
        self.leader_epoch: i64 = leader_epoch
        self.producer_id: i64 = producer_id
        self.producer_epoch: i64 = producer_epoch
        self.base_sequence: i64 = base_sequence

    def advance_sequence(self, records: i64) -> None:
        """Advance to the next batch. After sequence 2**31 - 1 comes 0."""
        if self.base_sequence >= 0:
            self.base_sequence = (self.base_sequence + records) & INT32_MAX


@final
class Sealer:
    """Completes the batches in an area and collects them in `sealed`."""

    def __init__(self, area: Area, stamp: Stamp, gather: Gather) -> None:
        self.area = area
        self.stamp = stamp
        self.gather = gather
        self.sealed: list[bytes] = []
        self.front = BytesWriter()
        # Where the open batch would start in the text if that had all of its header.
        self.start: i64 = 0
        # Batches that are not gathered yet: bytes and records of each, and the bytes of all.
        self.sizes = vec[i64]()
        self.counts = vec[i64]()
        self.waiting: i64 = 0

    def open_batch(self, time: i64) -> None:
        """Begin a batch whose first record has the timestamp `time`."""
        out = self.area.out
        stamp = self.stamp
        self.start = len(out) - ATTRIBUTES_AT
        write_i16_be(out, i16(stamp.attributes))
        write_i32_be(out, 0)
        write_i64_be(out, time)
        write_i64_be(out, time)
        write_i64_be(out, stamp.producer_id)
        write_i16_be(out, i16(stamp.producer_epoch))
        write_i32_be(out, i32(stamp.base_sequence))
        write_i32_be(out, 1)

    def end_batch(self, size: i64, count: i64, max_time: i64) -> None:
        """Finish the batch, which has `count` records in `size` bytes."""
        area = self.area
        if count > 1:
            patch(area.out, self.start + LAST_OFFSET_DELTA_AT, count - 1, 4)
            patch(area.out, self.start + MAX_TIMESTAMP_AT, max_time, 8)
            patch(area.out, self.start + COUNT_AT, count, 4)
        self.stamp.advance_sequence(count)
        if not area.gathers:
            self.seal(area.out.getvalue(), count)
            area.clear()
            return
        self.sizes = append(self.sizes, COVERED_SIZE + size)
        self.counts = append(self.counts, count)
        self.waiting += COVERED_SIZE + size
        if self.waiting >= GATHER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Gather the waiting batches."""
        if self.waiting == 0:
            return
        area = self.area
        area.end_text()
        gathered = self.gather(area.out.getvalue(), area.views.getvalue())
        area.clear()
        at: i64 = 0
        batch: i64 = 0
        while batch < len(self.sizes):
            end = at + self.sizes[batch]
            self.seal(gathered[at:end], self.counts[batch])
            at = end
            batch += 1
        self.sizes = vec[i64]()
        self.counts = vec[i64]()
        self.waiting = 0

    def seal(self, covered: bytes | memoryview, count: i64) -> None:
        """Compress the records if necessary, and prepend the first part of the header."""
        stamp = self.stamp
        if stamp.attributes & CODEC_BITS != 0:
            packed = compress(stamp.codec, bytes(covered[COVERED_SIZE:]), stamp.level)
            covered = b"".join([covered[:COVERED_SIZE], packed])
        size: i64 = len(covered)
        crc: i64 = crc_of(covered)
        front = self.front
        front.truncate(0)
        write_i64_be(front, stamp.base_offset)
        write_i32_be(front, i32(MIN_BATCH_LENGTH - COVERED_SIZE + size))
        write_i32_be(front, i32(stamp.leader_epoch))
        front.append(MAGIC)
        # The writer takes signed numbers: the same bits.
        if crc >= 0x80000000:
            crc -= 0x100000000
        write_i32_be(front, i32(crc))
        if size <= SMALL and isinstance(covered, bytes):
            front.write(covered)
            self.sealed.append(front.getvalue())
        else:
            self.sealed.append(b"".join([front.getvalue(), covered]))
        stamp.base_offset += count


def patch(out: BytesWriter, at: i64, value: i64, size: i64) -> None:
    """Overwrite `size` bytes at `at` with the low bytes of `value`, big-endian."""
    while size > 0:
        size -= 1
        out[at + size] = u8(value & 0xFF)
        value >>= 8
