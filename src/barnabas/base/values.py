"""Immutable classes like @dataclass(frozen=True, slots=True), but cheap to declare.

A dataclass generates the source of its methods and compiles it at import, half a millisecond per class. A
broker imports a hundred of them before its first record, and a short-lived process never uses most. Here all
methods except the constructor are shared, and the constructor is compiled at its first use. For the rest of
Python a value is a dataclass: replace(), fields() and asdict() work; their metadata is built at first use.

A value has only fields: no bases, no subclasses, no ClassVar, no InitVar; field() may only set
default_factory. Use a dataclass for anything else.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, InitVar, field, make_dataclass
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, ClassVar, Final, NamedTuple, TypeVar, cast, dataclass_transform, overload

T = TypeVar("T")


class _Shape(NamedTuple):
    """The declaration of a value class. A default with a factory is stored as its Field."""

    names: tuple[str, ...]
    defaults: dict[str, Any]
    kw_only: bool


@overload
def value(cls: type[T], /) -> type[T]: ...
@overload
def value(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(eq_default=True, frozen_default=True, field_specifiers=(field,))
def value(cls: type[T] | None = None, /, *, kw_only: bool = False) -> Any:
    """Make a value class from the fields declared in the class body.

    Methods that the class defines itself take precedence over the shared ones.
    """
    if cls is None:
        return lambda declared: _build(declared, kw_only)
    return _build(cls, kw_only)


def _build(cls: type, kw_only: bool) -> type:
    """Create the class again with slots, which cannot be added to an existing class."""
    shape = _shape(cls, kw_only)
    body = {name: one for name, one in cls.__dict__.items() if name not in shape.defaults}
    del body["__dict__"], body["__weakref__"]
    own = {
        "__match_args__": () if kw_only else shape.names,
        "__qualname__": cls.__qualname__,
        "__slots__": shape.names,
        "__value_shape__": shape,
        # Returns all fields of an instance as a tuple, or the field itself if there is only one.
        "__value_contents__": attrgetter(*shape.names) if shape.names else staticmethod(_no_contents),
    }
    return type(cls.__name__, (), {**_METHODS, **body, **own})


def _shape(cls: type, kw_only: bool) -> _Shape:
    who = cls.__qualname__
    assert cls.__bases__ == (object,), f"{who}: a value has no bases"
    names = tuple(cls.__annotations__)
    for name, annotation in cls.__annotations__.items():
        assert not _is_no_field(annotation), f"{who}.{name}: a value has only fields"
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    for name, default in defaults.items():
        is_safe = default.__class__.__hash__ is not None
        assert is_safe, f"{who}.{name}: all instances would share its default; give a default factory"
        is_known = not isinstance(default, Field) or _says_only_factory(default)
        assert is_known, f"{who}.{name}: field() of a value may only set default_factory"
    if defaults and not kw_only:
        is_ordered = defaults.keys() == set(names[-len(defaults) :])
        assert is_ordered, f"{who}: a field without a default comes after one that has it"
    return _Shape(names, defaults, kw_only)


def _is_no_field(annotation: object) -> bool:
    is_class_var = getattr(annotation, "__origin__", annotation) is ClassVar
    return is_class_var or annotation is InitVar or isinstance(annotation, InitVar)


def _says_only_factory(one: Field[Any]) -> bool:
    is_usual = one.init and one.repr and one.compare and one.hash is None
    return one.default_factory is not MISSING and is_usual and one.kw_only is MISSING and not one.metadata


class _FirstInit:
    """A descriptor that compiles the constructor at its first access and replaces itself with it.

    A call is an access, and so is inspect.signature(). Two threads may compile it twice, with equal results.
    """

    def __get__(self, one: object | None, cls: Any) -> Any:
        if isinstance(one, type):
            # From Python 3.13 on, inspect.signature() passes the class as the instance.
            cls = one
        init = _compile_init(cls)
        cls.__init__ = init
        return init if one is None else init.__get__(one)


def _compile_init(cls: Any) -> Any:
    """Compile the constructor. It calls the slots' setters, the fastest way around the frozen __setattr__."""
    names, defaults, kw_only = cls.__value_shape__
    scope: dict[str, Any] = {"__name__": cls.__module__}
    arguments = ["self", "*"] if kw_only and names else ["self"]
    body = []
    for name in names:
        given = name
        scope[f"__set_{name}"] = cls.__dict__[name].__set__
        if name not in defaults:
            arguments.append(name)
        else:
            default = scope[f"__default_{name}"] = defaults[name]
            arguments.append(f"{name}=__default_{name}")
            if isinstance(default, Field):
                scope[f"__make_{name}"] = default.default_factory
                given = f"__make_{name}() if {name} is __default_{name} else {name}"
        body.append(f"    __set_{name}(self, {given})")
    if hasattr(cls, "__post_init__"):
        body.append("    self.__post_init__()")
    source = "\n".join([f"def __init__({', '.join(arguments)}):", *(body or ["    pass"])])
    exec(compile(source, f"<constructor of {cls.__qualname__}>", "exec"), scope)
    init = scope["__init__"]
    # Python uses this name in the error for wrong arguments.
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {**cls.__annotations__, "return": None}
    return init


class _FirstFields:
    """A descriptor that builds __dataclass_fields__ at its first access, from an equivalent dataclass."""

    def __get__(self, _: object | None, cls: Any) -> Any:
        names, defaults, kw_only = cls.__value_shape__
        declared = [(name, cls.__annotations__[name], _field(defaults.get(name, MISSING))) for name in names]
        # Without methods and with a docstring, so that dataclasses compiles nothing.
        twin: Any = make_dataclass(
            cls.__name__,
            declared,
            namespace={"__doc__": cls.__qualname__},
            init=False,
            repr=False,
            eq=False,
            match_args=False,
            kw_only=kw_only,
        )
        cls.__dataclass_fields__ = twin.__dataclass_fields__
        return twin.__dataclass_fields__


def _field(default: Any) -> Any:
    if isinstance(default, Field):
        return field(default_factory=cast(Callable[[], Any], default.default_factory))
    return field(default=default)


def _no_contents(_: object) -> tuple[()]:
    return ()


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    # As tuples, because tuples compare by identity first, as a dataclass does.
    return (self.__value_contents__(self),) == (self.__value_contents__(other),)


def _hash(self: Any) -> int:
    return hash(self.__value_contents__(self))


def _contents(self: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(self, name)) for name in self.__value_shape__.names]


@recursive_repr()
def _show(self: Any) -> str:
    fields = ", ".join(f"{name}={content!r}" for name, content in _contents(self))
    return f"{self.__class__.__qualname__}({fields})"


def _refuse_set(_: object, name: str, __: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(_: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _refuse_subclass(cls: type) -> None:
    # The shared methods would not know the fields of a subclass.
    raise TypeError(f"{cls.__qualname__}: a value has no subclasses")


def _reduce(self: Any) -> tuple[Any, ...]:
    return _restore, (self.__class__, *(content for _, content in _contents(self)))


def _restore(cls: Any, *contents: Any) -> Any:
    """Restore an instance for copy and pickle, without calling __post_init__ again."""
    made = object.__new__(cls)
    for name, content in zip(cls.__value_shape__.names, contents, strict=True):
        object.__setattr__(made, name, content)
    return made


_METHODS: Final[dict[str, Any]] = {
    "__init__": _FirstInit(),
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _show,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__init_subclass__": classmethod(_refuse_subclass),
    "__reduce__": _reduce,
    "__dataclass_fields__": _FirstFields(),
}
