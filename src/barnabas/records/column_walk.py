"""Find the records of fetched batches (compiled): the first of two passes over fetched bytes.

This pass reads only batch headers. It checks them, decompresses record areas, and skips control batches,
batches below the start offset, and batches of aborted transactions. The result is spans of records for
column_scan.py, and an upper bound of their number, so that the second pass allocates memory once. Of the
records only the keys of control records are read. The second pass can check the CRCs of plain batches
(`leaves_plain`), because it reads the same bytes while they are in the CPU cache.
"""

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i32_le, read_i64_be
from librt.vecs import append, vec
from mypy_extensions import i64

from barnabas.base.crc32c import crc32c
from barnabas.records.area import MIN_RECORD_SIZE
from barnabas.records.buffers import fresh_bytes
from barnabas.records.codecs import MAX_DECOMPRESSED, decompress
from barnabas.records.decode import BAD, read_varint
from barnabas.records.errors import (
    CorruptBatch,
    DecompressedTooLarge,
    UnknownCodec,
    UnsupportedMagic,
    batch_at,
)
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BATCH_LENGTH_AT,
    CODEC_BITS,
    CODECS,
    CONTROL_BIT,
    COUNT_AT,
    CRC_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LENGTH_EXCLUDES,
    MAGIC,
    MAGIC_AT,
    MIN_BATCH_LENGTH,
    NOT_PLAIN_BITS,
    PRODUCER_ID_AT,
    RECORDS_AT,
    TRANSACTIONAL_BIT,
)
from barnabas.records.lz4_blocks import BLOCK_MAX, Scratch, only_block, unpack_block, unpack_lz4

# Calling an imported function costs a look-up each time, calling a Final does not.
crc_of: Final = crc32c

# Below this many bytes a copy is cheaper than a view.
SHORT_BATCH: Final = 2048

# The maximum for which base offset plus any delta fits in an i64.
MAX_BASE_OFFSET: Final = 0x7FFFFFFFFFFFFFFF - 0x80000000
ABORT_MARKER: Final = 0

LZ4: Final = 3

# A span of records takes this many words: the source of its records, their start and end in it, and source
# and position of the batch's header in one word.
SPAN_WORDS: Final = 4
SPAN_SOURCE: Final = 0
SPAN_START: Final = 1
SPAN_END: Final = 2
SPAN_HEADER: Final = 3
HEADER_SOURCE_SHIFT: Final = 40
HEADER_AT_BITS: Final = 0xFFFFFFFFFF

# Decompressed areas below this size share one source: an Arrow buffer in four columns costs as much as
# copying this many bytes (240 ns), and a topic of one-record batches would need thousands.
SMALL_AREA: Final = 16 * 1024
# Such a source is sized for the rest of the fetch, within these bounds.
ARENA_MAX: Final = 1024 * 1024
ARENA_GROWTH: Final = 8


