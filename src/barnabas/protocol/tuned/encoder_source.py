"""Generate the encoder of a tuned message: one function for all versions, which writes one bytes object.

Fields that are rare, such as tagged ones, are left to the generic encoder: the tuned one raises Unwritable
when one of them is set.
"""

import re
from typing import Final

from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.source import Source
from barnabas.protocol.schema.struct import schema_of
from barnabas.protocol.schema.versions import Versions
from barnabas.protocol.tuned.structs import (
    Unsupported,
    condition,
    is_nullable,
    is_opposite,
    nested_structs,
    overlap,
    plain_fields,
    runs,
    snake,
    struct_in,
    versions_in,
)

# Writers of fields whose length does not depend on the version.
_FIXED_WRITERS: Final = {
    Kind.INT8: "write_int8",
    Kind.INT16: "write_int16",
    Kind.INT32: "write_i32_be",
    Kind.INT64: "write_i64_be",
    Kind.BOOL: "write_bool",
    Kind.UUID: "write_uuid",
}
_SIZED_WRITERS: Final = {Kind.STRING: "write_string", Kind.BYTES: "write_bytes"}


def write_encoder(source: Source, message: type) -> str:
    """Generate the encoder of a message and the functions that it needs; return its name."""
    return _EncoderSource(source, message).write()


