"""Find the error in bytes that did not decode, or in a message that did not encode.

A slow walk over the layout that checks everything and tracks the path. It runs only after generated code has
failed, so valid messages pay nothing for it.
"""

from struct import error as StructError
from struct import pack, unpack_from
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.layout import (
    FIXED_SIZES,
    Layout,
    is_compact,
    message_layout,
    nested_layout,
    smallest_field,
)
from barnabas.protocol.wire import (
    ITEMS_MAX,
    STRING_BYTES_MAX,
    UNKNOWN_TAGS_MAX,
    BadWire,
    read_uvarint,
)

# Maximum number of fields to walk, which takes a few milliseconds. Errors after them stay unexplained.
FIELDS_MAX: Final = 5_000

# The exceptions of a generated decoder for bad bytes; it raises BadWire itself.
DECODE_FAILURES = (BadWire, StructError, IndexError, UnicodeDecodeError)


def explain_bytes(cls: type, version: int, buf: bytes, at: int) -> Malformed:
    """Walk the frame again and return the error."""
    walk = _Walk(buf, at, f"{cls.__name__} v{version}")
    try:
        walk.struct(message_layout(cls, version), "")
    except Malformed as found:
        return found
    return Malformed("does not decode", where=walk.where(""))


class _Walk:
    def __init__(self, buf: bytes, at: int, message: str) -> None:
        self.buf = buf
        self.at = at
        self.message = message
        self.fields_left = FIELDS_MAX

    def where(self, path: str) -> str:
        field = f", {path.lstrip('.')}" if path else ""
        return f"{self.message}{field}, byte {self.at}"

    def bad(self, what: str, path: str) -> Malformed:
        return Malformed(what, where=self.where(path))

    def struct(self, layout: Layout, path: str) -> None:
        for field in layout.plain:
            self.field(layout, field, f"{path}.{field.name}")
        if layout.flexible:
            self.tags(layout, path)

    def tags(self, layout: Layout, path: str) -> None:
        known = {field.tag: field for field in layout.tagged}
        count = self.uvarint(f"{path}.tagged fields")
        if count > UNKNOWN_TAGS_MAX:
            raise self.bad(
                f"{count} fields exceed the maximum of {UNKNOWN_TAGS_MAX}", f"{path}.tagged fields"
            )
        for _ in range(count):
            tag = self.uvarint(f"{path}.tag")
            field = known.get(tag)
            name = f"{path}.{field.name}" if field else f"{path}.tag {tag}"
            size = self.uvarint(name)
            if size < 0:
                raise self.bad(f"size {size}", name)
            self.need(size, name)
            stop = self.at + size
            if field is None:
                self.at = stop
                continue
            self.field(layout, field, name)
            if self.at != stop:
                raise self.bad(f"tagged field of {size} bytes ends at byte {self.at}, expected {stop}", name)

    def field(self, layout: Layout, field: Field, path: str) -> None:
        self.fields_left -= 1
        if self.fields_left < 0:
            raise self.bad(f"does not decode, but the first {FIELDS_MAX} fields do", path)
        if field.kind.is_fixed:
            self.need(FIXED_SIZES[field.kind], path)
            self.at += FIXED_SIZES[field.kind]
        elif field.kind is Kind.STRUCT:
            if layout.version in field.null:
                self.need(1, path)
                marker = self.buf[self.at]
                self.at += 1
                if marker > 127 or (field.tag is not None and marker == 0):
                    return
            self.struct(nested_layout(layout, field), path)
        else:
            self.sized(layout, field, path)

    def sized(self, layout: Layout, field: Field, path: str) -> None:
        length = self.length(layout, field, path)
        if length < 0:
            if layout.version not in field.null:
                raise self.bad("null is not allowed" if length == -1 else f"length {length}", path)
            return
        if field.kind is Kind.ARRAY:
            assert field.item is not None, field
            self.need(length * smallest_field(layout, field.item), path, f"{length} items take at least")
            if length > ITEMS_MAX:
                raise self.bad(f"{length} items exceed the maximum of {ITEMS_MAX} in one message", path)
            for index in range(length):
                self.field(layout, field.item, f"{path}[{index}]")
            return
        if field.kind is Kind.STRING and length > STRING_BYTES_MAX:
            raise self.bad(f"string of {length} bytes exceeds the maximum of {STRING_BYTES_MAX}", path)
        self.need(length, path)
        if field.kind is Kind.STRING:
            self.utf8(length, path)
        self.at += length

    def utf8(self, length: int, path: str) -> None:
        try:
            str(self.buf[self.at : self.at + length], "utf-8")
        except UnicodeDecodeError as error:
            raise self.bad(f"invalid UTF-8: {error.reason}", path) from None

    def length(self, layout: Layout, field: Field, path: str) -> int:
        if is_compact(layout, field):
            return self.uvarint(path) - 1
        code, size = ("h", 2) if field.kind is Kind.STRING else ("i", 4)
        self.need(size, path)
        (length,) = unpack_from(f">{code}", self.buf, self.at)
        self.at += size
        assert isinstance(length, int)
        return length

    def uvarint(self, path: str) -> int:
        try:
            value, self.at = read_uvarint(self.buf, self.at)
        except IndexError:
            raise self.bad("the frame ends inside a varint", path) from None
        except BadWire:
            raise self.bad("varint has more than five bytes", path) from None
        return value

    def need(self, size: int, path: str, of: str = "") -> None:
        left = len(self.buf) - self.at
        if size > left:
            raise self.bad(f"{of} {size} bytes, but the frame has {left} left".lstrip(), path)


