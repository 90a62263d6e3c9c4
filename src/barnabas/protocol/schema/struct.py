"""Turn a declaration into a class: slots, keyword constructor, equality, and its schema.

A declaration is an ordinary class body whose values come from the functions of fields.py. The constructor is
generated at the first call, because most programs construct few of the messages.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar, cast, dataclass_transform

from barnabas.protocol.schema.fields import Field
from barnabas.protocol.schema.versions import ALWAYS, NEVER, Versions, parse_versions

T = TypeVar("T")

TunedDecoder = Callable[[int, bytes, int], tuple[Any, int]]
TunedEncoder = Callable[[int, Any, list[bytes]], bool]


class Schema:
    """A declaration for all versions. A struct is flexible if the message around it is."""

    __slots__ = (
        "fields",
        "flexible",
        "key",
        "kind",
        "listeners",
        "name",
        "tuned_decoder",
        "tuned_encoder",
        "versions",
    )

    def __init__(self, name: str, fields: tuple[Field, ...]) -> None:
        self.name = name
        self.fields = fields
        self.versions: Versions = ALWAYS
        self.flexible: Versions = NEVER
        self.kind = "struct"
        self.key: int | None = None
        self.listeners: tuple[str, ...] = ()
        # A hand-written decoder: (version, frame, position) -> (message, position after it).
        self.tuned_decoder: TunedDecoder | None = None
        # A hand-written encoder: (version, message, parts) -> whether it has encoded the message; otherwise
        # the generated one does.
        self.tuned_encoder: TunedEncoder | None = None


def schema_of(cls: type) -> Schema:
    return cast(Schema, cls.__dict__["__schema__"])


@dataclass_transform(kw_only_default=True)
def struct(cls: type[T]) -> type[T]:
    """A part of a message."""
    return _build(cls)


def tuned(
    native: type[T], decoder: TunedDecoder | None = None, encoder: TunedEncoder | None = None
) -> Callable[[type], type[T]]:
    """A struct with a hand-written class, and optionally decoder and encoder, in a kernel.

    Goes below @request or @response. The kernel's class gets the schema of the declaration; it must have the
    declared fields and defaults, which a test checks. The declaration has a different name, so that mypyc
    takes the message for the kernel's class, with the fields of a C struct.
    """

    def decorate(cls: type) -> type[T]:
        schema = Schema(native.__name__, _take_fields(cls))
        schema.tuned_decoder = decoder
        schema.tuned_encoder = encoder
        for name, value in {"__schema__": schema, **_METHODS}.items():
            setattr(native, name, value)
        return native

    return decorate


@dataclass_transform(kw_only_default=True)
def message(
    kind: str,
    *,
    versions: str,
    flexible: str = "none",
    key: int | None = None,
    listeners: tuple[str, ...] = (),
) -> Callable[[type[T]], type[T]]:
    """A whole message. `key` is the API key of a request or response, or the type of a stored record."""

    def decorate(cls: type[T]) -> type[T]:
        built = cls if "__schema__" in cls.__dict__ else _build(cls)
        schema = schema_of(built)
        schema.kind = kind
        schema.versions = parse_versions(versions)
        schema.flexible = parse_versions(flexible)
        schema.key = key
        schema.listeners = listeners
        return built

    return decorate


@dataclass_transform(kw_only_default=True)
def request(
    key: int, *, versions: str, flexible: str, listeners: str = "broker"
) -> Callable[[type[T]], type[T]]:
    return message(
        "request", key=key, versions=versions, flexible=flexible, listeners=tuple(listeners.split())
    )


@dataclass_transform(kw_only_default=True)
def response(key: int, *, versions: str, flexible: str) -> Callable[[type[T]], type[T]]:
    return message("response", key=key, versions=versions, flexible=flexible)


def _build(cls: type[T]) -> type[T]:
    """Create the class again with slots, which cannot be added to an existing class."""
    fields = _take_fields(cls)
    names = {field.name for field in fields} | {"__dict__", "__weakref__"}
    body = {name: value for name, value in cls.__dict__.items() if name not in names}
    body["__slots__"] = (*(field.name for field in fields), "unknown_tags")
    body["__schema__"] = Schema(cls.__name__, fields)
    body["__init__"] = _first_init
    body.update(_METHODS)
    return cast(type[T], type(cls.__name__, cls.__bases__, body))


def _take_fields(cls: type) -> tuple[Field, ...]:
    fields = []
    for name, value in cls.__dict__.items():
        if isinstance(value, Field):
            value.name = name
            fields.append(value)
    return tuple(fields)


def default_source(field: Field, constants: dict[str, object]) -> str:
    """An expression for a default value; it creates a new object for a mutable default."""
    if field.default is list:
        return "[]"
    if isinstance(field.default, type):
        constants[field.default.__name__] = field.default
        return f"{field.default.__name__}()"
    return repr(field.default)


def _first_init(self: object, **values: object) -> None:
    cls = type(self)
    init = _compile_init(schema_of(cls))
    type.__setattr__(cls, "__init__", init)
    init(self, **values)


def _compile_init(schema: Schema) -> Callable[..., None]:
    constants: dict[str, object] = {"UNSET": object()}
    arguments, body = [], []
    for field in schema.fields:
        default = default_source(field, constants)
        is_fresh = field.default is list or isinstance(field.default, type)
        arguments.append(f"{field.name}={'UNSET' if is_fresh else default}")
        value = f"{default} if {field.name} is UNSET else {field.name}" if is_fresh else field.name
        body.append(f"    self.{field.name} = {value}")
    head = ", ".join(["self", "*", *arguments, "unknown_tags=()"])
    source = "\n".join([f"def __init__({head}):", *body, "    self.unknown_tags = unknown_tags"])
    exec(compile(source, f"<{schema.name} constructor>", "exec"), constants)
    return cast(Callable[..., None], constants["__init__"])


def _equal(self: object, other: object) -> bool:
    if type(other) is not type(self):
        return False
    values = _values(type(self))
    return bool(values(self) == values(other))


def _values(cls: type) -> Callable[[object], Any]:
    return attrgetter(*(field.name for field in schema_of(cls).fields), "unknown_tags")


def _show(self: Any) -> str:
    """repr() with only the fields that are not at their defaults, for short log lines."""
    parts = []
    for field in schema_of(type(self)).fields:
        value = getattr(self, field.name)
        default = field.default() if isinstance(field.default, type) else field.default
        if value != default:
            parts.append(f"{field.name}={value!r}")
    if self.unknown_tags:
        parts.append(f"unknown_tags={self.unknown_tags!r}")
    return f"{type(self).__name__}({', '.join(parts)})"


_METHODS: dict[str, Any] = {"__eq__": _equal, "__repr__": _show, "__hash__": None}
