"""Generate the decoder of a tuned message: one function for all versions, which reads a frame field by field.

Fields of a fixed size are read straight from the frame, other fields by the functions of reader.py.
"""

import re
from typing import Final

from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.layout import FIXED_SIZES, layout_of, smallest_field
from barnabas.protocol.schema.source import Source
from barnabas.protocol.schema.struct import schema_of
from barnabas.protocol.schema.versions import Versions
from barnabas.protocol.tuned.structs import (
    Unsupported,
    condition,
    flexible_condition,
    holds_records,
    is_opposite,
    native_type,
    nested_structs,
    overlap,
    plain_fields,
    runs,
    snake,
    struct_in,
    tagged_fields,
    versions_in,
)

_READERS: Final = {
    Kind.INT8: "read_int8",
    Kind.INT16: "read_int16",
    Kind.INT32: "read_int32",
    Kind.INT64: "read_int64",
    Kind.BOOL: "read_bool",
    Kind.UUID: "read_uuid",
    Kind.STRING: "read_string",
    Kind.BYTES: "read_bytes",
}
# Expressions that read at `at`.
_READS_AT: Final = {
    Kind.INT8: "signed_byte(buf[at])",
    Kind.INT16: "i32(read_i16_be(buf, at))",
    Kind.INT32: "read_i32_be(buf, at)",
    Kind.INT64: "read_i64_be(buf, at)",
    Kind.BOOL: "buf[at] != 0",
}


def write_decoder(source: Source, message: type) -> str:
    """Generate the decoder of a message and the functions that it needs; return its name."""
    return _DecoderSource(source, message).write()


