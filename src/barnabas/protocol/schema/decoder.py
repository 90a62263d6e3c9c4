"""Generate the decode function of one message at one version as straight-line Python.

The result reads like hand-written code: adjacent fixed-size fields are one unpack, nested structs are
inlined, arrays are loops. It checks only what is needed to stay inside the frame and to terminate: a length
past the end of the frame leaves the position behind the end, where the next read, or the last line, fails.
After a failure, explain.py walks the frame again, slowly, to find the error.

There are two forms. A decoder reads a message at once. A stepped decoder is a generator for frames that would
block the event loop for too long: it yields after every STEP_ITEMS items, and rejects more than ITEMS_MAX.
"""

from collections.abc import Callable, Generator
from functools import partial
from struct import unpack_from
from typing import Any, Final, cast

from barnabas.base.errors import Malformed
from barnabas.protocol.schema.explain import DECODE_FAILURES, explain_bytes
from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.layout import (
    FIXED_SIZES,
    Layout,
    is_compact,
    message_layout,
    nested_layout,
    smallest_field,
)
from barnabas.protocol.schema.source import Source
from barnabas.protocol.schema.struct import default_source
from barnabas.protocol.wire import (
    ITEMS_MAX,
    STRING_BYTES_MAX,
    UNKNOWN_TAGS_MAX,
    BadWire,
    read_uvarint,
    rest_of_uvarint,
)

# (frame, position) -> (message, position after it); raises Malformed and nothing else.
Decode = Callable[[bytes, int], tuple[Any, int]]
# A stepped decoder; it returns the result of Decode and the total number of array items.
Steps = Generator[None, None, tuple[Any, int, int]]
SteppedDecode = Callable[[bytes, int], Steps]

# Items that a stepped decoder reads in about a millisecond.
STEP_ITEMS: Final = 256


def compile_decoder(cls: type, version: int) -> Decode:
    layout = message_layout(cls, version)
    source = _DecoderSource()
    source.namespace.update(BadWire=BadWire, keep_tags=_keep_tags)
    source.namespace.update(read=read_uvarint, rest=rest_of_uvarint)
    source.namespace.update(FAILURES=DECODE_FAILURES, explain=partial(explain_bytes, cls, version))
    source.write_function(layout)
    exec(compile(source.text(), f"<decode {cls.__name__} v{version}>", "exec"), source.namespace)
    return cast(Decode, source.namespace["decode"])


def compile_stepped_decoder(cls: type, version: int) -> SteppedDecode:
    layout = message_layout(cls, version)
    source = _DecoderSource(is_stepped=True)
    source.namespace.update(BadWire=BadWire, keep_tags=_keep_tags)
    source.namespace.update(read=read_uvarint, rest=rest_of_uvarint)
    source.namespace.update(TooManyItems=_TooManyItems)
    source.namespace.update(FAILURES=DECODE_FAILURES, explain=partial(_refuse_stepped, cls, version))
    source.write_function(layout)
    exec(compile(source.text(), f"<decode {cls.__name__} v{version} in steps>", "exec"), source.namespace)
    return cast(SteppedDecode, source.namespace["decode"])


class _TooManyItems(BadWire):
    pass


def _refuse_stepped(cls: type, version: int, failure: Exception, at: int) -> Malformed:
    """Return the error for a large frame. Walking it again, as explain_bytes() does, would take seconds."""
    where = f"{cls.__name__} v{version}, after byte {at}"
    if isinstance(failure, _TooManyItems):
        return Malformed(f"more than {ITEMS_MAX} items in one message", where=where)
    return Malformed("does not decode", where=where)


def _keep_tags(message: Any, buf: bytes, p: int, end: int) -> int:
    """Read the tagged fields of a struct that declares none, and keep all: a newer peer sent them."""
    unknown = []
    count, p = read_uvarint(buf, p)
    if count > UNKNOWN_TAGS_MAX:
        raise BadWire
    for _ in range(count):
        tag, p = read_uvarint(buf, p)
        size, p = read_uvarint(buf, p)
        if size < 0 or p + size > end:
            raise BadWire
        unknown.append((tag, buf[p : p + size]))
        p += size
    message.unknown_tags = tuple(unknown)
    return p


