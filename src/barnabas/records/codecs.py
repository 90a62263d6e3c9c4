"""The four compression codecs of a record area, with a limit on the decompressed size.

A compressed batch of a few kilobytes can decompress to gigabytes. So declared sizes are checked first, lz4
and zstd blocks are counted (frames.py), gzip is stopped at the limit, and data that may exceed the limit is
decompressed step by step into buffers of growing size.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Final

import cramjam

from barnabas.records.errors import DecompressedTooLarge, DecompressionFailed
from barnabas.records.frames import BadFrame, Bound, lz4_bound, zstd_bound
from barnabas.records.header import ByteSource, Codec
from barnabas.records.lz4_blocks import Scratch, unpack_lz4
from barnabas.records.xerial import BadXerial, is_xerial, xerial_blocks

MAX_DECOMPRESSED: Final = 128 * 1024 * 1024

# 16 selects zlib's gzip format.
GZIP_WINDOW: Final = zlib.MAX_WBITS | 16
# Producers write one member. Each further one costs a copy of the rest, so their number is limited.
MAX_GZIP_MEMBERS: Final = 64
# A snappy element of 3 bytes decompresses to at most 64.
SNAPPY_MAX_RATIO: Final = 22
# The output buffer grows by this factor on each retry: at most a third of the work is wasted.
GROWTH: Final = 4
FIRST_ROOM: Final = 256 * 1024
# Level 1 is lz4's fast mode, which every other producer uses; cramjam's default is four times slower.
LZ4_DEFAULT_LEVEL: Final = 1
ZSTD_DEFAULT_LEVEL: Final = 3


# cramjam's message for a full output buffer; a test checks it.
NO_ROOM: Final = "failed to write whole buffer"


def compress(codec: Codec, data: bytes, level: int | None = None) -> bytes:
    """Compress a record area so that every Kafka client can read it. `level` is on the codec's own scale."""
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, GZIP_WINDOW)
            return packer.compress(data) + packer.flush()
        case Codec.SNAPPY:
            return bytes(cramjam.snappy.compress_raw(data))
        case Codec.LZ4:
            # Blocks must be independent: Kafka's Java client decompresses each on its own.
            lz4 = cramjam.lz4.Compressor(
                LZ4_DEFAULT_LEVEL if level is None else level, content_checksum=False, block_linked=False
            )
            lz4.compress(data)
            return bytes(lz4.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, ZSTD_DEFAULT_LEVEL if level is None else level))


def decompress(codec: Codec, data: ByteSource, *, limit: int = MAX_DECOMPRESSED) -> bytes:
    """Decompress a record area; DecompressedTooLarge above `limit`, DecompressionFailed for bad data."""
    view = memoryview(data)
    try:
        match codec:
            case Codec.NONE:
                _refuse_above(limit, view.nbytes, codec)
                return bytes(view)
            case Codec.GZIP:
                return _gunzip(view, limit)
            case Codec.SNAPPY:
                return _unsnappy(view, limit)
            case Codec.LZ4:
                area = unpack_lz4(bytes(view), 0, view.nbytes, limit, Scratch())
                if area is not None:
                    return area
                if _fits(lz4_bound(view), limit, codec):
                    return bytes(cramjam.lz4.decompress(view))
                return _step_by_step(lambda room: cramjam.lz4.decompress_into(view, room), limit, codec)
            case Codec.ZSTD:
                if _fits(zstd_bound(view), limit, codec):
                    return bytes(cramjam.zstd.decompress(view))
                return _step_by_step(lambda room: cramjam.zstd.decompress_into(view, room), limit, codec)
    except (cramjam.DecompressionError, zlib.error, BadFrame, BadXerial) as wrong:
        raise DecompressionFailed(str(wrong), where=_area(codec)) from None


def _gunzip(view: memoryview, limit: int) -> bytes:
    members = []
    rest: ByteSource = view
    room = limit
    for _ in range(MAX_GZIP_MEMBERS):
        member = zlib.decompressobj(GZIP_WINDOW)
        # One byte more than the room left, to tell a stream that fits exactly from a longer one; and never 0,
        # which zlib takes for "no limit".
        content = member.decompress(rest, room + 1)
        if len(content) > room:
            raise _too_large(limit, codec=Codec.GZIP)
        if not member.eof:
            raise DecompressionFailed("compressed data is truncated", where=_area(Codec.GZIP))
        members.append(content)
        room -= len(content)
        rest = member.unused_data
        if not rest:
            return members[0] if len(members) == 1 else b"".join(members)
    raise DecompressionFailed(f"data has more than {MAX_GZIP_MEMBERS} gzip members", where=_area(Codec.GZIP))


def _unsnappy(view: memoryview, limit: int) -> bytes:
    # Check the sum of the declared sizes first, because it decides how much memory is allocated.
    total = 0
    for block in _snappy_blocks(view):
        size = cramjam.snappy.decompress_raw_len(block)
        if size > SNAPPY_MAX_RATIO * len(block):
            raise DecompressionFailed(
                f"a block of {len(block)} bytes declares {size} decompressed bytes", where=_area(Codec.SNAPPY)
            )
        total += size
        _refuse_above(limit, total, Codec.SNAPPY)
    out = bytearray(total)
    room = memoryview(out)
    at = 0
    for block in _snappy_blocks(view):
        size = cramjam.snappy.decompress_raw_len(block)
        at += cramjam.snappy.decompress_raw_into(block, room[at : at + size])
    return bytes(out)


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    return xerial_blocks(view) if is_xerial(view) else iter((view,))


def _fits(bound: Bound, limit: int, codec: Codec) -> bool:
    _refuse_above(limit, bound.declared, codec)
    return bound.most <= limit


def _step_by_step(decompress_into: Callable[[bytearray], int], limit: int, codec: Codec) -> bytes:
    """Decompress data that may exceed the limit into buffers of growing size."""
    room = min(FIRST_ROOM, limit)
    while True:
        out = bytearray(room)
        try:
            size = decompress_into(out)
        except cramjam.DecompressionError as wrong:
            if str(wrong) != NO_ROOM:
                raise
            if room == limit:
                raise _too_large(limit, codec) from None
            room = min(room * GROWTH, limit)
        else:
            del out[size:]
            return bytes(out)


def _refuse_above(limit: int, size: int, codec: Codec) -> None:
    if size > limit:
        raise _too_large(limit, codec)


def _too_large(limit: int, codec: Codec) -> DecompressedTooLarge:
    return DecompressedTooLarge(f"decompressed size exceeds the limit of {limit} bytes", where=_area(codec))


def _area(codec: Codec) -> str:
    return f"{codec.name.lower()} record area"