class _DecoderSource:
    def __init__(self, source: Source, message: type) -> None:
        self._source = source
        self._message = message
        self._schema = schema_of(message)

    def write(self) -> str:
        name = self._schema.name
        function = snake(name)
        add = self._source.add
        add("")
        add("")
        add(f"def decode_{function}(version: i64, buf: bytes, at: i64) -> tuple[{name}, i64]:")
        add('    """Return the message and the position after it; raise Malformed and nothing else."""')
        add("    try:")
        add(f"        return _read_{function}(version, buf, at)")
        add("    except DECODE_FAILURES:")
        add(f"        raise explain_bytes({name}, version, buf, at) from None")
        self._write_message(function)
        for cls in dict.fromkeys(nested_structs(self._message)):
            if self._is_item(cls) and not self._is_inline(cls):
                self._write_list(cls)
            if tagged_fields(cls):
                self._write_tags(cls)
        return f"decode_{function}"

    # Functions

    def _write_message(self, function: str) -> None:
        flexible = condition(self._schema.flexible, self._schema.versions) or "True"
        body = self._body()
        body.add(f"r = Reader(version, {flexible}, buf, at)")
        if holds_records(self._message):
            body.add("view = memoryview(buf)")
        body.add(f"message = {self._schema.name}()")
        self._struct(body, self._message, "message", self._schema.versions)
        body.add("return message, r.at")
        # The arguments already have the names.
        self._function(
            f"_read_{function}(version: i64, buf: bytes, at: i64) -> tuple[{self._schema.name}, i64]",
            body,
            names=("flexible",),
        )

    def _write_list(self, cls: type) -> None:
        name = schema_of(cls).name
        within = versions_in(cls, self._message)
        body = self._body()
        is_fixed = _is_all_fixed(cls)
        body.add("for _ in range(count):")
        body.indent += 1
        body.add(f"item = {name}()")
        if is_fixed:
            self._fixed_struct(body, cls, within)
        else:
            self._struct(body, cls, "item", within)
        body.add("items.append(item)")
        body.indent -= 1
        if is_fixed:
            body.add("r.at = at")
        view = ", view: memoryview" if holds_records(cls) else ""
        head = [f"count = read_count(r, {self._least(cls)})"]
        self._function(
            f"_read_{snake(name)}_list(r: Reader, items: list[{name}]{view}) -> None",
            body,
            names=("version", "flexible", "buf", "at"),
            head=head,
        )

    def _write_tags(self, cls: type) -> None:
        within = versions_in(cls, self._message)
        body = self._body()
        body.add("count = read_length(r)")
        body.add("if count <= 0:")
        body.add("    return")
        body.add("if count > UNKNOWN_TAGS_MAX:")
        body.add("    raise BadWire")
        body.add("unknown: list[tuple[int, bytes]] = []")
        body.add("for _ in range(count):")
        body.indent += 1
        body.add("tag, stop = read_tag(r)")
        word = "if"
        for field in tagged_fields(cls):
            test = condition(field.versions, _flexible_part(self._schema.flexible, within))
            if test == "False":
                continue
            body.add(f"{word} tag == {field.tag}{' and ' + test if test else ''}:")
            body.indent += 1
            self._field(body, field, "struct", overlap(field.versions, within))
            body.indent -= 1
            word = "elif"
        body.add("else:")
        body.add("    unknown.append((tag, r.buf[r.at : stop]))")
        body.add("    r.at = stop")
        body.add("if r.at != stop:")
        body.add("    raise BadWire")
        body.indent -= 1
        body.add("if unknown:")
        body.add("    struct.unknown_tags = tuple(unknown)")
        name = schema_of(cls).name
        self._function(
            f"_read_{snake(name)}_tags(r: Reader, struct: {name}) -> None", body, names=("version",)
        )

    def _body(self) -> Source:
        body = Source()
        body.indent = 1
        return body

    def _function(
        self, signature: str, body: Source, *, names: tuple[str, ...], head: list[str] | None = None
    ) -> None:
        """Add a function; `names` are attributes of the reader that become locals if the body uses them."""
        add = self._source.add
        add("")
        add("")
        add(f"def {signature}:")
        for line in head or []:
            add(f"    {line}")
        text = body.text()
        for name in names:
            if re.search(rf"(?<![.\w]){name}\b", text):
                place = next((i for i, line in enumerate(body.lines) if "Reader(" in line), -1)
                body.lines.insert(place + 1, f"    {name} = r.{name}")
        self._source.lines += body.lines

    # Structs

    def _struct(self, body: Source, cls: type, var: str, within: Versions) -> None:
        last = ""
        for test, fields in runs(plain_fields(cls), within):
            if test:
                body.add("else:" if is_opposite(last, test) else f"if {test}:")
                body.indent += 1
            for field in fields:
                self._field(body, field, var, overlap(field.versions, within))
            if test:
                body.indent -= 1
            last = test
        flexible = flexible_condition(self._schema, within)
        if flexible == "False":
            return
        if flexible:
            body.add(f"if {flexible}:")
            body.indent += 1
        if tagged_fields(cls):
            body.add(f"_read_{snake(schema_of(cls).name)}_tags(r, {var})")
        else:
            body.add(f"{var}.unknown_tags = read_tags(r)")
        if flexible:
            body.indent -= 1

    def _fixed_struct(self, body: Source, cls: type, within: Versions) -> None:
        """Read a struct of which all fields have a fixed size, with the position in a local variable."""
        for test, fields in runs(plain_fields(cls), within):
            if test:
                body.add(f"if {test}:")
                body.indent += 1
            for field in fields:
                body.add(f"item.{field.name} = {_READS_AT[field.kind]}")
                body.add(f"at += {FIXED_SIZES[field.kind]}")
            if test:
                body.indent -= 1
        flexible = flexible_condition(self._schema, within)
        if flexible == "False":
            return
        if flexible:
            body.add(f"if {flexible}:")
            body.indent += 1
        body.add("if buf[at] == 0:")
        body.add("    at += 1")
        body.add("else:")
        body.add("    r.at = at")
        if tagged_fields(cls):
            body.add(f"    _read_{snake(schema_of(cls).name)}_tags(r, item)")
        else:
            body.add("    item.unknown_tags = read_tags(r)")
        body.add("    at = r.at")
        if flexible:
            body.indent -= 1

    # Fields

    def _field(self, body: Source, field: Field, var: str, within: Versions) -> None:
        target = f"{var}.{field.name}"
        null = condition(field.null, within)
        if field.kind is Kind.STRUCT:
            self._nested(body, field, target, within, null)
        elif field.kind is Kind.ARRAY:
            self._array(body, field, target, within, null)
        elif field.kind is Kind.RECORDS:
            self._records(body, field, var, null)
        else:
            reader = self._reader(field)
            nullable = reader.replace("read_", "read_nullable_")
            if null == "False":
                body.add(f"{target} = {reader}(r)")
            elif null == "":
                body.add(f"{target} = {nullable}(r)")
            else:
                body.add(f"{target} = {nullable}(r) if {null} else {reader}(r)")

    def _reader(self, field: Field) -> str:
        if field.kind not in _READERS or not field.compact:
            raise Unsupported(f"{field} cannot be read by tuned code")
        return _READERS[field.kind]

    def _nested(self, body: Source, field: Field, target: str, within: Versions, null: str) -> None:
        assert field.struct is not None, field
        if null not in ("", "False"):
            raise Unsupported(f"{field} may be null in some versions only")
        if null == "":
            # Kafka marks a null struct with -1, but a null tagged struct with 0.
            body.add(f"if read_int8(r) >= {0 if field.tag is None else 1}:")
            body.indent += 1
        name = body.fresh("part")
        body.add(f"{name} = {schema_of(field.struct).name}()")
        self._struct(body, field.struct, name, within)
        body.add(f"{target} = {name}")
        if null == "":
            body.indent -= 1
            body.add("else:")
            body.add(f"    {target} = None")

    def _array(self, body: Source, field: Field, target: str, within: Versions, null: str) -> None:
        item = field.item
        assert item is not None, field
        items = target
        if null != "False":
            body.add(f"if {null + ' and ' if null else ''}read_null_array(r):")
            body.add(f"    {target} = None")
            body.add("else:")
            body.indent += 1
            items = body.fresh("items")
            body.add(f"{items}: {native_type(field).removesuffix(' | None')} = []")
        if item.struct is not None and self._is_inline(item.struct):
            one = body.fresh("item")
            body.add(f"for _ in range(read_count(r, {self._least(item.struct)})):")
            body.indent += 1
            body.add(f"{one} = {schema_of(item.struct).name}()")
            self._struct(body, item.struct, one, versions_in(item.struct, self._message))
            body.add(f"{items}.append({one})")
            body.indent -= 1
        elif item.struct is not None:
            view = ", view" if holds_records(item.struct) else ""
            body.add(f"_read_{snake(schema_of(item.struct).name)}_list(r, {items}{view})")
        else:
            least = min(self._smallest(item, version) for version in _all(within))
            body.add(f"for _ in range(read_count(r, {least})):")
            body.add(f"    {items}.append({self._reader(item)}(r))")
        if null != "False":
            body.add(f"{target} = {items}")
            body.indent -= 1

    def _records(self, body: Source, field: Field, var: str, null: str) -> None:
        """Read records as a view of the frame."""
        size, start = body.fresh("size"), body.fresh("start")
        body.add(f"{size} = read_size(r)")
        if null == "False":
            body.add(f"if {size} < 0:")
            body.add("    raise BadWire")
        elif null:
            raise Unsupported(f"{field} may be null in some versions only")
        else:
            body.add(f"if {size} >= 0:")
            body.indent += 1
        body.add(f"{start} = r.at")
        body.add(f"r.at = {start} + {size}")
        body.add(f"{var}.{field.name} = view[{start} : {start} + {size}]")
        if field.position:
            body.add(f"{var}.{field.position} = {start}")
        if null == "":
            body.indent -= 1

    # Facts about the message

    def _is_item(self, cls: type) -> bool:
        """Whether `cls` is in an array."""
        return any(
            field.item is not None and field.item.struct is cls
            for struct in nested_structs(self._message)
            for field in schema_of(struct).fields
        )

    def _is_inline(self, cls: type) -> bool:
        """Whether `cls` is read in the code of the struct around it: it is used once, and not simple."""
        structs = dict.fromkeys(nested_structs(self._message))
        uses = sum(struct_in(field) is cls for one in structs for field in schema_of(one).fields)
        return uses == 1 and not _is_all_fixed(cls)

    def _least(self, cls: type) -> int:
        """The smallest size of an item in any version, which bounds how many a frame can hold."""
        item = Field(Kind.STRUCT, "0+", None, struct=cls)
        return min(self._smallest(item, version) for version in _all(versions_in(cls, self._message)))

    def _smallest(self, item: Field, version: int) -> int:
        size = smallest_field(layout_of(self._message, version, version in self._schema.flexible), item)
        assert size > 0, f"nothing bounds the number of {item}"
        return size


def _all(versions: Versions) -> range:
    return range(versions.first, versions.last + 1)


def _flexible_part(flexible: Versions, within: Versions) -> Versions:
    """Tagged fields are read in flexible versions only."""
    return overlap(flexible, within)


def _is_all_fixed(cls: type) -> bool:
    return all(field.kind in _READS_AT for field in plain_fields(cls))
