"""Snappy as Java producers send it: the snappy-java stream format around raw snappy blocks.

A magic, two version numbers, then blocks of at most 32 kB of content, each behind its length. Other
producers send one raw snappy block with nothing around it. Every client reads both, so Barnabas reads both
and writes the raw block, which is smaller and faster.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
# The magic, the version and the oldest compatible version; readers have never looked at the two numbers.
XERIAL_HEADER_SIZE: Final = 16

_LENGTH: Final = Struct(">i")


class BadXerial(ValueError):
    """A block length that does not fit the bytes there."""


def is_xerial(data: memoryview) -> bool:
    """Whether `data` starts as a snappy-java stream; no raw snappy block starts with these bytes."""
    return data[: len(XERIAL_MAGIC)].tobytes() == XERIAL_MAGIC


def xerial_blocks(data: memoryview) -> Iterator[memoryview]:
    """Yield the raw snappy blocks of a stream for which is_xerial() said yes."""
    if len(data) < XERIAL_HEADER_SIZE:
        raise BadXerial(f"{len(data)} bytes are too few for the stream header")
    at = XERIAL_HEADER_SIZE
    while at < len(data):
        if len(data) - at < _LENGTH.size:
            raise BadXerial(f"block length cut off at byte {at}")
        size: int = _LENGTH.unpack_from(data, at)[0]
        at += _LENGTH.size
        if size <= 0 or size > len(data) - at:
            raise BadXerial(f"block at byte {at} claims {size} bytes and {len(data) - at} are there")
        yield data[at : at + size]
        at += size
