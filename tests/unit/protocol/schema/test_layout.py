"""A declaration at one version: its fields on the wire, and its minimum size."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, int8, int32, int64, nested, string, uuid
from barnabas.protocol.schema.layout import (
    Layout,
    message_layout,
    nested_layout,
    smallest_field,
    smallest_size,
)
from barnabas.protocol.schema.struct import message, struct


@struct
class Part:
    index: int = int32()
    offset: int = int64("1+")


@message("data", versions="0-3", flexible="2+")
class Whole:
    late: str = string("2+", tag=1)
    name: str = string()
    early: int = int8("2+", tag=0)
    old: int = int32("0-1")
    id: Uuid = uuid("3+")
    parts: list[Part] = array(Part)
    last: Part | None = nested(Part, "3+", null="3+")


def names(layout: Layout) -> tuple[list[str], list[str], list[str]]:
    return tuple([field.name for field in part] for part in (layout.plain, layout.tagged, layout.absent))  # type: ignore[return-value]


def test_fields_stay_in_the_order_of_the_declaration() -> None:
    assert names(message_layout(Whole, 0)) == (["name", "old", "parts"], [], ["late", "early", "id", "last"])


def test_tagged_fields_are_apart_and_in_the_order_of_their_tags() -> None:
    assert names(message_layout(Whole, 3)) == (["name", "id", "parts", "last"], ["early", "late"], ["old"])


def test_a_nested_struct_has_the_version_and_flexibility_of_its_message() -> None:
    parts = next(field for field in message_layout(Whole, 2).plain if field.name == "parts")
    assert parts.item is not None

    old = nested_layout(message_layout(Whole, 0), parts.item)
    new = nested_layout(message_layout(Whole, 2), parts.item)

    assert (names(old)[0], old.flexible) == (["index"], False)
    assert (names(new)[0], new.flexible) == (["index", "offset"], True)


def test_the_smallest_size_of_a_message_counts_lengths_and_no_items() -> None:
    assert smallest_size(message_layout(Whole, 0)) == 2 + 4 + 4
    # Both lengths are one byte, and so is the count of tagged fields.
    assert smallest_size(message_layout(Whole, 2)) == 1 + 1 + 1
    # A uuid, and one byte for the null struct.
    assert smallest_size(message_layout(Whole, 3)) == 1 + 16 + 1 + 1 + 1


def test_the_smallest_size_of_an_item_bounds_how_many_a_frame_can_hold() -> None:
    parts = next(field for field in message_layout(Whole, 2).plain if field.name == "parts")
    assert parts.item is not None

    assert smallest_field(message_layout(Whole, 0), parts.item) == 4
    assert smallest_field(message_layout(Whole, 2), parts.item) == 4 + 8 + 1
