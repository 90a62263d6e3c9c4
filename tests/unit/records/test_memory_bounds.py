"""Bytes with a wrong declared size must not cost more memory than their real size justifies."""

import struct
import subprocess
import sys
from collections.abc import Callable

import lz4.frame
import pytest
import zstandard

from barnabas.base.errors import Malformed
from barnabas.records.builder import build_batch, seal
from barnabas.records.codecs import compress, decompress
from barnabas.records.decode import decode_batch
from barnabas.records.errors import DecompressedTooLarge
from barnabas.records.header import COUNT_AT, LAST_OFFSET_DELTA_AT, BatchHeader, Codec, read_header
from barnabas.records.validate import check_batch, check_records
from support.memory import peak_of

pytestmark = pytest.mark.kernel

# Allowance for errors, tracebacks and other small allocations of the interpreter.
CRUMBS = 64 * 1024
BOMB = bytes(64 << 20)


def check_refused_within(limit: int, work: Callable[[], object]) -> None:
    def refused() -> None:
        with pytest.raises(Malformed):
            work()

    assert peak_of(refused, limit) <= limit


def header_of(data: bytes, **fields: int) -> BatchHeader:
    return read_header(data)._replace(**fields)


@pytest.mark.parametrize("look", [decode_batch, check_records, check_batch])
def test_a_wrong_count_costs_no_memory(look: Callable[[bytes], object]) -> None:
    data = bytearray(build_batch([(0, None, b"v", ())]))
    struct.pack_into(">i", data, COUNT_AT, 2**31 - 1)
    struct.pack_into(">i", data, LAST_OFFSET_DELTA_AT, 2**31 - 2)

    check_refused_within(CRUMBS, lambda: look(bytes(data)))


@pytest.mark.parametrize("look", [decode_batch, check_records])
def test_lengths_that_lie_cost_nothing(look: Callable[[bytes], object]) -> None:
    plain = build_batch([(0, None, b"v", ())])
    huge = b"\xfe\xff\xff\xff\x0f"
    areas = [
        huge + bytes(10),
        b"\x20\x00\x00\x00" + huge + bytes(8),
        b"\x20\x00\x00\x00\x01" + huge + bytes(7),
        b"\x20\x00\x00\x00\x01\x01" + huge + bytes(6),
        b"\x20\x00\x00\x00\x01\x01\x02" + huge + bytes(5),
        b"\x20\x00\x00\x00\x01\x01\x02\x00" + huge + bytes(4),
    ]

    for area in areas:
        check_refused_within(CRUMBS, lambda area=area: look(seal(header_of(plain), area, Codec.NONE)))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_costs_no_more_than_a_few_times_the_limit(codec: Codec) -> None:
    limit = 1 << 20
    bomb = compress(codec, BOMB)

    check_refused_within(3 * limit + len(bomb) + CRUMBS, lambda: decompress(codec, bomb, limit=limit))


def test_a_bomb_without_a_size_uses_a_few_times_the_limit_at_most() -> None:
    limit = 1 << 20
    stream = zstandard.ZstdCompressor().compressobj()
    zstd = stream.compress(BOMB) + stream.flush()
    linked = lz4.frame.compress(BOMB, store_size=False, block_linked=True)

    check_refused_within(3 * limit, lambda: decompress(Codec.ZSTD, zstd, limit=limit))
    check_refused_within(3 * limit, lambda: decompress(Codec.LZ4, linked, limit=limit))


def test_a_bomb_in_a_batch_is_stopped_on_every_way_in() -> None:
    plain = build_batch([(0, None, b"v", ())])
    bomb = seal(header_of(plain, attributes=int(Codec.ZSTD)), BOMB, Codec.ZSTD)

    for look in (decode_batch, check_records):
        with pytest.raises(DecompressedTooLarge):
            look(bomb, limit=1 << 20)


def test_a_wrong_snappy_preamble_costs_no_memory() -> None:
    lying = b"\xff\xff\xff\xff\x07" + bytes(100)

    check_refused_within(CRUMBS, lambda: decompress(Codec.SNAPPY, lying, limit=2**31))


# A gigabyte in a small zstd stream without a declared size; prints the kilobytes that refusing it took.
OUT_OF_SIGHT = """
import resource, zstandard
from barnabas.records.codecs import decompress
from barnabas.records.errors import DecompressedTooLarge
from barnabas.records.header import Codec

stream = zstandard.ZstdCompressor().compressobj()
bomb = b"".join([stream.compress(bytes(1 << 20)) for _ in range(1024)] + [stream.flush()])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(Codec.ZSTD, bomb, limit=8 << 20)
except DecompressedTooLarge:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_out_of_pythons_sight_is_bounded_too() -> None:
    # The decompressor's allocations are not traced, so measure the size of a separate process.
    run = subprocess.run([sys.executable, "-c", OUT_OF_SIGHT], capture_output=True, text=True, check=True)

    assert int(run.stdout) < 32 * 1024
