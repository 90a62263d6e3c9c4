"""Generate random messages of any type at any version from their layouts.

random_message() is fast, for bulk runs from a seed. messages() does the same under hypothesis, which then
provides the randomness and can shrink a failure. The generated messages equal their decoded form: fields
that the version lacks have their defaults, and a tagged struct with only default values is None.
"""

import random
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from hypothesis import strategies as st

import barnabas.protocol.messages
import barnabas.protocol.stored
from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.layout import Layout, message_layout, nested_layout
from barnabas.protocol.schema.struct import schema_of

Make = Callable[[random.Random], Any]

ITEMS_MAX = 3
TAG_MAX = 2**31 - 1

_INT_BITS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64, Kind.UINT16: 16, Kind.UINT32: 32}
_UNSIGNED = frozenset({Kind.UINT16, Kind.UINT32})
_FLOATS = (0.0, 1.0, -1.5, 1e-300, 5e-324, 1.7976931348623157e308, -1e18, float("inf"), float("-inf"))
_TEXTS = ("", "a", "orders", "zażółć", "命令", "🐙", "\0", "\x7f\x80", "a b\tc\n", "Ω" * 40)
# Around the values where a compact length takes one byte more; the last is Kafka's maximum.
_LENGTHS = (125, 126, 127, 128, 129, 255, 256, 400)
_LONG_LENGTHS = (16382, 16383, 16384, 32767)


def declared_messages() -> dict[str, type]:
    """Every message and stored record by name."""
    found: dict[str, type] = {}
    for package in (barnabas.protocol.messages, barnabas.protocol.stored):
        for info in iter_modules(package.__path__, package.__name__ + "."):
            for value in vars(import_module(info.name)).values():
                if (
                    isinstance(value, type)
                    and "__schema__" in vars(value)
                    and schema_of(value).kind != "struct"
                ):
                    found[schema_of(value).name] = value
    return found


MESSAGES = declared_messages()


def all_versions() -> Iterator[tuple[type, int]]:
    for name in sorted(MESSAGES):
        for version in schema_of(MESSAGES[name]).versions.all():
            yield MESSAGES[name], version


def random_message(cls: type, version: int, rng: random.Random, *, unknown_tags: bool = True) -> Any:
    """With `unknown_tags`, structs may have undeclared tagged fields where the version allows it."""
    return _struct_maker(message_layout(cls, version), unknown_tags)(rng)


@cache
def messages(cls: type, version: int) -> st.SearchStrategy[Any]:
    # Hypothesis provides the random numbers, so it can shrink them.
    return st.randoms(use_true_random=False).map(lambda rng: random_message(cls, version, rng))


# Makers: one closure per struct and field, built once per layout.


@cache
def _struct_maker(layout: Layout, unknown_tags: bool) -> Make:
    cls = layout.cls
    makers = [(field.name, _maker(layout, field, unknown_tags)) for field in layout.plain]
    makers += [(field.name, _tagged(layout, field, unknown_tags)) for field in layout.tagged]
    tags = _unknown_tags(layout) if unknown_tags and layout.flexible else None

    def make(rng: random.Random) -> Any:
        values = {name: maker(rng) for name, maker in makers}
        if tags is not None:
            values["unknown_tags"] = tags(rng)
        return cls(**values)

    return make


def _maker(layout: Layout, field: Field, unknown_tags: bool) -> Make:
    make = _present(layout, field, unknown_tags)
    if layout.version not in field.null:
        return make
    return lambda rng: None if rng.random() < 0.25 else make(rng)


def _tagged(layout: Layout, field: Field, unknown_tags: bool) -> Make:
    make = _maker(layout, field, unknown_tags)
    default = field.default
    blank = field.struct() if field.struct is not None and layout.version not in field.null else None

    def make_or_leave(rng: random.Random) -> Any:
        if rng.random() < 0.4:
            return default() if isinstance(default, type) else default
        value = make(rng)
        # On the wire, a struct with only default values equals an absent one.
        return None if default is None and value == blank else value

    return make_or_leave


def _present(layout: Layout, field: Field, unknown_tags: bool) -> Make:
    if field.kind is Kind.STRUCT:
        return _struct_maker(nested_layout(layout, field), unknown_tags)
    if field.kind is Kind.ARRAY:
        assert field.item is not None, field
        item = _maker(layout, field.item, unknown_tags)
        return lambda rng: [item(rng) for _ in range(rng.randint(0, ITEMS_MAX))]
    if field.kind in _INT_BITS:
        return _integer(field.kind)
    return _PLAIN[field.kind]


def _integer(kind: Kind) -> Make:
    bits = _INT_BITS[kind]
    low, high = (0, 2**bits - 1) if kind in _UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    edges = (low, low + 1, max(low, -1), 0, 1, 2, high - 1, high)

    def make(rng: random.Random) -> int:
        return rng.choice(edges) if rng.random() < 0.6 else rng.randint(low, high)

    return make


def _text(rng: random.Random) -> str:
    dice = rng.random()
    if dice < 0.8:
        return rng.choice(_TEXTS)
    if dice < 0.99:
        return "k" * rng.choice(_LENGTHS)
    return "L" * rng.choice(_LONG_LENGTHS)


def _bytes(rng: random.Random) -> bytes:
    dice = rng.random()
    if dice < 0.3:
        return b""
    return rng.randbytes(rng.randint(1, 20) if dice < 0.9 else rng.choice(_LENGTHS))


_PLAIN: dict[Kind, Make] = {
    Kind.STRING: _text,
    Kind.BYTES: _bytes,
    Kind.RECORDS: _bytes,
    Kind.BOOL: lambda rng: rng.random() < 0.5,
    Kind.FLOAT64: lambda rng: rng.choice(_FLOATS) if rng.random() < 0.5 else rng.uniform(-1e9, 1e9),
    Kind.UUID: lambda rng: bytes(16) if rng.random() < 0.3 else rng.randbytes(16),
}


def _unknown_tags(layout: Layout) -> Make:
    """Tags that the version lacks, including tags of other versions."""
    known = {field.tag for field in layout.tagged}
    free = [tag for tag in (*range(10), 127, 128, 16384, TAG_MAX) if tag not in known]

    def make(rng: random.Random) -> tuple[tuple[int, bytes], ...]:
        if rng.random() < 0.9:
            return ()
        tags = sorted({rng.choice(free) for _ in range(rng.randint(1, 3))})
        return tuple((tag, _bytes(rng)) for tag in tags)

    return make
