"""Resolve a declaration for one version: the fields on the wire, their order and encoding."""

from functools import cache
from typing import NamedTuple

from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.struct import schema_of

FIXED_SIZES = {
    Kind.INT8: 1,
    Kind.INT16: 2,
    Kind.INT32: 4,
    Kind.INT64: 8,
    Kind.UINT16: 2,
    Kind.UINT32: 4,
    Kind.FLOAT64: 8,
    Kind.BOOL: 1,
    Kind.UUID: 16,
}


class Layout(NamedTuple):
    """One struct at one version."""

    cls: type
    plain: tuple[Field, ...]
    tagged: tuple[Field, ...]
    absent: tuple[Field, ...]
    flexible: bool
    version: int


@cache
def layout_of(cls: type, version: int, flexible: bool) -> Layout:
    fields = schema_of(cls).fields
    present = [field for field in fields if version in field.versions]
    tagged = [field for field in present if field.tag is not None]
    return Layout(
        cls=cls,
        plain=tuple(field for field in present if field.tag is None),
        tagged=tuple(sorted(tagged, key=lambda field: field.tag or 0)),
        absent=tuple(field for field in fields if version not in field.versions),
        flexible=flexible,
        version=version,
    )


def message_layout(cls: type, version: int) -> Layout:
    schema = schema_of(cls)
    return layout_of(cls, version, version in schema.flexible)


def is_compact(layout: Layout, field: Field) -> bool:
    """Whether the field's length is a varint."""
    return layout.flexible and field.compact


def smallest_size(layout: Layout) -> int:
    """The minimum size of a struct, which bounds how many of them a frame can hold."""
    size = sum(smallest_field(layout, field) for field in layout.plain)
    return size + (1 if layout.flexible else 0)


def smallest_field(layout: Layout, field: Field) -> int:
    if field.kind.is_fixed:
        return FIXED_SIZES[field.kind]
    if field.kind is Kind.STRUCT:
        if layout.version in field.null:
            return 1
        return smallest_size(nested_layout(layout, field))
    if is_compact(layout, field):
        return 1
    return 2 if field.kind is Kind.STRING else 4


def nested_layout(layout: Layout, field: Field) -> Layout:
    assert field.struct is not None, field
    return layout_of(field.struct, layout.version, layout.flexible)
