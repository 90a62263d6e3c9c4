"""Decompress lz4 frames block by block (compiled).

The library's own frame reader creates a context and copies twice: 3.0 us for a batch of one small record and
258 ns for each 1 kB record of a large batch. A frame is only a few plain headers around raw blocks, so this
module reads the headers, and the library decompresses the blocks, large ones directly to their final place.
unpack_lz4() returns None for frames of a layout that producers do not write; the library handles those.

lz4's own checksums are ignored: the batch's CRC covers the compressed bytes.
"""

from typing import Final

import cramjam
from librt.strings import read_i32_le, read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64

from barnabas.records.buffers import FRESH_BYTES_MIN, fresh_bytes
from barnabas.records.errors import DecompressionFailed

MAGIC: Final = 0x184D2204
# The only block size that Kafka's clients write.
BLOCK_MAX: Final = 65536
BLOCK_MAX_ID: Final = 4
# A byte of a block decompresses to at most 255 bytes.
MAX_RATIO: Final = 255

VERSION_BITS: Final = 0xC0
VERSION_1: Final = 0x40
INDEPENDENT: Final = 0x20
BLOCK_CHECKSUM: Final = 0x10
CONTENT_SIZE: Final = 0x08
CONTENT_CHECKSUM: Final = 0x04
RESERVED_OR_DICTIONARY: Final = 0x03

STORED: Final = 0x80000000

# Cached, because the look-up would take a tenth of the time of a batch of one record.
decompress_block_into: Final = cramjam.lz4.decompress_block_into

# Below this many bytes a copy is cheaper than a view.
SHORT_BLOCK: Final = 2048


class Scratch:
    """A buffer for one block, for reuse by one caller. Threads must not share it."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(BLOCK_MAX))


class Blocks:
    """Starts and sizes of a frame's blocks, and an upper bound of the decompressed size."""

    def __init__(self) -> None:
        self.starts = vec[i64]()
        self.sizes = vec[i64]()
        self.most: i64 = 0


def unpack_lz4(data: bytes, start: i64, end: i64, limit: i64, scratch: Scratch) -> bytes | None:
    """Decompress the one frame that fills data[start:end]; None if its layout is unusual.

    Also None if the frame might exceed `limit` bytes; the caller then finds out step by step.
    """
    only: i64 = only_block(data, start, end) if limit >= BLOCK_MAX else 0
    if only > 0:
        size: i64 = i64(read_i32_le(data, only - 4))
        return bytes(scratch.view[: unpack_block(data, only, size, scratch.view)])
    blocks = find_blocks(data, start, end)
    if blocks is None or blocks.most > limit:
        return None
    count: i64 = len(blocks.starts)
    if count == 0:
        return b""
    # Decompress the last block first, because only its size is unknown.
    last: i64 = unpack_block(data, blocks.starts[count - 1], blocks.sizes[count - 1], scratch.view)
    if count == 1:
        return bytes(scratch.view[:last])
    return join_blocks(data, blocks, scratch.view[:last])


def only_block(data: bytes, start: i64, end: i64) -> i64:
    """The start of the block of a frame with one compressed block, as in small batches; otherwise 0."""
    if end - start < 15 or read_i32_le(data, start) != MAGIC or data[start + 5] != BLOCK_MAX_ID << 4:
        return 0
    flags: i64 = data[start + 4]
    if flags & ~(INDEPENDENT | BLOCK_CHECKSUM | CONTENT_CHECKSUM) != VERSION_1:
        return 0
    block: i64 = start + 11
    size: i64 = i64(read_i32_le(data, start + 7))
    # A stored block has the sign bit set, so the range check below rejects it.
    mark: i64 = block + size + (4 if flags & BLOCK_CHECKSUM != 0 else 0)
    after: i64 = 4 if flags & CONTENT_CHECKSUM != 0 else 0
    if size < 1 or size > BLOCK_MAX or mark + 4 + after != end or read_i32_le(data, mark) != 0:
        return 0
    return block


def join_blocks(data: bytes, blocks: Blocks, last: memoryview) -> bytes:
    """Decompress all blocks except the last into place, and append the last."""
    before: i64 = len(blocks.starts) - 1
    size: i64 = before * BLOCK_MAX + len(last)
    assert size >= FRESH_BYTES_MIN
    area, view = fresh_bytes(size)
    at: i64 = 0
    index: i64 = 0
    while index < before:
        room = view[at : at + BLOCK_MAX]
        at += unpack_block(data, blocks.starts[index], blocks.sizes[index], room)
        index += 1
    view[at : at + len(last)] = last
    at += len(last)
    # A producer that flushes inside a frame leaves blocks that are not full.
    return area if at == size else area[:at]


def unpack_block(data: bytes, start: i64, size: i64, room: memoryview) -> i64:
    """Decompress the block at `start` with the header `size` into `room`; return the decompressed size."""
    if size >= STORED:
        size -= STORED
        room[:size] = data[start : start + size]
        return size
    packed = data[start : start + size] if size < SHORT_BLOCK else memoryview(data)[start : start + size]
    try:
        found: i64 = decompress_block_into(packed, room, BLOCK_MAX)
    except cramjam.DecompressionError as wrong:
        raise DecompressionFailed(f"block at byte {start}: {wrong}", where="lz4 record area") from None
    return found


def find_blocks(data: bytes, start: i64, end: i64) -> Blocks | None:
    """Walk the block headers of one frame of version 1; None unless it ends at `end`."""
    if end - start < 11 or read_i32_le(data, start) != MAGIC:
        return None
    flags: i64 = data[start + 4]
    if flags & VERSION_BITS != VERSION_1 or flags & RESERVED_OR_DICTIONARY != 0:
        return None
    if data[start + 5] != BLOCK_MAX_ID << 4:
        return None
    at: i64 = start + 7
    if flags & CONTENT_SIZE != 0:
        at += 8
    blocks = Blocks()
    after: i64 = 4 if flags & BLOCK_CHECKSUM != 0 else 0
    while end - at >= 4:
        word: i64 = i64(read_i32_le(data, at)) & 0xFFFFFFFF
        at += 4
        if word == 0:
            at += 4 if flags & CONTENT_CHECKSUM != 0 else 0
            usual = flags & INDEPENDENT != 0 or len(blocks.starts) <= 1
            return blocks if usual and at == end and is_declared(data, start, flags, blocks.most) else None
        size: i64 = word & 0x7FFFFFFF
        if size > BLOCK_MAX or size > end - at:
            return None
        blocks.starts = append(blocks.starts, at)
        blocks.sizes = append(blocks.sizes, word)
        blocks.most += size if word >= STORED else min(size * MAX_RATIO, BLOCK_MAX)
        at += size + after
    return None


def is_declared(data: bytes, start: i64, flags: i64, most: i64) -> bool:
    """Whether the declared content size, if any, is possible."""
    if flags & CONTENT_SIZE == 0:
        return True
    declared: i64 = read_i64_le(data, start + 6)
    return 0 <= declared <= most
