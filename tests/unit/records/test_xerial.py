import cramjam
import pytest

from barnabas.records.codecs import decompress
from barnabas.records.errors import DecompressedTooLarge, DecompressionFailed
from barnabas.records.header import Codec
from barnabas.records.xerial import XERIAL_HEADER_SIZE, BadXerial, is_xerial, xerial_blocks

CONTENT = b"what the castle sends " * 5000


def stream(*blocks: bytes) -> bytes:
    parts = [len(block).to_bytes(4, "big") + block for block in blocks]
    return b"\x82SNAPPY\x00" + bytes.fromhex("0000000100000001") + b"".join(parts)


def raw(content: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(content))


def test_the_java_framing_is_distinguished_from_a_raw_block() -> None:
    assert is_xerial(memoryview(stream()))
    assert not is_xerial(memoryview(raw(CONTENT)))
    assert not is_xerial(memoryview(b"\x82SNAP"))


def test_a_stream_in_blocks_of_javas_size_is_unpacked() -> None:
    framed = stream(*(raw(CONTENT[at : at + 32_768]) for at in range(0, len(CONTENT), 32_768)))

    assert len(list(xerial_blocks(memoryview(framed)))) == 4
    assert decompress(Codec.SNAPPY, framed) == CONTENT


def test_blocks_are_joined_in_order_and_may_be_empty() -> None:
    assert decompress(Codec.SNAPPY, stream(raw(b"ab"), raw(b""), raw(b"cd"))) == b"abcd"
    assert decompress(Codec.SNAPPY, stream()) == b""


@pytest.mark.parametrize(
    "bad",
    [
        stream()[: XERIAL_HEADER_SIZE - 1],
        stream() + b"\x00\x00",
        stream() + b"\x00\x00\x00\x00",
        stream() + b"\x00\x00\x00\x05abcd",
        stream() + b"\xff\xff\xff\xff",
    ],
    ids=["header cut", "length cut", "empty block", "block cut", "negative length"],
)
def test_a_block_that_does_not_fit_is_refused(bad: bytes) -> None:
    with pytest.raises(BadXerial):
        list(xerial_blocks(memoryview(bad)))
    with pytest.raises(DecompressionFailed, match="snappy record area"):
        decompress(Codec.SNAPPY, bad)


def test_the_limit_counts_all_blocks_together() -> None:
    framed = stream(*[raw(b"x" * 1000)] * 10)

    assert len(decompress(Codec.SNAPPY, framed, limit=10_000)) == 10_000
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.SNAPPY, framed, limit=9_999)
