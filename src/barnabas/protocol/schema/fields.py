"""The field functions of declarations: int32("9+", default=-1), array(FetchPartition), ...

For the type checker each function returns the Python type of the field, so that a declaration reads as an
ordinary class; at run time it returns a Field, which struct.py collects. `versions` are those with the
field, `null` those in which it may be null, `tag` makes it a tagged field. A field that is not `ignorable`
must be at its default when a message is written in a version that lacks it.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, TypeVar, cast

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.schema.versions import ALWAYS, NEVER, Versions, parse_versions

T = TypeVar("T")

# Anything with a length that a connection can send: bytes, a view of a frame, a range of a file.
Records = bytes | memoryview


class Kind(Enum):
    """A wire type; the value of a fixed-size one is its struct code."""

    INT8 = "b"
    INT16 = "h"
    INT32 = "i"
    INT64 = "q"
    UINT16 = "H"
    UINT32 = "I"
    FLOAT64 = "d"
    BOOL = "?"
    UUID = "16s"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"
    STRUCT = "struct"
    ARRAY = "array"

    @property
    def is_fixed(self) -> bool:
        return self not in _VARIABLE


_VARIABLE = frozenset({Kind.STRING, Kind.BYTES, Kind.RECORDS, Kind.STRUCT, Kind.ARRAY})


class Field:
    """One field of a declaration, for all versions."""

    __slots__ = (
        "compact",
        "default",
        "ignorable",
        "item",
        "kind",
        "name",
        "null",
        "position",
        "struct",
        "tag",
        "versions",
    )

    def __init__(
        self,
        kind: Kind,
        versions: str,
        default: object,
        null: str = "none",
        tag: int | None = None,
        ignorable: bool = False,
        *,
        struct: type | None = None,
        item: "Field | None" = None,
        compact: bool = True,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.versions: Versions = ALWAYS if versions == "0+" else parse_versions(versions)
        self.null: Versions = NEVER if null == "none" else parse_versions(null)
        self.tag = tag
        self.default = default
        self.ignorable = ignorable
        self.struct = struct
        self.item = item
        self.compact = compact
        # An attribute with the position of the records in the decoded frame; set by position_of().
        self.position = ""

    def __repr__(self) -> str:
        return f"{self.name}: {self.kind.name.lower()} {self.versions}"


class Position:
    """Declares the attribute with the position of a `records` field."""

    __slots__ = ("field",)

    def __init__(self, field: Field) -> None:
        self.field = field


def int8(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    return cast(int, Field(Kind.INT8, versions, default, "none", tag, ignorable))


def int16(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    return cast(int, Field(Kind.INT16, versions, default, "none", tag, ignorable))


def int32(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    return cast(int, Field(Kind.INT32, versions, default, "none", tag, ignorable))


def int64(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    return cast(int, Field(Kind.INT64, versions, default, "none", tag, ignorable))


def uint16(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    return cast(int, Field(Kind.UINT16, versions, default, "none", tag, ignorable))


def uint32(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    return cast(int, Field(Kind.UINT32, versions, default, "none", tag, ignorable))


def float64(
    versions: str = "0+", *, default: float = 0.0, tag: int | None = None, ignorable: bool = False
) -> float:
    return cast(float, Field(Kind.FLOAT64, versions, default, "none", tag, ignorable))


def boolean(
    versions: str = "0+", *, default: bool = False, tag: int | None = None, ignorable: bool = False
) -> bool:
    return cast(bool, Field(Kind.BOOL, versions, default, "none", tag, ignorable))


def uuid(versions: str = "0+", *, tag: int | None = None, ignorable: bool = False) -> Uuid:
    return cast(Uuid, Field(Kind.UUID, versions, ZERO_UUID, "none", tag, ignorable))


def string(
    versions: str = "0+",
    *,
    null: str = "none",
    default: str | None = "",
    tag: int | None = None,
    ignorable: bool = False,
    compact: bool = True,
) -> str:
    """`compact=False` keeps the two-byte length in flexible versions, as only the request header does."""
    return cast(str, Field(Kind.STRING, versions, default, null, tag, ignorable, compact=compact))


def binary(
    versions: str = "0+",
    *,
    null: str = "none",
    default: bytes | None = b"",
    tag: int | None = None,
    ignorable: bool = False,
) -> bytes:
    return cast(bytes, Field(Kind.BYTES, versions, default, null, tag, ignorable))


def records(versions: str = "0+", *, null: str = "none") -> Records:
    """Opaque record batches: a view of the frame when decoded, anything with a length when encoded."""
    default = None if null != "none" else b""
    return cast(bytes, Field(Kind.RECORDS, versions, default, null))


def position_of(records: object, *, init: Literal[False] = False) -> int:
    """Declare an attribute with the position of `records` in the frame, which is records.obj.

    It is not on the wire. Decoders set it; it is -1 for records that do not come from a frame.
    """
    return cast(int, Position(cast(Field, records)))


def nested(
    of: type[T],
    versions: str = "0+",
    *,
    null: str = "none",
    default: type[T] | None = None,
    tag: int | None = None,
    ignorable: bool = False,
) -> T:
    """A struct inside a struct. Nullable and tagged structs are None unless set: a tagged struct that is
    None is not sent, and readers assume its defaults. `default` is the class of a nullable struct whose
    default is not null."""
    if default is None and null == "none" and tag is None:
        default = of
    return cast(T, Field(Kind.STRUCT, versions, default, null, tag, ignorable, struct=of))


def array(
    of: Callable[..., T],
    versions: str = "0+",
    *,
    null: str = "none",
    default: Any = list,
    tag: int | None = None,
    ignorable: bool = False,
) -> list[T]:
    """A list of structs (pass the class) or of plain values (pass the function: array(int32))."""
    if isinstance(of, type):
        item = Field(Kind.STRUCT, "0+", None, struct=of)
    else:
        item = cast(Field, of())
    return cast(list[T], Field(Kind.ARRAY, versions, default, null, tag, ignorable, item=item))
