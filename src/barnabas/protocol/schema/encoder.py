"""Generate the encode function of one message at one version as straight-line Python.

The function appends parts to a list: adjacent fixed-size fields are one pack, strings and records are
separate parts, so that records can be views or file ranges and are never copied. As in Kafka's own codec,
fields that the version lacks must be at their defaults unless they are ignorable.
"""

from collections.abc import Callable, Iterable
from struct import error as StructError
from struct import pack
from typing import Any, Final, cast

from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.layout import (
    Layout,
    is_compact,
    message_layout,
    nested_layout,
)
from barnabas.protocol.schema.source import Source
from barnabas.protocol.wire import STRING_BYTES_MAX, write_uvarint

# (message, parts): appends the message's bytes to parts. A tuned one returns False if it did not.
Encode = Callable[[object, list[bytes]], object]


# Items that a list encoder writes in about a millisecond.
STEP_ITEMS: Final = 256


class Unwritable(Exception):
    """Raised by generated code; codec.py turns it into NotEncodable with the error and its path."""


# The exceptions of a generated encoder for a message that cannot be written.
ENCODE_FAILURES = (Unwritable, StructError, TypeError, AttributeError, ValueError)


def compile_encoder(cls: type, version: int) -> Encode:
    source = _EncoderSource()
    source.write_function(message_layout(cls, version))
    return cast(Encode, source.compiled(f"<encode {cls.__name__} v{version}>")["encode"])


def compile_list_encoders(cls: type, version: int, name: str) -> tuple[Any, Any, Any, bool]:
    """Return encoders of the fields before the list `name`, after it, and of its items (pieces.py)."""
    layout = message_layout(cls, version)
    place = next((at for at, field in enumerate(layout.plain) if field.name == name), None)
    assert place is not None, f"{cls.__name__} v{version} has no {name}"
    field = layout.plain[place]
    before, after = _EncoderSource(), _EncoderSource()
    items = _EncoderSource(is_stepped=True)
    before.write_fields(layout, layout.plain[:place], is_end=False)
    after.write_fields(layout, layout.plain[place + 1 :], is_end=True)
    items.write_items(layout, field)
    text = f"{cls.__name__} v{version}"
    return (
        before.compiled(f"<encode what is before {name} of {text}>")["encode"],
        after.compiled(f"<encode what is behind {name} of {text}>")["encode"],
        items.compiled(f"<encode {name} of {text}>")["encode"],
        is_compact(layout, field),
    )


def tag_section(known: list[tuple[int, bytes]], unknown: tuple[tuple[int, bytes], ...]) -> bytes:
    """Encode the tagged fields at the end of a struct, in tag order."""
    fields = sorted([*known, *unknown])
    parts = [write_uvarint(len(fields))]
    for tag, data in fields:
        parts += (write_uvarint(tag), write_uvarint(len(data)), data)
    return b"".join(parts)