def explain_message(message: object, version: int) -> tuple[str, str]:
    """Return the error of the first field that cannot be written, and its path."""
    cls = type(message)
    name = f"{cls.__name__} v{version}"
    found = _first_fault(message_layout(cls, version), message, "")
    if found is None:
        return "does not encode", name
    return found[0], f"{name}, {found[1].lstrip('.')}"


def _first_fault(layout: Layout, value: object, path: str) -> tuple[str, str] | None:
    if not isinstance(value, layout.cls):
        return f"is {type(value).__name__}, not {layout.cls.__name__}", path
    for field in layout.absent:
        default = field.default() if isinstance(field.default, type) else field.default
        if not field.ignorable and getattr(value, field.name, default) != default:
            return f"is set, but version {layout.version} does not have it", f"{path}.{field.name}"
    if not layout.flexible and getattr(value, "unknown_tags", None):
        return f"are set, but version {layout.version} has no tagged fields", f"{path}.unknown_tags"
    for field in (*layout.plain, *layout.tagged):
        fault = _field_fault(layout, field, getattr(value, field.name, None), f"{path}.{field.name}")
        if fault is not None:
            return fault
    return None


def _field_fault(layout: Layout, field: Field, value: object, path: str) -> tuple[str, str] | None:
    if value is None:
        may_be_null = layout.version in field.null or (field.tag is not None and field.kind is Kind.STRUCT)
        return None if may_be_null else ("null is not allowed", path)
    if field.kind is Kind.STRUCT:
        return _first_fault(nested_layout(layout, field), value, path)
    if field.kind is Kind.ARRAY:
        assert field.item is not None, field
        if not isinstance(value, list | tuple):
            return f"is {type(value).__name__}, not a list", path
        faults = (_field_fault(layout, field.item, item, f"{path}[{i}]") for i, item in enumerate(value))
        return next((fault for fault in faults if fault is not None), None)
    return _value_fault(field, value, path)


def _value_fault(field: Field, value: object, path: str) -> tuple[str, str] | None:
    if field.kind is Kind.STRING:
        if not isinstance(value, str):
            return f"is {type(value).__name__}, not str", path
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            return f"cannot be encoded as UTF-8: {error.reason}", path
        return (
            (f"has {size} bytes, the maximum is {STRING_BYTES_MAX}", path)
            if size > STRING_BYTES_MAX
            else None
        )
    if field.kind is Kind.UUID:
        good = isinstance(value, bytes) and len(value) == 16
        return None if good else (f"is {value!r}, not 16 bytes", path)
    if field.kind.is_fixed:
        try:
            pack(f">{field.kind.value}", value)
        except StructError as error:
            return f"is {value!r}: {error}", path
    if field.kind is Kind.BYTES and not isinstance(value, bytes | bytearray | memoryview):
        return f"is {type(value).__name__}, not bytes", path
    # Records may be anything that a connection can send, such as a file range.
    if field.kind is Kind.RECORDS and (isinstance(value, str) or not hasattr(value, "__len__")):
        return f"is {type(value).__name__}, not records", path
    return None
