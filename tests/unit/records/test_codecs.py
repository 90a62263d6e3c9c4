import gzip
import random
import zlib

import cramjam
import lz4.frame
import pytest
import snappy
import zstandard

from barnabas.records import codecs
from barnabas.records.codecs import MAX_GZIP_MEMBERS, NO_ROOM, compress, decompress
from barnabas.records.errors import DecompressedTooLarge, DecompressionFailed
from barnabas.records.header import Codec

PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
WORDS = random.Random(7)
CONTENT = b" ".join(WORDS.choice((b"order", b"paid", b"shipped", b"%d" % i)) for i in range(60_000))
NOISE = WORDS.randbytes(100_000)
BOMB = bytes(8 << 20)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("content", [b"", b"x", CONTENT, NOISE], ids=["empty", "byte", "text", "noise"])
@pytest.mark.parametrize("kind", [bytes, memoryview, bytearray])
def test_compressed_data_is_decompressed(codec: Codec, content: bytes, kind: type) -> None:
    assert decompress(codec, kind(compress(codec, content))) == content


@pytest.mark.parametrize(
    ("codec", "levels"), [(Codec.GZIP, (1, 9)), (Codec.LZ4, (1, 12)), (Codec.ZSTD, (-5, 1, 19))]
)
def test_a_higher_level_packs_tighter(codec: Codec, levels: tuple[int, ...]) -> None:
    sizes = [len(compress(codec, CONTENT, level)) for level in levels]

    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)


def test_other_libraries_decompress_our_data() -> None:
    assert gzip.decompress(compress(Codec.GZIP, CONTENT)) == CONTENT
    assert snappy.uncompress(compress(Codec.SNAPPY, CONTENT)) == CONTENT
    assert lz4.frame.decompress(compress(Codec.LZ4, CONTENT)) == CONTENT
    assert zstandard.decompress(compress(Codec.ZSTD, CONTENT)) == CONTENT


def test_lz4_blocks_are_independent_because_javas_reader_needs_it() -> None:
    assert compress(Codec.LZ4, CONTENT)[4] & 0x20


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("store_size", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("block_size", [4, 7])
def test_every_kind_of_lz4_frame_is_read(
    linked: bool, store_size: bool, checksum: bool, block_size: int
) -> None:
    frame = lz4.frame.compress(
        CONTENT,
        block_linked=linked,
        store_size=store_size,
        block_checksum=checksum,
        content_checksum=checksum,
        block_size=block_size,
    )

    assert decompress(Codec.LZ4, frame) == CONTENT


def test_zstd_without_a_content_size_is_read() -> None:
    stream = zstandard.ZstdCompressor().compressobj()
    frame = stream.compress(CONTENT) + stream.flush()

    assert decompress(Codec.ZSTD, frame) == CONTENT


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_streams_one_after_the_other_are_one_content(codec: Codec) -> None:
    twice = compress(codec, CONTENT) + compress(codec, b"and more")

    assert decompress(codec, twice) == CONTENT + b"and more"
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, twice, limit=len(CONTENT) + 7)


@pytest.mark.parametrize("codec", Codec)
def test_the_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, CONTENT)

    assert decompress(codec, packed, limit=len(CONTENT)) == CONTENT
    with pytest.raises(DecompressedTooLarge, match=f"{len(CONTENT) - 1} bytes"):
        decompress(codec, packed, limit=len(CONTENT) - 1)


@pytest.mark.parametrize("codec", Codec)
def test_a_limit_of_zero_still_lets_nothing_through(codec: Codec) -> None:
    assert decompress(codec, compress(codec, b""), limit=0) == b""
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, compress(codec, b"x"), limit=0)


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_stops_at_the_limit(codec: Codec) -> None:
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, compress(codec, BOMB), limit=1 << 20)


def test_a_bomb_that_declares_nothing_stops_at_the_limit() -> None:
    stream = zstandard.ZstdCompressor().compressobj()
    undeclared = stream.compress(BOMB) + stream.flush()
    frame = lz4.frame.compress(BOMB, store_size=False)

    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.ZSTD, undeclared, limit=1 << 20)
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.LZ4, frame, limit=1 << 20)


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
def test_data_that_might_exceed_the_limit_is_decompressed_in_steps(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = compress(codec, CONTENT)
    monkeypatch.setattr(codecs, "FIRST_ROOM", 1000)

    # The bound counts whole blocks, so it exceeds the size of the content.
    assert decompress(codec, packed, limit=len(CONTENT) + 1) == CONTENT


def test_cramjams_message_for_a_full_buffer_is_unchanged() -> None:
    for codec, library in ((Codec.LZ4, cramjam.lz4), (Codec.ZSTD, cramjam.zstd)):
        with pytest.raises(cramjam.DecompressionError) as told:
            library.decompress_into(compress(codec, CONTENT), bytearray(10))
        assert str(told.value) == NO_ROOM


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize(
    "garbage", [b"", b"\xff" * 50, b"\x00" * 3, NOISE], ids=["empty", "ff", "00", "noise"]
)
def test_garbage_is_refused(codec: Codec, garbage: bytes) -> None:
    with pytest.raises((DecompressionFailed, DecompressedTooLarge)):
        decompress(codec, garbage)


@pytest.mark.parametrize("codec", PACKED)
def test_truncated_input_is_refused_wherever_it_ends(codec: Codec) -> None:
    packed = compress(codec, b"a few words, a few words, and a few words more" * 3)

    for size in range(len(packed)):
        with pytest.raises(DecompressionFailed, match=f"{codec.name.lower()} record area"):
            decompress(codec, packed[:size])


@pytest.mark.parametrize("codec", PACKED)
def test_bytes_after_the_stream_are_refused(codec: Codec) -> None:
    with pytest.raises(DecompressionFailed):
        decompress(codec, compress(codec, CONTENT) + b"garbage after it")


def test_an_impossible_snappy_length_is_rejected_before_allocation() -> None:
    with pytest.raises(DecompressionFailed, match="declares 100000000 decompressed bytes"):
        decompress(Codec.SNAPPY, b"\x80\xc2\xd7\x2f" + b"\x00" * 10)


def test_a_declared_size_above_the_limit_is_rejected_before_decompression() -> None:
    frame = bytearray(lz4.frame.compress(b"small", store_size=True))
    frame[6:14] = (1 << 40).to_bytes(8, "little")

    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.LZ4, frame)


def test_a_lying_content_size_is_refused() -> None:
    honest = zstandard.compress(b"x" * 300)
    assert honest[4] >> 6 == 1
    lying = honest[:5] + (200 - 0).to_bytes(2, "little") + honest[7:]

    with pytest.raises(DecompressionFailed):
        decompress(Codec.ZSTD, lying)


def test_the_number_of_gzip_members_is_bounded() -> None:
    member = gzip.compress(b"x", mtime=0)

    assert decompress(Codec.GZIP, member * MAX_GZIP_MEMBERS) == b"x" * MAX_GZIP_MEMBERS
    with pytest.raises(DecompressionFailed, match="members"):
        decompress(Codec.GZIP, member * (MAX_GZIP_MEMBERS + 1))


def test_a_gzip_checksum_that_does_not_match_is_refused() -> None:
    packed = bytearray(compress(Codec.GZIP, CONTENT))
    packed[-8] ^= 1

    with pytest.raises(DecompressionFailed):
        decompress(Codec.GZIP, packed)


def test_zlib_without_the_gzip_wrapper_is_refused() -> None:
    with pytest.raises(DecompressionFailed):
        decompress(Codec.GZIP, zlib.compress(CONTENT))