class _EncoderSource:
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
        add(f"def encode_{function}(version: i64, message: {name}, parts: list[bytes]) -> bool:")
        add('    """Append the message to `parts`; return False if it is left to the generic encoder."""')
        add("    w = BytesWriter()")
        add("    try:")
        add(f"        _write_{function}(w, version, message)")
        add("    except ENCODE_FAILURES:")
        add("        return False")
        add("    parts.append(w.getvalue())")
        add("    return True")
        self._write_message(function)
        for cls in dict.fromkeys(nested_structs(self._message)):
            if self._uses(cls) > 1:
                self._write_struct(cls)
        return f"encode_{function}"

    def _write_message(self, function: str) -> None:
        body = self._body()
        self._struct(body, self._message, "message", self._schema.versions)
        add = self._source.add
        add("")
        add("")
        add(f"def _write_{function}(w: BytesWriter, version: i64, message: {self._schema.name}) -> None:")
        if re.search(r"\bflexible\b", body.text()):
            add(f"    flexible = {condition(self._schema.flexible, self._schema.versions) or 'True'}")
        self._source.lines += body.lines

    def _write_struct(self, cls: type) -> None:
        name = schema_of(cls).name
        body = self._body()
        self._struct(body, cls, "struct", versions_in(cls, self._message))
        add = self._source.add
        add("")
        add("")
        add(
            f"def _write_{snake(name)}(w: BytesWriter, version: i64, flexible: bool, struct: {name}) -> None:"
        )
        self._source.lines += body.lines

    def _body(self) -> Source:
        body = Source()
        body.indent = 1
        return body

    def _struct(self, body: Source, cls: type, var: str, within: Versions) -> None:
        self._refuse_rare(body, schema_of(cls).fields, var, within)
        last = ""
        for test, run in runs(plain_fields(cls), within):
            if test:
                body.add("else:" if is_opposite(last, test) else f"if {test}:")
                body.indent += 1
            for field in run:
                self._field(body, field, f"{var}.{field.name}", overlap(field.versions, within))
            if test:
                body.indent -= 1
            last = test
        body.add(f"write_no_tags(w, flexible, {var}.unknown_tags)")

    def _refuse_rare(self, body: Source, fields: tuple[Field, ...], var: str, within: Versions) -> None:
        """Raise Unwritable for a tagged field, or one that the version lacks, that is not at its default."""
        for field in fields:
            test = condition(field.versions, within)
            is_set = self._is_set(field, f"{var}.{field.name}")
            if field.tag is not None:
                body.add(f"if {is_set}:")
            elif test == "" or field.ignorable:
                continue
            else:
                body.add(f"if {'' if test == 'False' else f'not ({test}) and '}{is_set}:")
            body.add("    raise Unwritable")

    def _is_set(self, field: Field, value: str) -> str:
        if field.default is None:
            return f"{value} is not None"
        if field.default is list:
            return f"({value} is None or {value})" if is_nullable(field) else value
        if isinstance(field.default, type):
            raise Unsupported(f"{field} is a struct that some versions lack")
        return f"{value} != {'ZERO_UUID' if field.kind is Kind.UUID else repr(field.default)}"

    def _field(self, body: Source, field: Field, value: str, within: Versions) -> None:
        null = condition(field.null, within)
        if field.kind is Kind.STRUCT:
            self._nested(body, field, value, null)
        elif field.kind is Kind.ARRAY:
            self._array(body, field, value, null)
        elif field.kind in _FIXED_WRITERS:
            body.add(f"{_FIXED_WRITERS[field.kind]}(w, {value})")
        else:
            writer = self._sized_writer(field)
            self._refuse_null(body, field, value, null)
            if null != "False":
                writer = writer.replace("write_", "write_nullable_")
            body.add(f"{writer}(w, flexible, {value})")

    def _refuse_null(self, body: Source, field: Field, value: str, null: str) -> None:
        """Raise Unwritable for None in versions that have no null."""
        if null and (is_nullable(field) or field.default is None):
            body.add(f"if {value} is None{'' if null == 'False' else f' and not ({null})'}:")
            body.add("    raise Unwritable")

    def _nested(self, body: Source, field: Field, value: str, null: str) -> None:
        assert field.struct is not None, field
        part = body.fresh("part")
        body.add(f"{part} = {value}")
        self._refuse_null(body, field, part, null)
        if null == "False":
            self._inner(body, field.struct, part)
            return
        body.add(f"if {part} is None:")
        body.add("    write_int8(w, -1)")
        body.add("else:")
        body.indent += 1
        body.add("write_int8(w, 1)")
        self._inner(body, field.struct, part)
        body.indent -= 1

    def _inner(self, body: Source, cls: type, var: str) -> None:
        """Write a struct in place, or by a function if the message has it in several places."""
        if self._uses(cls) > 1:
            body.add(f"_write_{snake(schema_of(cls).name)}(w, version, flexible, {var})")
        else:
            self._struct(body, cls, var, versions_in(cls, self._message))

    def _array(self, body: Source, field: Field, value: str, null: str) -> None:
        item = field.item
        assert item is not None, field
        items = value
        if null != "False" or is_nullable(field) or field.default is None:
            items = body.fresh("items")
            body.add(f"{items} = {value}")
            self._refuse_null(body, field, items, null)
        if null != "False":
            body.add(f"if {items} is None:")
            body.add("    write_null_array(w, flexible)")
            body.add("else:")
            body.indent += 1
        body.add(f"write_count(w, flexible, len({items}))")
        one = body.fresh("item")
        body.add(f"for {one} in {items}:")
        body.indent += 1
        if item.struct is not None:
            self._inner(body, item.struct, one)
        else:
            body.add(self._item(item, one))
        body.indent -= 1
        if null != "False":
            body.indent -= 1

    def _item(self, item: Field, value: str) -> str:
        if item.kind is Kind.INT32:
            return f"write_int32_item(w, {value})"
        if item.kind is Kind.UUID:
            return f"write_uuid(w, {value})"
        return f"{self._sized_writer(item)}(w, flexible, {value})"

    def _sized_writer(self, field: Field) -> str:
        if field.kind not in _SIZED_WRITERS or not field.compact:
            raise Unsupported(f"{field} cannot be written by tuned code")
        return _SIZED_WRITERS[field.kind]

    def _uses(self, cls: type) -> int:
        """The number of fields with `cls`. Tagged fields are left to the generic encoder."""
        structs = dict.fromkeys(nested_structs(self._message))
        fields = [field for struct in structs for field in schema_of(struct).fields if field.tag is None]
        return sum(struct_in(field) is cls for field in fields)
