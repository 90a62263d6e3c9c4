"""The bytes of every kind of field in both styles, written out by hand.

Real messages against real bytes are in tests/differential; here is one small declaration, so that each rule
can be seen by itself.
"""

from typing import Any

import pytest

from barnabas.base.errors import Malformed
from barnabas.base.ids import Uuid
from barnabas.protocol.schema.codec import NotEncodable, UnsupportedVersion, decode, encode, encode_parts
from barnabas.protocol.schema.fields import (
    array,
    binary,
    boolean,
    float64,
    int8,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uint16,
    uint32,
    uuid,
)
from barnabas.protocol.schema.struct import message, struct

pytestmark = pytest.mark.kernel


@message("data", versions="0-1", flexible="1+")
class Numbers:
    a: int = int8()
    b: int = int16()
    c: int = int32()
    d: int = int64()
    e: int = uint16()
    f: int = uint32()
    g: float = float64()
    h: bool = boolean()
    i: Uuid = uuid()


@message("data", versions="0-1", flexible="1+")
class Sized:
    text: str | None = string(null="0+")
    blob: bytes | None = binary(null="0+")
    batch: bytes | memoryview | None = records(null="0+")
    sizes: list[int] | None = array(int16, null="0+")
    names: list[str] | None = array(string, null="0+")
    ids: list[Uuid] = array(uuid)


@struct
class Inner:
    x: int = int8()


@message("data", versions="0-1", flexible="0+")
class Tagged:
    x: int = int8()
    second: int = int16("0+", default=-1, tag=2)
    first: str | None = string("0+", null="0+", default=None, tag=0)
    inner: Inner | None = nested(Inner, "0+", tag=4)
    maybe: Inner | None = nested(Inner, "0+", null="0+", tag=6)
    last: Inner | None = nested(Inner, "1+", null="1+")


NUMBERS = Numbers(a=-1, b=-2, c=-3, d=-4, e=0xFFFE, f=0xFFFFFFFD, g=1.0, h=True, i=Uuid(b"0123456789abcdef"))
NUMBERS_HEX = (
    "ff fffe fffffffd fffffffffffffffc fffe fffffffd 3ff0000000000000 01 30313233343536373839616263646566"
)
NULLS = Sized(text=None, blob=None, batch=None, sizes=None, names=None)
FULL = Sized(text="ż", blob=b"ab", batch=b"abc", sizes=[1, -1], names=["", "n"], ids=[Uuid(b"i" * 16)])
FULL_OLD = "0002c5bc 000000026162 00000003616263 00000002 0001ffff 00000002 0000 00016e 00000001" + "69" * 16
FULL_NEW = "03c5bc 036162 04616263 03 0001ffff 03 01 026e 02" + "69" * 16 + "00"


@pytest.mark.parametrize(
    ("value", "version", "hexadecimal"),
    [
        pytest.param(NUMBERS, 0, NUMBERS_HEX, id="numbers are big-endian"),
        pytest.param(NUMBERS, 1, NUMBERS_HEX + "00", id="a flexible struct ends with its tagged fields"),
        pytest.param(NULLS, 0, "ffff ffffffff ffffffff ffffffff ffffffff 00000000", id="null is -1"),
        pytest.param(NULLS, 1, "00 00 00 00 00 01 00", id="a compact null is 0 and an empty array is 1"),
        pytest.param(FULL, 0, FULL_OLD, id="lengths of two bytes for text and four for the rest"),
        pytest.param(FULL, 1, FULL_NEW, id="compact lengths are varints, one more than the length"),
        pytest.param(Tagged(x=1), 0, "01 00", id="tagged fields at their defaults are not sent"),
        pytest.param(Tagged(x=1, second=7), 0, "01 01 02 02 0007", id="tag, size, value"),
        pytest.param(Tagged(first="a", second=7), 0, "00 02 00 02 0261 02 02 0007", id="lowest tag first"),
        pytest.param(Tagged(inner=Inner(x=3)), 0, "00 01 04 02 0300", id="a tagged struct has its own tags"),
        pytest.param(Tagged(maybe=Inner(x=3)), 0, "00 01 06 03 010300", id="a nullable struct has a marker"),
        pytest.param(Tagged(), 1, "00 ff 00", id="the marker of a null struct is -1"),
        pytest.param(Tagged(last=Inner(x=3)), 1, "00 01 03 00 00", id="the marker of a struct is 1"),
    ],
)
def test_the_bytes_of_a_message(value: Any, version: int, hexadecimal: str) -> None:
    data = bytes.fromhex(hexadecimal)

    assert encode(value, version) == data
    assert decode(type(value), version, data) == (value, len(data))


