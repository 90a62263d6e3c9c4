"""An upper bound for the decompressed size of an lz4 or zstd stream, from its block headers.

Both formats split the content into blocks of bounded size with short uncompressed headers. Walking these
gives an upper bound in a few steps per 64-128 kB of content. A decompressor that grows its output without a
limit is used only for streams with a small bound. Producers rarely write the content size, and it can be
wrong, so a declared size is used only to reject a stream early.
"""

from collections.abc import Callable
from struct import Struct, error
from typing import Final, NamedTuple

LZ4_MAGIC: Final = 0x184D2204
ZSTD_MAGIC: Final = 0xFD2FB528
# Sixteen magics for both formats: a length, then that many bytes to skip.
SKIPPABLE_MAGIC: Final = 0x184D2A50
SKIPPABLE_MASK: Final = 0xFFFFFFF0

# A byte of an lz4 block decompresses to at most 255 bytes.
LZ4_MAX_RATIO: Final = 255
LZ4_STORED_BIT: Final = 0x80000000
ZSTD_MAX_BLOCK: Final = 128 * 1024

_U32: Final = Struct("<I")
_U64: Final = Struct("<Q")


class BadFrame(ValueError):
    """The stream violates its format; the message has the position."""


class Bound(NamedTuple):
    """The maximum decompressed size of a stream, and the size that it declares (0: none)."""

    most: int
    declared: int


class _Frame(NamedTuple):
    end: int
    most: int
    declared: int


def lz4_bound(data: memoryview) -> Bound:
    """Walk the blocks of every lz4 frame in `data`."""
    return _walk(data, LZ4_MAGIC, _lz4_frame)


def zstd_bound(data: memoryview) -> Bound:
    """Walk the blocks of every zstd frame in `data`."""
    return _walk(data, ZSTD_MAGIC, _zstd_frame)


def _walk(data: memoryview, magic: int, read_frame: Callable[[memoryview, int], _Frame]) -> Bound:
    at = most = declared = 0
    try:
        while at < len(data):
            found: int = _U32.unpack_from(data, at)[0]
            if found == magic:
                frame = read_frame(data, at + 4)
                most += frame.most
                declared += frame.declared
                at = frame.end
            elif found & SKIPPABLE_MASK == SKIPPABLE_MAGIC:
                at += 8 + _U32.unpack_from(data, at + 4)[0]
            else:
                raise BadFrame(f"no frame starts at byte {at} of {len(data)}")
    except (error, IndexError):
        raise BadFrame(f"frame at byte {at} of {len(data)} is truncated") from None
    if at > len(data):
        raise BadFrame(f"last frame exceeds the data by {at - len(data)} bytes")
    return Bound(most, declared)


def _lz4_frame(data: memoryview, at: int) -> _Frame:
    flags = data[at]
    block_max = 1 << (8 + 2 * (data[at + 1] >> 4 & 7))
    at += 2
    declared = 0
    if flags & 0x08:
        declared = _U64.unpack_from(data, at)[0]
        at += 8
    if flags & 0x01:
        raise BadFrame("frame needs a dictionary, which is not supported")
    at += 1  # the header's checksum, which the decompressor verifies
    block_checksum = 4 if flags & 0x10 else 0
    most = 0
    while size := _U32.unpack_from(data, at)[0]:
        if size & LZ4_STORED_BIT:
            size -= LZ4_STORED_BIT
            most += size
        else:
            most += min(size * LZ4_MAX_RATIO, block_max)
        at += 4 + size + block_checksum
    content_checksum = 4 if flags & 0x04 else 0
    return _Frame(at + 4 + content_checksum, most, declared)


def _zstd_frame(data: memoryview, at: int) -> _Frame:
    descriptor = data[at]
    single_segment = descriptor >> 5 & 1
    dictionary_size = (0, 1, 2, 4)[descriptor & 3]
    size_size = (single_segment, 2, 4, 8)[descriptor >> 6]
    at += 1 + (1 - single_segment) + dictionary_size
    declared = int.from_bytes(data[at : at + size_size], "little")
    if size_size == 2:
        declared += 256
    at += size_size
    most = last = 0
    while not last:
        block = data[at] | data[at + 1] << 8 | data[at + 2] << 16
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        if kind == 3:
            raise BadFrame(f"reserved block type at byte {at}")
        # Raw and RLE blocks declare their content's size; a compressed one has at most ZSTD_MAX_BLOCK.
        most += ZSTD_MAX_BLOCK if kind == 2 else size
        at += 3 + (1 if kind == 1 else size)
    return _Frame(at + (4 if descriptor & 4 else 0), most, declared)
