"""Error messages of codecs: the error, the field and the byte."""

from typing import Any

import pytest

from barnabas.base.errors import Malformed
from barnabas.protocol.schema.codec import NotEncodable, decode, encode
from barnabas.protocol.schema.fields import array, int8, int16, int32, nested, string, uuid
from barnabas.protocol.schema.struct import message, struct

pytestmark = pytest.mark.kernel


@struct
class Item:
    name: str = string()
    size: int = int16("1+", default=-1)
    hint: int = int16("1+", ignorable=True)


@message("data", versions="0-1", flexible="1+")
class Order:
    id: bytes = uuid()
    items: list[Item] = array(Item)
    note: str | None = string(null="0+", default=None)
    first: Item = nested(Item)
    rank: int = int32("1+", tag=0)
    grade: int = int8("1+", default=5, tag=1)


# For values that the type checker would reject.
AnyOrder: Any = Order
AnyItem: Any = Item

ID = "00" * 16
# Everything up to the tagged fields of the order.
REST = ID + "01 00 01 0000 0000 00"
MANY = "2147483647 items take at least 4294967294 bytes, but the frame has 0 left"


@pytest.mark.parametrize(
    ("version", "hexadecimal", "what", "where"),
    [
        (0, "", "16 bytes, but the frame has 0 left", "id, byte 0"),
        (0, ID + "0000", "4 bytes, but the frame has 2 left", "items, byte 16"),
        (0, ID + "ffffffff", "null is not allowed", "items, byte 20"),
        (0, ID + "fffffffe", "length -2", "items, byte 20"),
        (0, ID + "7fffffff", MANY, "items, byte 20"),
        (0, ID + "00000001 0005 61", "5 bytes, but the frame has 1 left", "items[0].name, byte 22"),
        (0, ID + "00000002 0000 ffff", "null is not allowed", "items[1].name, byte 24"),
        (0, ID + "00000001 0001 ff", "invalid UTF-8: invalid start byte", "items[0].name, byte 22"),
        (1, ID + "80", "the frame ends inside a varint", "items, byte 16"),
        (1, ID + "ffffffffff", "varint has more than five bytes", "items, byte 16"),
        (1, ID + "00", "null is not allowed", "items, byte 17"),
        (
            1,
            REST + "01 00 05 0000000000",
            "tagged field of 5 bytes ends at byte 31, expected 32",
            "rank, byte 31",
        ),
        (1, REST + "01 09 05", "5 bytes, but the frame has 0 left", "tag 9, byte 27"),
        (1, REST + "02 09 00", "the frame ends inside a varint", "tag, byte 27"),
        (1, ID + "01 00 01 0000 0000", "the frame ends inside a varint", "first.tagged fields, byte 23"),
        (1, REST + "e907", "1001 fields exceed the maximum of 1000", "tagged fields, byte 26"),
    ],
)
def test_malformed_bytes_are_explained(version: int, hexadecimal: str, what: str, where: str) -> None:
    with pytest.raises(Malformed) as refused:
        decode(Order, version, bytes.fromhex(hexadecimal))

    assert refused.value.what == what
    assert refused.value.where == f"Order v{version}, {where}"


def test_the_byte_is_counted_from_the_start_of_the_frame() -> None:
    with pytest.raises(Malformed, match=r"Order v0, id, byte 3: 16 bytes, but the frame has 2 left"):
        decode(Order, 0, b"headxx"[1:], 3)


@pytest.mark.parametrize(
    ("order", "version", "what", "where"),
    [
        (AnyOrder(id=b"short"), 0, "is b'short', not 16 bytes", "id"),
        (AnyOrder(items=None), 0, "null is not allowed", "items"),
        (AnyOrder(items=7), 0, "is int, not a list", "items"),
        (AnyOrder(items=[AnyItem(), AnyItem(name=None)]), 0, "null is not allowed", "items[1].name"),
        (AnyOrder(items=[AnyItem(), AnyOrder()]), 0, "is Order, not Item", "items[1]"),
        (AnyOrder(first=AnyItem(name=5)), 0, "is int, not str", "first.name"),
        (AnyOrder(note="\ud800"), 0, "cannot be encoded as UTF-8: surrogates not allowed", "note"),
        (AnyOrder(first=AnyItem(size=3)), 0, "is set, but version 0 does not have it", "first.size"),
        (AnyOrder(rank=3), 0, "is set, but version 0 does not have it", "rank"),
    ],
)
def test_a_message_that_cannot_be_written_is_explained(
    order: Any, version: int, what: str, where: str
) -> None:
    with pytest.raises(NotEncodable) as refused:
        encode(order, version)

    assert refused.value.what == what
    assert refused.value.where == f"Order v{version}, {where}"


@pytest.mark.parametrize(
    ("order", "where"),
    [
        (AnyOrder(first=AnyItem(size=40000)), "first.size"),
        (AnyOrder(rank=2**31), "rank"),
        (AnyOrder(grade="A"), "grade"),
    ],
)
def test_a_number_that_does_not_fit_is_shown(order: Any, where: str) -> None:
    with pytest.raises(NotEncodable) as refused:
        encode(order, 1)

    assert refused.value.where == f"Order v1, {where}"
    assert refused.value.what.startswith("is ")


def test_an_ignorable_field_is_omitted_in_versions_without_it() -> None:
    assert encode(Order(first=Item(hint=3)), 0) == encode(Order(), 0)