@pytest.mark.parametrize(
    ("version", "hexadecimal", "value"),
    [
        pytest.param(0, "01 02 00 01 00 00 02 0261", Tagged(x=1, first="a"), id="a tag twice: the last"),
        pytest.param(0, "01 01 02 02 ffff", Tagged(x=1), id="a tagged field that is sent at its default"),
        pytest.param(0, "01 8000", Tagged(x=1), id="a varint with a zero too many"),
        pytest.param(0, "01 01 06 01 00", Tagged(x=1), id="a tagged struct that is null"),
        pytest.param(1, "01 80 00", Tagged(x=1), id="any negative marker is null"),
        pytest.param(1, "01 00 03 00 00", Tagged(x=1, last=Inner(x=3)), id="any other marker is a struct"),
    ],
)
def test_bytes_that_we_would_not_write_are_read_as_kafka_reads_them(
    version: int, hexadecimal: str, value: Tagged
) -> None:
    data = bytes.fromhex(hexadecimal)

    assert decode(Tagged, version, data) == (value, len(data))


def test_a_compact_length_beyond_31_bits_is_negative_and_so_is_null() -> None:
    data = bytes.fromhex("ffffffff0f ffffffff0f ffffffff0f ffffffff0f ffffffff0f 01 00")

    assert decode(Sized, 1, data) == (NULLS, len(data))


def test_any_byte_but_zero_is_true() -> None:
    data = bytes.fromhex(NUMBERS_HEX.replace(" 01 ", " 02 "))

    assert decode(Numbers, 0, data)[0].h is True


def test_unknown_tags_go_out_between_the_known_ones() -> None:
    data = bytes.fromhex("00 03 00 02 0261 01 01 ff 02 02 0007")

    tagged, _ = decode(Tagged, 0, data)

    assert tagged.unknown_tags == ((1, b"\xff"),)  # type: ignore[attr-defined]
    assert encode(tagged, 0) == data


def test_records_are_views_of_the_frame_and_are_not_copied() -> None:
    frame = encode(FULL, 1)

    batch = decode(Sized, 1, frame)[0].batch

    assert isinstance(batch, memoryview)
    assert batch.obj is frame


def test_records_are_handed_on_as_they_are() -> None:
    class FileRange:
        """Like a range of a segment: a length without bytes in memory."""

        def __len__(self) -> int:
            return 300

    rows = FileRange()
    parts: list[Any] = []

    encode_parts(Sized(batch=rows), 1, parts)  # type: ignore[arg-type]

    assert rows in parts
    assert parts[parts.index(rows) - 1] == b"\xad\x02"


def test_a_text_may_have_32767_bytes_in_both_styles_and_not_one_more() -> None:
    longest = Sized(text="x" * 32767)
    for version in (0, 1):
        data = encode(longest, version)

        assert decode(Sized, version, data)[0] == longest
        with pytest.raises(NotEncodable, match="text: has 32768 bytes, the maximum is 32767"):
            encode(Sized(text="x" * 32768), version)
    # The message is valid except for the length.
    with pytest.raises(Malformed, match="text, byte 3: string of 32768 bytes exceeds the maximum of 32767"):
        decode(Sized, 1, bytes.fromhex("818002") + b"x" * 32768 + bytes.fromhex("00 00 00 00 01 00"))


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="Numbers has no version 2, only 0-1"):
        encode(NUMBERS, 2)
    with pytest.raises(UnsupportedVersion, match="Numbers has no version -1, only 0-1"):
        decode(Numbers, -1, b"")


def test_tagged_fields_do_not_vanish_in_a_version_that_has_none() -> None:
    tagged = Sized(unknown_tags=((7, b"x"),))  # type: ignore[call-arg]

    assert decode(Sized, 1, encode(tagged, 1))[0] == tagged
    with pytest.raises(NotEncodable, match="Sized v0, unknown_tags: are set, but version 0 has no tagged"):
        encode(tagged, 0)
