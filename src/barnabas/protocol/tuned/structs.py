"""Generate the classes of tuned messages, and the helpers that both codec generators need."""

import re
from collections.abc import Iterator
from typing import Final

from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.source import Source
from barnabas.protocol.schema.struct import Schema, schema_of
from barnabas.protocol.schema.versions import Versions

_NATIVE_TYPES: Final = {
    Kind.INT8: "i32",
    Kind.INT16: "i32",
    Kind.INT32: "i32",
    Kind.INT64: "i64",
    Kind.BOOL: "bool",
    Kind.UUID: "Uuid",
    Kind.STRING: "str",
    Kind.BYTES: "bytes",
    Kind.RECORDS: "memoryview | bytes",
}
_ITEM_TYPES: Final = _NATIVE_TYPES | dict.fromkeys((Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64), "int")


class Unsupported(Exception):
    """The declaration uses something for which no tuned code can be generated."""


def nested_structs(cls: type) -> Iterator[type]:
    """The structs of a message, inner ones first, and the message itself."""
    for field in schema_of(cls).fields:
        inner = struct_in(field)
        if inner is not None:
            yield from nested_structs(inner)
    yield cls


def struct_in(field: Field) -> type | None:
    return field.item.struct if field.item is not None else field.struct


def versions_in(cls: type, message: type) -> Versions:
    """The versions of a message that may contain the struct `cls`."""
    found: list[Versions] = []

    def look(struct: type, within: Versions) -> None:
        if struct is cls:
            found.append(within)
        for field in schema_of(struct).fields:
            inner = struct_in(field)
            if inner is not None:
                look(inner, overlap(field.versions, within))

    look(message, schema_of(message).versions)
    return Versions(min(one.first for one in found), max(one.last for one in found))


def overlap(one: Versions, other: Versions) -> Versions:
    return Versions(max(one.first, other.first), min(one.last, other.last))


def condition(versions: Versions, within: Versions) -> str:
    """An expression of `version`, which is in `within`; empty if it is always true."""
    shared = overlap(versions, within)
    if shared.first > shared.last:
        return "False"
    if shared == within:
        return ""
    if shared.last == within.last:
        return f"version >= {shared.first}"
    if shared.first == within.first:
        return f"version <= {shared.last}"
    return f"{shared.first} <= version <= {shared.last}"


def flexible_condition(schema: Schema, within: Versions) -> str:
    """`condition` of the flexible versions, for code that has the variable `flexible`."""
    test = condition(schema.flexible, within)
    return test if test in ("", "False") else "flexible"


def is_nullable(field: Field) -> bool:
    return field.null.first <= field.null.last


def holds_records(cls: type) -> bool:
    return any(
        field.kind is Kind.RECORDS for struct in nested_structs(cls) for field in schema_of(struct).fields
    )


def plain_fields(cls: type) -> list[Field]:
    return [field for field in schema_of(cls).fields if field.tag is None]


def tagged_fields(cls: type) -> list[Field]:
    tagged = [field for field in schema_of(cls).fields if field.tag is not None]
    return sorted(tagged, key=lambda field: field.tag or 0)


def runs(fields: list[Field], within: Versions) -> Iterator[tuple[str, list[Field]]]:
    """Neighbouring fields that are in the same versions, with the condition of these."""
    run: list[Field] = []
    last = ""
    for field in fields:
        test = condition(field.versions, within)
        if test == "False":
            continue
        if run and test != last:
            yield last, run
            run = []
        run.append(field)
        last = test
    if run:
        yield last, run


def is_opposite(one: str, other: str) -> bool:
    """Whether exactly one of two conditions is true: `version <= 9` and `version >= 10`."""
    numbers = [re.fullmatch(r"version ([<>])= (\d+)", test) for test in (one, other)]
    if numbers[0] is None or numbers[1] is None:
        return False
    ends = {number[1]: int(number[2]) for number in numbers if number is not None}
    return len(ends) == 2 and ends["<"] + 1 == ends[">"]


def snake(name: str) -> str:
    """`EndTxnRequest` as `end_txn_request`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def native_type(field: Field) -> str:
    if field.kind is Kind.ARRAY:
        assert field.item is not None, field
        inner = field.item.struct.__name__ if field.item.struct else _lookup(_ITEM_TYPES, field.item)
        name = f"list[{inner}]"
    elif field.kind is Kind.STRUCT:
        assert field.struct is not None, field
        name = field.struct.__name__
    else:
        name = _lookup(_NATIVE_TYPES, field)
    return f"{name} | None" if is_nullable(field) or field.default is None else name


def _lookup(types: dict[Kind, str], field: Field) -> str:
    if field.kind not in types:
        raise Unsupported(f"{field} has a kind without a native type")
    return types[field.kind]


def write_class(source: Source, cls: type) -> None:
    """Generate a class that mypyc compiles to a C struct."""
    schema = schema_of(cls)
    source.add("")
    source.add("")
    source.add("@mypyc_attr(free_list_len=1, acyclic=True)")
    source.add(f"class {schema.name}:")
    source.indent += 1
    source.add("def __init__(")
    source.indent += 1
    source.add("self,")
    source.add("*,")
    for field in schema.fields:
        source.add(f"{_argument(field)},")
    source.add("unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,")
    source.indent -= 1
    source.add(") -> None:")
    source.indent += 1
    for field in schema.fields:
        source.add(f"self.{field.name}{_value(field)}")
        if field.position:
            source.add(f"self.{field.position}: i64 = -1")
    source.add("self.unknown_tags = unknown_tags")
    source.indent -= 2


def _argument(field: Field) -> str:
    kind = native_type(field)
    if isinstance(field.default, type) and field.default is not list:
        if kind.endswith("None"):
            raise Unsupported(f"{field} is a nullable struct that is not null by default")
        return f"{field.name}: {kind} | None = None"
    if field.default is list:
        # A nullable list may be given as None, so another value stands for a list that is not given.
        return (
            f"{field.name}: {kind} = NEW_LIST"
            if kind.endswith("None")
            else f"{field.name}: {kind} | None = None"
        )
    default = "ZERO_UUID" if field.kind is Kind.UUID else repr(field.default)
    return f"{field.name}: {kind} = {default}"


def _value(field: Field) -> str:
    kind = native_type(field)
    if isinstance(field.default, type):
        new = "[]" if field.default is list else f"{field.default.__name__}()"
        absent = "NEW_LIST" if kind.endswith("None") else "None"
        return f": {kind} = {new} if {field.name} is {absent} else {field.name}"
    return f" = {field.name}"
