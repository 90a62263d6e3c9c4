"""Turn a declaration into a class: slots, keyword constructor, equality, and its schema.

A declaration is an ordinary class body whose values come from the functions of fields.py. The constructor is
generated at the first call, because most programs construct few of the messages.

For tuned messages and their structs the build writes and compiles classes (protocol/tuned/). Where they are
installed, a declaration turns into the compiled class, with the same fields, methods and schema.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from types import ModuleType
from typing import Any, TypeVar, cast, dataclass_transform

from barnabas.protocol.schema.fields import Field, Position, position_of
from barnabas.protocol.schema.versions import ALWAYS, NEVER, Versions, parse_versions

T = TypeVar("T")

TunedDecoder = Callable[[int, bytes, int], tuple[Any, int]]
TunedEncoder = Callable[[int, Any, list[bytes]], bool]


class Schema:
    """A declaration for all versions. A struct is flexible if the message around it is."""

    __slots__ = (
        "fields",
        "flexible",
        "is_tuned",
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
        # Whether the build generates a class, a decoder and an encoder.
        self.is_tuned = False
        # The decoder, if it is installed: (version, frame, position) -> (message, position after it).
        self.tuned_decoder: TunedDecoder | None = None
        # The encoder, if it is installed: (version, message, parts) -> whether it has encoded the message;
        # otherwise the generic one does.
        self.tuned_encoder: TunedEncoder | None = None


def schema_of(cls: type) -> Schema:
    return cast(Schema, cls.__dict__["__schema__"])


@dataclass_transform(kw_only_default=True, field_specifiers=(position_of,))
def struct(cls: type[T]) -> type[T]:
    """A part of a message."""
    return _build(cls)


@dataclass_transform(kw_only_default=True)
def message(
    kind: str,
    *,
    versions: str,
    flexible: str = "none",
    key: int | None = None,
    listeners: tuple[str, ...] = (),
    tuned: bool = False,
) -> Callable[[type[T]], type[T]]:
    """A whole message. `key` is the API key of a request or response, or the type of a stored record."""

    def decorate(cls: type[T]) -> type[T]:
        built = _build(cls)
        schema = schema_of(built)
        schema.kind = kind
        schema.versions = parse_versions(versions)
        schema.flexible = parse_versions(flexible)
        schema.key = key
        schema.listeners = listeners
        schema.is_tuned = tuned
        generated = _generated_module(cls.__module__)
        if generated is not None:
            schema.tuned_decoder = generated.DECODERS.get(cls.__name__)
            schema.tuned_encoder = generated.ENCODERS.get(cls.__name__)
        return built

    return decorate


@dataclass_transform(kw_only_default=True)
def request(
    key: int, *, versions: str, flexible: str, listeners: str = "broker", tuned: bool = False
) -> Callable[[type[T]], type[T]]:
    return message(
        "request",
        key=key,
        versions=versions,
        flexible=flexible,
        listeners=tuple(listeners.split()),
        tuned=tuned,
    )


@dataclass_transform(kw_only_default=True)
def response(key: int, *, versions: str, flexible: str, tuned: bool = False) -> Callable[[type[T]], type[T]]:
    return message("response", key=key, versions=versions, flexible=flexible, tuned=tuned)


def _build(cls: type[T]) -> type[T]:
    """Return the compiled class, or create the class again: slots cannot be added to an existing one."""
    fields = _take_fields(cls)
    methods: dict[str, Any] = {"__schema__": Schema(cls.__name__, fields), **_METHODS}
    native: type[T] | None = getattr(_generated_module(cls.__module__), cls.__name__, None)
    if native is not None:
        for name, value in methods.items():
            setattr(native, name, value)
        return native
    attributes = [*(field.name for field in fields), *(one.position for one in fields if one.position)]
    removed = {*attributes, "__dict__", "__weakref__"}
    body = {name: value for name, value in cls.__dict__.items() if name not in removed}
    body.update(methods, __slots__=(*attributes, "unknown_tags"), __init__=_first_init)
    return cast(type[T], type(cls.__name__, cls.__bases__, body))


@cache
def _generated_module(declared_in: str) -> ModuleType | None:
    """The compiled classes and codecs of a family of messages; None if the build has not made any.

    Interpreted, they would be slower than the generic ones.
    """
    package, _, family = declared_in.rpartition(".")
    if package != "barnabas.protocol.messages":
        return None
    try:
        spec = find_spec(f"barnabas.protocol.generated.{family}")
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None or spec.origin.endswith(".py"):
        return None
    return import_module(spec.name)


def _take_fields(cls: type) -> tuple[Field, ...]:
    fields = []
    for name, value in cls.__dict__.items():
        if isinstance(value, Field):
            value.name = name
            fields.append(value)
        elif isinstance(value, Position):
            value.field.position = name
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
        if field.position:
            body.append(f"    self.{field.position} = -1")
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
