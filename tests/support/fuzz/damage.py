"""Damage that knows how messages are built: lying lengths and texts that are no UTF-8, put where they hurt.

A generated encoder hands a message out in parts, and a length stands at the end of one part or is one
itself. So the seams between the parts are where lengths and texts begin and end. Damage that knows nothing is
in tests/property/mutations.py.
"""

import random
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from barnabas.protocol.schema.encoder import compile_encoder
from support.wire.messages import random_message

# Lengths that lie, in each of the three forms that lengths have on the wire.
VARINT_LIES = (
    b"\x00",
    b"\x01",
    b"\x7f",
    b"\xff\xff\x03",
    b"\xff\xff\xff\xff\x07",  # 2^31 - 1
    b"\x80\x80\x80\x80\x08",  # 2^31, which is negative
    b"\xfe\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x0f",  # 2^32 - 1
    b"\xff\xff\xff\xff\xff\x01",  # does not end in five bytes
)
INT16_LIES = (b"\x00\x00", b"\xff\xff", b"\xff\xfe", b"\x7f\xff", b"\x80\x00", b"\x01\x00")
INT32_LIES = (
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xfe",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x00\x01\x00\x00",
)
# A byte that never occurs, an overlong zero, half a surrogate pair, a code point behind the last, a torn end.
NOT_UTF8 = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82")


# 2^22: far more than a frame of ours holds, and not so much that believing it would bring the machine down.
BIG_VARINT = b"\x80\x80\x80\x02"
BIG_INT32 = b"\x00\x40\x00\x00"


class Sample(NamedTuple):
    """A good message, its bytes, and the positions where its parts meet."""

    cls: type
    version: int
    data: bytes
    seams: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.cls.__name__} v{self.version}"


# One that is written by hand makes a single part.
_encoder = cache(compile_encoder)


def sample(cls: type, version: int, rng: random.Random) -> Sample:
    parts: list[bytes] = []
    _encoder(cls, version)(random_message(cls, version, rng), parts)
    seams = [0]
    for part in parts:
        seams.append(seams[-1] + len(part))
    return Sample(cls, version, b"".join(parts), tuple(seams))


def lie(rng: random.Random, of: Sample) -> bytes:
    """Replace what stands at a seam with a length that is not true, or with bytes that are no text."""
    at = rng.choice(of.seams)
    data = of.data
    form = rng.randrange(4)
    if form == 0:
        return data[:at] + rng.choice(VARINT_LIES) + data[at + 1 :]
    if form == 1:
        return data[:at] + rng.choice(NOT_UTF8) + data[at + 1 :]
    lies, size = (INT16_LIES, 2) if form == 2 else (INT32_LIES, 4)
    start = max(0, at - size)
    return data[:start] + rng.choice(lies) + data[start + size :]


def big_lies(of: Sample) -> Iterator[bytes]:
    """Claim a great length at every seam, in each form that can."""
    for at in of.seams:
        yield of.data[:at] + BIG_VARINT + of.data[at + 1 :]
        if at >= 4:
            yield of.data[: at - 4] + BIG_INT32 + of.data[at:]
