"""lz4 frames of every layout that producers write, compared with two other implementations of lz4."""

import random

import cramjam
import lz4.frame
import pytest

from barnabas.records.codecs import compress, decompress
from barnabas.records.errors import DecompressedTooLarge, DecompressionFailed
from barnabas.records.header import Codec
from barnabas.records.lz4_blocks import BLOCK_MAX, Scratch, only_block, unpack_lz4

pytestmark = pytest.mark.kernel

LIMIT = 10 * 1024 * 1024
SIZES = [0, 1, 100, BLOCK_MAX - 1, BLOCK_MAX, BLOCK_MAX + 1, 3 * BLOCK_MAX, 5 * BLOCK_MAX + 17]


def content(size: int, *, noisy: bool) -> bytes:
    rng = random.Random(size)
    return rng.randbytes(size) if noisy else b"".join(b"value %d " % i for i in range(size // 6 + 1))[:size]


def unpack(frame: bytes, limit: int = LIMIT) -> bytes | None:
    return unpack_lz4(b"before" + frame + b"after", 6, 6 + len(frame), limit, Scratch())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("noisy", [False, True], ids=["text", "noise"])
@pytest.mark.parametrize("block_checksum", [False, True], ids=["", "block-checksums"])
@pytest.mark.parametrize("content_checksum", [False, True], ids=["", "content-checksum"])
@pytest.mark.parametrize("store_size", [False, True], ids=["", "content-size"])
def test_independent_blocks_of_64_kb_are_unpacked_here(
    size: int, noisy: bool, block_checksum: bool, content_checksum: bool, store_size: bool
) -> None:
    data = content(size, noisy=noisy)
    frame = lz4.frame.compress(
        data,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        block_checksum=block_checksum,
        content_checksum=content_checksum,
        store_size=store_size,
    )

    assert unpack(frame) == data


@pytest.mark.parametrize("size", SIZES)
def test_our_own_frames_are_unpacked_here(size: int) -> None:
    data = content(size, noisy=False)

    assert unpack(compress(Codec.LZ4, data)) == data


def test_blocks_that_a_producer_flushed_early_are_joined() -> None:
    packer = lz4.frame.LZ4FrameCompressor(
        block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, auto_flush=True
    )
    parts = [content(size, noisy=False) for size in (70_000, 10, 66_000, 5)]

    frame = packer.begin() + b"".join(map(packer.compress, parts)) + packer.flush()

    assert unpack(frame) == b"".join(parts)


@pytest.mark.parametrize(
    "frame",
    [
        lz4.frame.compress(content(3 * BLOCK_MAX, noisy=False), block_linked=True),
        lz4.frame.compress(content(3 * BLOCK_MAX, noisy=False), block_size=lz4.frame.BLOCKSIZE_MAX256KB),
        lz4.frame.compress(b"one") + lz4.frame.compress(b"two"),
        lz4.frame.compress(b"one") + b"garbage",
        b"garbage",
        b"",
    ],
    ids=["linked", "large-blocks", "two-frames", "tail", "garbage", "empty"],
)
def test_other_frames_are_left_to_the_library(frame: bytes) -> None:
    assert unpack(frame) is None
    assert only_block(frame, 0, len(frame)) == 0


def test_a_linked_frame_of_one_block_needs_no_history_and_is_unpacked_here() -> None:
    data = content(1000, noisy=False)

    assert unpack(lz4.frame.compress(data, block_linked=True, store_size=False)) == data


def test_frames_left_to_the_library_are_decompressed() -> None:
    data = content(3 * BLOCK_MAX, noisy=False)

    assert decompress(Codec.LZ4, lz4.frame.compress(data, block_linked=True)) == data


def test_a_frame_that_might_exceed_the_limit_uses_the_counting_decoder() -> None:
    frame = compress(Codec.LZ4, bytes(5 * BLOCK_MAX))

    assert unpack(frame, limit=5 * BLOCK_MAX - 1) is None
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.LZ4, frame, limit=5 * BLOCK_MAX - 1)
    assert decompress(Codec.LZ4, frame, limit=5 * BLOCK_MAX) == bytes(5 * BLOCK_MAX)


def test_a_damaged_block_is_reported() -> None:
    frame = bytearray(compress(Codec.LZ4, content(1000, noisy=False)))
    frame[11] = 0xFF

    with pytest.raises(DecompressionFailed, match="lz4 record area: block at byte 17"):
        unpack(bytes(frame))


def test_the_library_does_not_write_past_the_room_it_is_given() -> None:
    packed = bytes(cramjam.lz4.compress_block(bytes(1000), store_size=False))
    room = bytearray(b"\xaa" * 2000)

    with pytest.raises(cramjam.DecompressionError):
        cramjam.lz4.decompress_block_into(packed, memoryview(room)[:999], BLOCK_MAX)

    assert room[999:] == b"\xaa" * 1001


def test_a_frame_without_an_end_mark_is_not_a_single_block() -> None:
    frame = bytearray(lz4.frame.compress(content(1000, noisy=False), block_linked=False, store_size=False))
    assert only_block(bytes(frame), 0, len(frame)) > 0
    frame[-4] = 1

    assert only_block(bytes(frame), 0, len(frame)) == 0
    assert unpack(bytes(frame)) is None