class Walk:
    """The spans found so far, their bytes, and the state of a read_committed reader."""

    def __init__(
        self,
        *,
        from_offset: i64,
        skip_control: bool,
        check_crc: bool,
        limit: i64,
        aborted: list[tuple[int, int]],
        leaves_plain: bool = False,
    ) -> None:
        self.from_offset: i64 = from_offset
        self.skip_control = skip_control
        self.check_crc = check_crc
        # Whether scan() checks the CRC of plain batches.
        self.leaves_plain = check_crc and leaves_plain
        # The remaining limit of decompressed bytes.
        self.left: i64 = limit
        # (first offset, producer id), the earliest last so that it can be popped.
        self.aborted = sorted(aborted, reverse=True)
        self.aborting: set[int] = set()
        self.sources: list[bytes] = []
        # The used size of each source: the rest of an arena is uninitialized memory.
        self.ends: list[int] = []
        self.scratch: Scratch | None = None
        self.arena: memoryview | None = None
        self.arena_source: i64 = 0
        self.arena_at: i64 = 0
        self.arena_left: i64 = 0
        self.spans = vec[i64]()
        self.rows: i64 = 0
        self.next_offset: i64 = -1

    def feed(self, data: bytes, start: i64, end: i64, partial_tail: bool) -> i64:
        """Walk the batches in data[start:end]; return the position of the first incomplete one."""
        source: i64 = len(self.sources)
        self.sources.append(data)
        self.ends.append(len(data))
        view = memoryview(data)
        if len(self.spans) == 0 and end - start > LENGTH_EXCLUDES:
            self.make_room(data, start, end)
        at: i64 = start
        while at < end:
            size: i64 = batch_size(data, at, end)
            if size == 0:
                if not partial_tail:
                    raise CorruptBatch(f"batch is truncated after {end - at} bytes", where=batch_at(at))
                break
            self.take_batch(data, view, source, at, at + size)
            at += size
        return at

    def make_room(self, data: bytes, start: i64, end: i64) -> None:
        """Reserve spans for the number of batches that the first one's size suggests, to avoid copies.

        No batch is shorter than its header, so this takes little more than half of the fetch's size.
        """
        size: i64 = max(batch_size(data, start, end), HEADER_SIZE)
        self.spans = vec[i64](capacity=SPAN_WORDS * ((end - start) // size + 1))

    def take_batch(self, data: bytes, view: memoryview, source: i64, at: i64, end: i64) -> None:
        """Check the batch in data[at:end], and add its span if its records are wanted."""
        attributes: i64 = i64(read_i16_be(data, at + ATTRIBUTES_AT))
        is_later = self.leaves_plain and attributes & NOT_PLAIN_BITS == 0
        if self.check_crc and not is_later:
            check_crc(data, view, at, end)
        base_offset: i64 = read_i64_be(data, at)
        last_delta: i64 = i64(read_i32_be(data, at + LAST_OFFSET_DELTA_AT))
        count: i64 = i64(read_i32_be(data, at + COUNT_AT))
        if base_offset < 0 or base_offset > MAX_BASE_OFFSET or last_delta < 0 or count < 0:
            if is_later:
                check_crc(data, view, at, end)
            raise CorruptBatch(
                f"base offset {base_offset}, last offset delta {last_delta} or count {count} is out of range",
                where=batch_at(at),
            )
        last_offset: i64 = base_offset + last_delta
        self.next_offset = last_offset + 1
        if self.is_left_out(data, view, at, end, attributes, last_offset):
            return
        start: i64 = at + RECORDS_AT
        # Compaction leaves batches without records; their area is empty with any codec.
        if last_offset < self.from_offset or (count == 0 and start == end):
            if is_later:
                check_crc(data, view, at, end)
            return
        area_source: i64 = source
        if attributes & CODEC_BITS != 0:
            area_source, start, end = self.unpack(data, view, at, end, attributes & CODEC_BITS)
        if count * MIN_RECORD_SIZE > end - start:
            if is_later:
                check_crc(data, view, at, end)
            raise CorruptBatch(f"{count} records do not fit in {end - start} bytes", where=batch_at(at))
        self.rows += count
        spans = self.spans
        spans = append(spans, area_source)
        spans = append(spans, start)
        spans = append(spans, end)
        self.spans = append(spans, (source << HEADER_SOURCE_SHIFT) | at)

    def is_left_out(
        self, data: bytes, view: memoryview, at: i64, end: i64, attributes: i64, last_offset: i64
    ) -> bool:
        """Whether the batch is skipped regardless of its offsets.

        By the rules of a read_committed consumer, a producer's batches are skipped from the first offset of
        its aborted transaction up to the abort marker.
        """
        while len(self.aborted) > 0 and self.aborted[-1][0] <= last_offset:
            self.aborting.add(self.aborted.pop()[1])
        if attributes & CONTROL_BIT != 0:
            if len(self.aborting) > 0:
                producer: i64 = read_i64_be(data, at + PRODUCER_ID_AT)
                if producer in self.aborting and self.is_abort_marker(data, view, at, end, attributes):
                    self.aborting.remove(producer)
            return self.skip_control
        if len(self.aborting) == 0 or attributes & TRANSACTIONAL_BIT == 0:
            return False
        return read_i64_be(data, at + PRODUCER_ID_AT) in self.aborting

    def is_abort_marker(self, data: bytes, view: memoryview, at: i64, end: i64, attributes: i64) -> bool:
        """Whether the first record of a control batch is an abort marker."""
        codec: i64 = attributes & CODEC_BITS
        if codec != 0:
            return control_type(self.unpacked(data, view, at, end, codec), at) == ABORT_MARKER
        return control_type(data[at + RECORDS_AT : end], at) == ABORT_MARKER

    def unpack(self, data: bytes, view: memoryview, at: i64, end: i64, codec: i64) -> tuple[i64, i64, i64]:
        """Decompress a batch's record area; return its source, and its start and end there."""
        if codec == LZ4 and self.left >= BLOCK_MAX:
            block: i64 = only_block(data, at + RECORDS_AT, end)
            if block > 0:
                # Decompress into the arena, without a copy.
                packed: i64 = i64(read_i32_le(data, block - 4))
                room = self.arena_room(BLOCK_MAX, len(data) - at)
                found: i64 = unpack_block(data, block, packed, room)
                self.left -= found
                return self.keep(found)
        area = self.unpacked(data, view, at, end, codec)
        size: i64 = len(area)
        if size >= SMALL_AREA:
            self.sources.append(area)
            self.ends.append(size)
            return len(self.sources) - 1, 0, size
        self.arena_room(size, len(data) - at)[:size] = area
        return self.keep(size)

    def arena_room(self, size: i64, rest: i64) -> memoryview:
        """Room for `size` bytes in the arena of small areas, or in a new arena if it is full.

        `rest` is the size of the rest of the fetch.
        """
        arena = self.arena
        if arena is None or self.arena_left < size:
            whole: i64 = BLOCK_MAX + min(ARENA_GROWTH * rest, ARENA_MAX)
            fresh, arena = fresh_bytes(whole)
            self.arena = arena
            self.arena_at = 0
            self.arena_left = whole
            self.arena_source = len(self.sources)
            self.sources.append(fresh)
            self.ends.append(0)
        return arena[self.arena_at : self.arena_at + size]

    def keep(self, size: i64) -> tuple[i64, i64, i64]:
        """Claim `size` bytes of arena_room(); return source, start and end."""
        start: i64 = self.arena_at
        self.arena_at = start + size
        self.ends[self.arena_source] = start + size
        self.arena_left -= size
        return self.arena_source, start, start + size

    def unpacked(self, data: bytes, view: memoryview, at: i64, end: i64, codec: i64) -> bytes:
        if codec >= len(CODECS):
            raise UnknownCodec(f"compression codec {codec} does not exist", where=batch_at(at))
        if self.left <= 0:
            raise DecompressedTooLarge("the decompression limit of this read is used up", where=batch_at(at))
        room: i64 = min(self.left, MAX_DECOMPRESSED)
        area: bytes | None = None
        if codec == LZ4:
            scratch = self.scratch
            if scratch is None:
                scratch = self.scratch = Scratch()
            area = unpack_lz4(data, at + RECORDS_AT, end, room, scratch)
        if area is None:
            area = decompress(CODECS[codec], view[at + RECORDS_AT : end], limit=room)
        self.left -= len(area)
        return area

    def finish(self) -> None:
        """Release the arena, which is complete now. Call this once, after the last feed()."""
        self.arena = None


def check_crc(data: bytes, view: memoryview, at: i64, end: i64) -> None:
    """Raise CorruptBatch unless the stored CRC matches the bytes from the attributes on."""
    stored: i64 = i64(read_i32_be(data, at + CRC_AT)) & 0xFFFFFFFF
    start: i64 = at + ATTRIBUTES_AT
    # Copying a short batch costs less than making a view of it: 136 ns instead of 206 for the whole
    # walk over a batch of 170 bytes, 249 instead of 263 at 1 kB, and no gain from 3 kB on.
    covered = data[start:end] if end - start < SHORT_BATCH else view[start:end]
    found: i64 = crc_of(covered)
    if found != stored:
        raise CorruptBatch(f"CRC is {found:#010x}, header says {stored:#010x}", where=batch_at(at))


def batch_size(data: bytes, at: i64, end: i64) -> i64:
    """The size of the batch at `at`, or 0 if it does not end by `end`."""
    have: i64 = end - at
    if have > MAGIC_AT and data[at + MAGIC_AT] != MAGIC:
        raise UnsupportedMagic(f"magic {data[at + MAGIC_AT]} is not {MAGIC}", where=batch_at(at))
    if have < LENGTH_EXCLUDES:
        return 0
    length: i64 = i64(read_i32_be(data, at + BATCH_LENGTH_AT))
    if length < MIN_BATCH_LENGTH:
        raise CorruptBatch(
            f"batch length {length} is below the minimum of {MIN_BATCH_LENGTH}", where=batch_at(at)
        )
    size: i64 = length + LENGTH_EXCLUDES
    return size if size <= have else 0


def control_type(area: bytes, batch: i64) -> i64:
    """The type in the key of the first record of a control batch, whose records are `area`."""
    end: i64 = len(area)
    _, at = read_varint(area, 0, end)
    if at != BAD:
        _, at = read_varint(area, at + 1, end)
    if at != BAD:
        _, at = read_varint(area, at, end)
    key_size: i64 = 0
    if at != BAD:
        key_size, at = read_varint(area, at, end)
    # Version and type, two bytes each; later versions may append fields.
    if at == BAD or key_size < 4 or end - at < 4:
        raise CorruptBatch("the control record has no type", where=batch_at(batch))
    return i64(read_i16_be(area, at + 2))
