"""Our codec against kio's, which is generated from Kafka's definitions by other people, in both directions.

One random message becomes bytes of ours and an object of kio's. kio must read its object from our bytes
and write our bytes from its object, and we must read our message from its bytes. Fields are paired by their
order, which both sides take from Kafka's definitions, and their names are compared.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from io import BytesIO
from math import isfinite
from types import NoneType
from typing import Any, get_args
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import classify_field, is_optional

from barnabas.base.ids import ZERO_UUID
from barnabas.protocol.schema.codec import decode, encode
from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.layout import Layout, message_layout, nested_layout
from barnabas.protocol.schema.struct import schema_of
from support.wire.messages import MESSAGES, random_message
from support.wire.peers import kio_class

pytestmark = pytest.mark.kernel

SAMPLES = 10

ERROR_CODES = [code.value for code in ErrorCode]
EPOCH = datetime.fromtimestamp(0, UTC)
NO_TIME = -1
LAST_SECOND = 253_402_300_799
# Further away a float of seconds, which kio goes through, does not hold every millisecond.
MILLISECONDS_MAX = 10**14

# kio gives some integers a richer type, which cannot hold every value of the wire: these are brought into
# its range. Every other value is used as it comes.
FITS: dict[str, Callable[[Any], Any]] = {
    # an enum of the codes that Kafka has
    "error_code": lambda value: ERROR_CODES[value % len(ERROR_CODES)],
    # a time span
    "timedelta_i64": lambda value: value % MILLISECONDS_MAX,
    # a date before the year 10000, in whole seconds
    "datetime_i64": lambda value: value % LAST_SECOND * 1000,
    # any number but the infinite ones
    "float64": lambda value: value if isfinite(value) else 1e300,
}
# How values of the wire look there.
LOOKS: dict[str, Callable[[Any], Any]] = {
    "error_code": ErrorCode,
    "timedelta_i32": lambda value: timedelta(milliseconds=value),
    "timedelta_i64": lambda value: timedelta(milliseconds=value),
    "datetime_i64": lambda value: None if value == NO_TIME else EPOCH + timedelta(milliseconds=value),
    "uuid": lambda value: None if value == ZERO_UUID else UUID(bytes=bytes(value)),
    "records": bytes,
}
# Units are part of our names, as in Kafka's; kio's types say them.
UNITS = ("_ms", "_timestamp", "_time", "")

CAN_BE_NULL = (Kind.STRING, Kind.BYTES, Kind.RECORDS, Kind.ARRAY, Kind.STRUCT)

COVERED = [
    name
    for name, cls in sorted(MESSAGES.items())
    if any(kio_class(cls, version) for version in schema_of(cls).versions.all())
]


@pytest.mark.parametrize("name", COVERED)
def test_kio_and_we_agree_on_every_version(name: str) -> None:
    cls = MESSAGES[name]
    for version in schema_of(cls).versions.all():
        theirs = kio_class(cls, version)
        if theirs is None:
            continue
        layout = message_layout(cls, version)
        rng = random.Random(f"{name} {version}")
        for _ in range(SAMPLES):
            message = random_message(cls, version, rng, unknown_tags=False)
            fit(layout, message, theirs)
            peer = to_kio(layout, message, theirs)

            data = encode(message, version)

            assert entity_reader(theirs)(data, 0) == (peer, len(data)), version
            assert kio_bytes(theirs, peer) == data, version
            assert decode(cls, version, kio_bytes(theirs, peer)) == (message, len(data)), version


@pytest.mark.parametrize("name", COVERED)
def test_defaults_and_nullable_fields_agree_with_kio(name: str) -> None:
    cls = MESSAGES[name]
    for version in schema_of(cls).versions.all():
        theirs = kio_class(cls, version)
        if theirs is not None:
            check_declarations(message_layout(cls, version), theirs)


def check_declarations(layout: Layout, theirs: Any) -> None:
    for field, other, kafka_type in pairs(layout, theirs):
        about = f"{layout.cls.__name__} v{layout.version}, {field.name}"
        nested = field.item if field.item is not None else field
        if nested.kind is Kind.STRUCT:
            check_declarations(nested_layout(layout, nested), inner(other))
        if field.kind in CAN_BE_NULL and field.tag is None:
            assert (layout.version in field.null) == (NoneType in get_args(other.type)), about
        if field.kind is Kind.STRUCT:
            continue
        ours = field.default() if isinstance(field.default, type) else field.default
        if other.default is MISSING:
            # Nothing is declared, so it is zero, empty or null.
            assert not ours or ours == ZERO_UUID, about
        else:
            assert other.default == default_there(ours, kafka_type), about


def default_there(ours: Any, kafka_type: str | None) -> Any:
    if ours is None or isinstance(ours, list):
        return None if ours is None else tuple(ours)
    return LOOKS.get(kafka_type or "", same)(ours)


def kio_bytes(theirs: Any, value: Any) -> bytes:
    out = BytesIO()
    entity_writer(theirs)(out, value)
    return out.getvalue()


def pairs(layout: Layout, theirs: Any) -> Iterator[tuple[Field, Any, str | None]]:
    """Our field, theirs, and what theirs is on the wire; None for a struct."""
    present = {*layout.plain, *layout.tagged}
    ours = [field for field in schema_of(layout.cls).fields if field in present]
    for field, other in zip(ours, fields(theirs), strict=True):
        assert any(field.name.removesuffix(unit) == other.name.rstrip("_") for unit in UNITS), (
            field,
            other.name,
        )
        yield field, other, other.metadata.get("kafka_type")


def same(value: Any) -> Any:
    return value


def inner(other: Any) -> Any:
    return classify_field(other).type_


def fit(layout: Layout, message: Any, theirs: Any) -> None:
    """Change values in place so that kio's types can hold them."""
    for field, other, kafka_type in pairs(layout, theirs):
        value = getattr(message, field.name)
        if value is None or (kafka_type == "datetime_i64" and value == NO_TIME and is_optional(other)):
            continue
        if kafka_type in FITS:
            setattr(message, field.name, FITS[kafka_type](value))
        elif field.kind is Kind.STRUCT:
            fit(nested_layout(layout, field), value, inner(other))
        elif field.item is not None and field.item.kind is Kind.STRUCT:
            for item in value:
                fit(nested_layout(layout, field.item), item, inner(other))


def to_kio(layout: Layout, message: Any, theirs: Any) -> Any:
    values = {}
    for field, other, kafka_type in pairs(layout, theirs):
        value = getattr(message, field.name)
        look = LOOKS.get(kafka_type or "", same)
        if value is None:
            if field.kind is Kind.STRUCT and layout.version not in field.null:
                # A tagged struct that is not sent: kio has an object with all defaults in its place.
                assert field.struct is not None
                values[other.name] = to_kio(nested_layout(layout, field), field.struct(), inner(other))
            else:
                values[other.name] = None
        elif field.kind is Kind.STRUCT:
            values[other.name] = to_kio(nested_layout(layout, field), value, inner(other))
        elif field.item is None:
            values[other.name] = look(value)
        elif field.item.kind is Kind.STRUCT:
            nested = nested_layout(layout, field.item)
            values[other.name] = tuple(to_kio(nested, item, inner(other)) for item in value)
        else:
            values[other.name] = tuple(look(item) for item in value)
    return theirs(**values)
