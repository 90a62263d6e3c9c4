import random

import cramjam
import lz4.frame
import pytest
import zstandard

from barnabas.records.frames import BadFrame, lz4_bound, zstd_bound

CONTENT = b"".join(b"%d messages " % i for i in range(30_000))


def lz4_frame(**options: object) -> bytes:
    return bytes(lz4.frame.compress(CONTENT, **options))


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("checksums", [True, False])
def test_the_lz4_bound_is_never_less_than_the_content(block_size: int, linked: bool, checksums: bool) -> None:
    frame = lz4_frame(
        block_size=block_size,
        block_linked=linked,
        block_checksum=checksums,
        content_checksum=checksums,
        store_size=checksums,
    )

    bound = lz4_bound(memoryview(frame))

    assert bound.declared == (len(CONTENT) if checksums else 0)
    assert len(CONTENT) <= bound.most <= len(CONTENT) + (4 << 20)


def test_the_lz4_bound_of_stored_blocks_is_exact() -> None:
    noise = random.Random(3).randbytes(200_000)
    frame = bytes(lz4.frame.compress(noise, block_size=4))
    assert len(frame) > len(noise)

    assert lz4_bound(memoryview(frame)).most == len(noise)


@pytest.mark.parametrize("options", [{}, {"write_content_size": False}, {"write_checksum": True}])
def test_the_zstd_bound_is_never_less_than_the_content(options: dict[str, bool]) -> None:
    frame = zstandard.ZstdCompressor(**options).compress(CONTENT)

    bound = zstd_bound(memoryview(frame))

    assert bound.declared == (0 if options == {"write_content_size": False} else len(CONTENT))
    assert len(CONTENT) <= bound.most <= len(CONTENT) + 128 * 1024


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 65_791, 65_792, 1 << 20])
def test_the_zstd_content_size_is_read_in_each_of_its_widths(size: int) -> None:
    assert zstd_bound(memoryview(zstandard.compress(bytes(size)))).declared == size


def test_frames_add_up_and_skippable_ones_count_nothing() -> None:
    one = zstandard.compress(CONTENT)
    skippable = bytes.fromhex("502a4d18 03000000 616263")

    alone, three = zstd_bound(memoryview(one)), zstd_bound(memoryview(one + skippable + one))

    assert three == (2 * alone.most, 2 * alone.declared)


@pytest.mark.parametrize("cut", [1, 4, 8, 100])
def test_a_truncated_frame_is_bad(cut: int) -> None:
    with pytest.raises(BadFrame, match=r"is truncated|exceeds the data"):
        lz4_bound(memoryview(lz4_frame()[:-cut]))
    with pytest.raises(BadFrame, match=r"is truncated|exceeds the data"):
        zstd_bound(memoryview(zstandard.compress(CONTENT)[:-cut]))


def test_bytes_after_the_last_frame_are_bad() -> None:
    with pytest.raises(BadFrame, match="no frame starts at byte"):
        lz4_bound(memoryview(lz4_frame() + b"rest"))
    with pytest.raises(BadFrame, match="no frame starts at byte"):
        zstd_bound(memoryview(bytes(cramjam.zstd.compress(CONTENT)) + b"rest"))


def test_an_lz4_frame_that_needs_a_dictionary_is_bad() -> None:
    frame = bytearray(lz4_frame())
    frame[4] |= 1

    with pytest.raises(BadFrame, match="dictionary"):
        lz4_bound(memoryview(frame))


def test_a_reserved_zstd_block_is_bad() -> None:
    frame = bytes.fromhex("28b52ffd 20 00 07 00 00")

    with pytest.raises(BadFrame, match="reserved block"):
        zstd_bound(memoryview(frame))