class _DecoderSource(Source):
    """Generates a decoder, merging runs of fixed-size reads into one unpack."""

    def __init__(self, *, is_stepped: bool = False) -> None:
        super().__init__()
        self._is_stepped = is_stepped
        self._codes = ""
        self._targets: list[str] = []
        self._later: list[tuple[str, Layout]] = []

    def write_function(self, layout: Layout) -> None:
        self.add("def decode(buf, start):")
        self.indent += 1
        self.add("p = start")
        self.add("end = len(buf)")
        if self._is_stepped:
            self.add(f"left, step = {ITEMS_MAX}, {STEP_ITEMS}")
        self.add("try:")
        self.indent += 1
        self._struct(layout, "m")
        self._flush()
        self.add("if p > end: raise BadWire")
        self.indent -= 1
        if self._is_stepped:
            self.add("except FAILURES as failure: raise explain(failure, p) from None")
            # Never true, but makes the function a generator even for a message without arrays.
            self.add("if step < 0: yield")
            self.add(f"return m, p, {ITEMS_MAX} - left")
        else:
            self.add("except FAILURES: raise explain(buf, start) from None")
            self.add("return m, p")
        self.indent -= 1
        # A separate function is not a generator, so it reads in one step.
        self._is_stepped = False
        while self._later:
            self._tags_function(*self._later.pop())

    # A run of fixed-size reads

    def _read(self, codes: str, target: str) -> None:
        self._codes += codes
        self._targets.append(target)

    def _flush(self) -> None:
        if not self._codes:
            return
        if self._codes == "B":
            self.add(f"{self._targets[0]} = buf[p]")
            self.add("p += 1")
        else:
            unpack, size = self.unpacker(self._codes)
            self.add(f"{', '.join(self._targets)}, = {unpack}(buf, p)")
            self.add(f"p += {size}")
        self._codes = ""
        self._targets = []

    # Structs

    def _struct(self, layout: Layout, var: str) -> None:
        name = self.constant(layout.cls.__name__, layout.cls)
        # Bypass the constructor, because every field is set below.
        new = self.constant(f"new_{name}", layout.cls.__new__)
        self.add(f"{var} = {new}({name})")
        for field in layout.absent:
            self.add(f"{var}.{field.name} = {default_source(field, self.namespace)}")
        for field in layout.plain:
            self._field(layout, field, f"{var}.{field.name}")
        if layout.flexible:
            self._tags(layout, var)
        else:
            self.add(f"{var}.unknown_tags = ()")

    def _tags(self, layout: Layout, var: str) -> None:
        """Generate a separate function for tagged fields, which are rare."""
        for field in layout.tagged:
            self.add(f"{var}.{field.name} = {default_source(field, self.namespace)}")
        self.add(f"{var}.unknown_tags = ()")
        count = self.fresh("n")
        self._read("B", count)
        self._flush()
        function = self.fresh("tags_") if layout.tagged else "keep_tags"
        self.add(f"if {count}: p = {function}({var}, buf, p - 1, end)")
        if self._is_stepped:
            self.add(f"left -= len({var}.unknown_tags)")
        if layout.tagged:
            self._later.append((function, layout))

    def _tags_function(self, name: str, layout: Layout) -> None:
        self.add(f"def {name}(m, buf, p, end):")
        self.indent += 1
        self.add("unknown = []")
        self.add("count, p = read(buf, p)")
        self.add(f"if count > {UNKNOWN_TAGS_MAX}: raise BadWire")
        self.add("for _ in range(count):")
        self.indent += 1
        self.add("tag, p = read(buf, p)")
        self.add("size, p = read(buf, p)")
        self.add("stop = p + size")
        self.add("if size < 0 or stop > end: raise BadWire")
        for field in layout.tagged:
            self.add(f"if tag == {field.tag}:")
            self.indent += 1
            self._field(layout, field, f"m.{field.name}")
            self._flush()
            self.add("if p != stop: raise BadWire")
            self.add("continue")
            self.indent -= 1
        self.add("unknown.append((tag, buf[p:stop]))")
        self.add("p = stop")
        self.indent -= 1
        self.add("if unknown: m.unknown_tags = tuple(unknown)")
        self.add("return p")
        self.indent -= 1

    # Fields

    def _field(self, layout: Layout, field: Field, target: str) -> None:
        if field.kind.is_fixed:
            self._read(field.kind.value, target)
        elif field.kind is Kind.STRUCT:
            self._nested(layout, field, target)
        else:
            self._sized(layout, field, target)

    def _nested(self, layout: Layout, field: Field, target: str) -> None:
        nullable = layout.version in field.null
        if nullable:
            # Kafka marks a null struct with -1, but a null tagged struct with 0.
            marker, least = self.fresh("n"), 0 if field.tag is None else 1
            self._read("b", marker)
            self._flush()
            self.add(f"if {marker} < {least}: {target} = None")
            self.add("else:")
            self.indent += 1
        var = self.fresh("m")
        self._struct(nested_layout(layout, field), var)
        # The run may stay open, because its targets are attributes of an existing object.
        if nullable:
            self._flush()
        self.add(f"{target} = {var}")
        if nullable:
            self.indent -= 1

    def _sized(self, layout: Layout, field: Field, target: str) -> None:
        """Generate the read of a string, bytes, records or array: a length, then bytes or items."""
        length = self._length(layout, field)
        if field.position:
            struct = target.removesuffix(f".{field.name}")
            self.add(f"{struct}.{field.position} = p if {length} >= 0 else -1")
        if layout.version in field.null:
            self.add(f"if {length} < 0: {target} = None")
            self.add("else:")
            self.indent += 1
        else:
            self.add(f"if {length} < 0: raise BadWire")
        if field.kind is Kind.ARRAY:
            self._array(layout, field, target, length)
        else:
            self._bytes(field, target, length)
        if layout.version in field.null:
            self.indent -= 1

    def _length(self, layout: Layout, field: Field) -> str:
        length = self.fresh("n")
        if is_compact(layout, field):
            self._read("B", length)
            self._flush()
            self.add(f"if {length} > 127: {length}, p = rest(buf, p, {length})")
            self.add(f"{length} -= 1")
        else:
            self._read("h" if field.kind is Kind.STRING else "i", length)
            self._flush()
        return length

    def _bytes(self, field: Field, target: str, length: str) -> None:
        self.add(f"e = p + {length}")
        if field.kind is Kind.STRING:
            self.add(f"if {length} > {STRING_BYTES_MAX}: raise BadWire")
            self.add(f"{target} = str(buf[p:e], 'utf-8')")
        elif field.kind is Kind.BYTES:
            self.add(f"{target} = buf[p:e]")
        else:
            self.add(f"{target} = memoryview(buf)[p:e]")
        self.add("p = e")

    def _array(self, layout: Layout, field: Field, target: str, length: str) -> None:
        item = field.item
        assert item is not None, field
        least = smallest_field(layout, item)
        assert least > 0, f"{layout.cls.__name__}.{field.name}: nothing bounds the number of items"
        self.add(f"if {length} * {least} > end - p: raise BadWire")
        if self._is_stepped:
            self.add(f"left -= {length}")
            self.add("if left < 0: raise TooManyItems")
        if item.kind is Kind.UUID:
            self.add(f"{target} = [buf[i:i + 16] for i in range(p, p + {length} * 16, 16)]")
            self.add(f"p += {length} * 16")
        elif item.kind.is_fixed:
            self.namespace["unpack_from"] = unpack_from
            self.add(f"{target} = list(unpack_from(f'>{{{length}}}{item.kind.value}', buf, p))")
            self.add(f"p += {length} * {FIXED_SIZES[item.kind]}")
        else:
            self._items(layout, item, target, length)

    def _items(self, layout: Layout, item: Field, target: str, length: str) -> None:
        items, var = self.fresh("items"), self.fresh("m")
        self.add(f"{target} = {items} = []")
        self.add(f"for _ in range({length}):")
        self.indent += 1
        if item.kind is Kind.STRUCT:
            self._struct(nested_layout(layout, item), var)
        else:
            self._field(layout, item, var)
        self._flush()
        self.add(f"{items}.append({var})")
        if self._is_stepped:
            self.add("step -= 1")
            self.add("if step == 0:")
            self.indent += 1
            self.add(f"step = {STEP_ITEMS}")
            self.add("yield")
            self.indent -= 1
        self.indent -= 1
