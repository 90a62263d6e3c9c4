"""The snappy-java stream format of Java producers: a header, then raw snappy blocks.

A magic, two version numbers, then blocks of at most 32 kB of content, each preceded by its length. Other
producers send one raw snappy block. Every client reads both, so Barnabas reads both and writes the raw block,
which is smaller and faster.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
# The magic, the version and the oldest compatible version; readers ignore the two numbers.
XERIAL_HEADER_SIZE: Final = 16

_LENGTH: Final = Struct(">i")


class BadXerial(ValueError):
    """A header or block length that exceeds the bytes left."""


def is_xerial(data: memoryview) -> bool:
    """Whether `data` is a snappy-java stream; no raw snappy block starts with these bytes."""
    return data[: len(XERIAL_MAGIC)].tobytes() == XERIAL_MAGIC


def xerial_blocks(data: memoryview) -> Iterator[memoryview]:
    """Yield the raw snappy blocks of a stream that is_xerial()."""
    if len(data) < XERIAL_HEADER_SIZE:
        raise BadXerial(f"stream header has {len(data)} bytes, expected {XERIAL_HEADER_SIZE}")
    at = XERIAL_HEADER_SIZE
    while at < len(data):
        if len(data) - at < _LENGTH.size:
            raise BadXerial(f"block length is truncated at byte {at}")
        size: int = _LENGTH.unpack_from(data, at)[0]
        at += _LENGTH.size
        if size <= 0 or size > len(data) - at:
            raise BadXerial(f"block at byte {at} has length {size}, {len(data) - at} bytes are left")
        yield data[at : at + size]
        at += size