class _EncoderSource(Source):
    """Generates an encoder, merging runs of fixed-size writes into one pack."""

    def __init__(self, *, is_stepped: bool = False) -> None:
        super().__init__()
        self.namespace.update(
            Unwritable=Unwritable, uvarint=write_uvarint, pack=pack, tag_section=tag_section
        )
        self.namespace["V"] = tuple(write_uvarint(value) for value in range(128))
        self._is_stepped = is_stepped
        self._codes = ""
        self._values: list[str] = []
        self._later: list[tuple[str, Layout]] = []

    def compiled(self, title: str) -> dict[str, object]:
        exec(compile(self.text(), title, "exec"), self.namespace)
        return self.namespace

    def write_function(self, layout: Layout) -> None:
        self._begin("m")
        self._struct(layout, "m")
        self._end()

    def write_fields(self, layout: Layout, fields: Iterable[Field], *, is_end: bool) -> None:
        """Generate a function for some fields of a message; with `is_end`, also for its tagged fields."""
        self._begin("m")
        if is_end:
            self._absent(layout, "m")
        for field in fields:
            self._field(layout, field, f"m.{field.name}")
        if is_end:
            self._struct_end(layout, "m")
        self._end()

    def write_items(self, layout: Layout, field: Field) -> None:
        """Generate a generator for the items of a list, without the list's length."""
        assert field.item is not None, field
        self._begin("items")
        self.add(f"step = {STEP_ITEMS}")
        self._items(layout, field.item, "items")
        # Never true, but makes the function a generator even without loops.
        self.add("if step < 0: yield")
        self._end()

    def _begin(self, argument: str) -> None:
        self.add(f"def encode({argument}, parts):")
        self.indent += 1
        self.add("w = parts.append")

    def _end(self) -> None:
        self._flush()
        self.indent -= 1
        # A separate function is not a generator, so it writes in one step.
        self._is_stepped = False
        while self._later:
            self._tags_function(*self._later.pop())

    # A run of fixed-size writes

    def _write(self, codes: str, *values: str) -> None:
        self._codes += codes
        self._values += values

    def _run(self, codes: str = "") -> str:
        """The open run as an expression; `codes` are pad bytes to append."""
        return f"{self.packer(self._codes + codes)}({', '.join(self._values)})"

    def _close(self) -> None:
        self._codes = ""
        self._values = []

    def _flush(self) -> None:
        if self._codes:
            self.add(f"w({self._run()})")
            self._close()

    # Structs

    def _struct(self, layout: Layout, var: str) -> None:
        self._absent(layout, var)
        for field in layout.plain:
            self._field(layout, field, f"{var}.{field.name}")
        self._struct_end(layout, var)

    def _absent(self, layout: Layout, var: str) -> None:
        for field in layout.absent:
            if not field.ignorable:
                self.add(f"if not ({self._is_default(field, f'{var}.{field.name}')}): raise Unwritable")

    def _struct_end(self, layout: Layout, var: str) -> None:
        if layout.flexible:
            self._tags(layout, var)
        else:
            self.add(f"if {var}.unknown_tags: raise Unwritable")

    def _tags(self, layout: Layout, var: str) -> None:
        """Generate the tagged section; usually no field is set, and it is one zero byte in the open run."""
        unset = [self._is_default(field, f"{var}.{field.name}") for field in layout.tagged]
        function = self.fresh("tags_")
        self.add(f"if {' and '.join([*unset, f'not {var}.unknown_tags'])}: w({self._run('x')})")
        self.add("else:")
        self.indent += 1
        self._flush()
        self._close()
        if layout.tagged:
            self._later.append((function, layout))
            self.add(f"w({function}({var}))")
        else:
            self.add(f"w(tag_section([], {var}.unknown_tags))")
        self.indent -= 1

    def _tags_function(self, name: str, layout: Layout) -> None:
        self.add(f"def {name}(m):")
        self.indent += 1
        self.add("known = []")
        for field in layout.tagged:
            self.add(f"if not ({self._is_default(field, f'm.{field.name}')}):")
            self.indent += 1
            self.add("parts = []")
            self.add("w = parts.append")
            self._field(layout, field, f"m.{field.name}")
            self._flush()
            self.add(f"known.append(({field.tag}, b''.join(parts)))")
            self.indent -= 1
        self.add("return tag_section(known, m.unknown_tags)")
        self.indent -= 1

    def _is_default(self, field: Field, value: str) -> str:
        if field.default is None:
            if field.kind is Kind.STRUCT and not _is_nullable(field):
                # A non-nullable tagged struct is omitted if all its fields are at their defaults.
                assert field.struct is not None, field
                blank = self.constant(f"blank_{field.struct.__name__}", field.struct())
                return f"({value} is None or {value} == {blank})"
            return f"{value} is None"
        if field.default is list:
            return f"({value} is not None and not {value})" if _is_nullable(field) else f"not {value}"
        if isinstance(field.default, type):
            blank = self.constant(f"blank_{field.default.__name__}", field.default())
            return f"{value} == {blank}"
        return f"{value} == {field.default!r}"

    # Fields

    def _field(self, layout: Layout, field: Field, value: str) -> None:
        if field.kind.is_fixed:
            if field.kind is Kind.UUID:
                # pack() would silently pad or truncate a value of another length.
                self.add(f"if len({value}) != 16: raise Unwritable")
            self._write(field.kind.value, value)
            return
        var = self.fresh("v")
        self.add(f"{var} = {value}")
        if layout.version not in field.null:
            self._present(layout, field, var)
            return
        self._flush()
        self.add(f"if {var} is None: w({self._null(layout, field)!r})")
        self.add("else:")
        self.indent += 1
        if field.kind is Kind.STRUCT:
            self._write("b", "1")
        self._present(layout, field, var)
        self._flush()
        self.indent -= 1

    def _null(self, layout: Layout, field: Field) -> bytes:
        if field.kind is Kind.STRUCT:
            return b"\xff" if field.tag is None else b"\0"
        if is_compact(layout, field):
            return b"\0"
        return b"\xff\xff" if field.kind is Kind.STRING else b"\xff\xff\xff\xff"

    def _present(self, layout: Layout, field: Field, var: str) -> None:
        if field.kind is Kind.STRUCT:
            self._struct(nested_layout(layout, field), var)
        elif field.kind is Kind.ARRAY:
            self._array(layout, field, var)
        else:
            if field.kind is Kind.STRING:
                self.add(f"{var} = {var}.encode()")
            length = self._length(layout, field, var)
            if field.kind is Kind.STRING:
                self.add(f"if {length} > {STRING_BYTES_MAX}: raise Unwritable")
            self._flush()
            self._flush_length(layout, field, length)
            self.add(f"w({var})")

    def _length(self, layout: Layout, field: Field, var: str) -> str:
        """Generate the write of a length; a fixed-size one joins the open run."""
        length = self.fresh("n")
        self.add(f"{length} = len({var})")
        if not is_compact(layout, field):
            self._write("h" if field.kind is Kind.STRING else "i", length)
        return length

    def _flush_length(self, layout: Layout, field: Field, length: str) -> None:
        if is_compact(layout, field):
            self.add(f"w(V[{length} + 1] if {length} < 127 else uvarint({length} + 1))")

    def _array(self, layout: Layout, field: Field, var: str) -> None:
        item = field.item
        assert item is not None, field
        if item.kind is Kind.STRING:
            # A str is a sequence of str, too: groups="ab" would be sent as ["a", "b"].
            self.add(f"if type({var}) is str: raise Unwritable")
        length = self._length(layout, field, var)
        self._flush()
        self._flush_length(layout, field, length)
        if item.kind is Kind.UUID:
            self.add(f"{var} = b''.join({var})")
            self.add(f"if len({var}) != 16 * {length}: raise Unwritable")
            self.add(f"w({var})")
        elif item.kind.is_fixed:
            self.add(f"w(pack(f'>{{{length}}}{item.kind.value}', *{var}))")
        else:
            self._items(layout, item, var)

    def _items(self, layout: Layout, item: Field, var: str) -> None:
        element = self.fresh("m")
        self.add(f"for {element} in {var}:")
        self.indent += 1
        if item.kind is Kind.STRUCT:
            self._struct(nested_layout(layout, item), element)
        else:
            self._field(layout, item, element)
        self._flush()
        if self._is_stepped:
            self.add("step -= 1")
            self.add("if step == 0:")
            self.indent += 1
            self.add(f"step = {STEP_ITEMS}")
            self.add("yield")
            self.indent -= 1
        self.indent -= 1


def _is_nullable(field: Field) -> bool:
    return field.null.first <= field.null.last
