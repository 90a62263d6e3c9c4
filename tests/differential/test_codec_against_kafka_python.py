"""Our codec against kafka-python's, which reads Kafka's definitions at run time, in both directions.

One random message becomes bytes of ours and an object of kafka-python's. It must read its object from our
bytes and write our bytes from its object, and we must read our message from its bytes. Fields are paired by
their order, which both sides take from Kafka's definitions.
"""

import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.protocol.messages.cluster import ApiVersionsResponse
from barnabas.protocol.schema.codec import decode, encode
from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.layout import Layout, message_layout, nested_layout
from barnabas.protocol.schema.struct import schema_of
from support.wire.messages import MESSAGES, random_message
from support.wire.peers import kafka_python_class

pytestmark = pytest.mark.kernel

SAMPLES = 10

COVERED = [
    name
    for name, cls in sorted(MESSAGES.items())
    if any(kafka_python_class(cls, version) for version in schema_of(cls).versions.all())
]


@pytest.mark.parametrize("name", COVERED)
def test_kafka_python_and_we_agree_on_every_version(name: str) -> None:
    cls = MESSAGES[name]
    for version in schema_of(cls).versions.all():
        theirs = kafka_python_class(cls, version)
        if theirs is None:
            continue
        layout = message_layout(cls, version)
        # The small formats inside opaque bytes begin with their version there; with us that is the caller's.
        bare = {"header": False}
        rng = random.Random(f"{name} {version}")
        for _ in range(SAMPLES):
            message = random_message(cls, version, rng, unknown_tags=False)
            fit(message)
            peer = theirs(version=version, **values(layout, message, theirs._struct))

            data = encode(message, version)
            theirs_of_it = peer.encode(version=version, **bare)

            assert theirs_of_it == data, version
            assert theirs.decode(data, version=version, **bare) == peer, version
            assert decode(cls, version, bytes(theirs_of_it)) == (message, len(data)), version


def fit(message: Any) -> None:
    """The one value that kafka-python has its own opinion of: with an error, ApiVersions is always v0."""
    if isinstance(message, ApiVersionsResponse):
        message.error_code = 0


def pairs(layout: Layout, theirs: Any) -> Iterator[tuple[Field, Any]]:
    present = {*layout.plain, *layout.tagged}
    ours = [field for field in schema_of(layout.cls).fields if field in present]
    others = [field for field in theirs.fields.values() if field.for_version_q(layout.version)]
    for field, other in zip(ours, others, strict=True):
        # Whose operations are authorized is left out there.
        assert field.name.replace("_", "").endswith(other.name.replace("_", "")), (field, other.name)
        yield field, other


def values(layout: Layout, message: Any, theirs: Any) -> dict[str, Any]:
    return {
        other.name: value_there(layout, field, other, getattr(message, field.name))
        for field, other in pairs(layout, theirs)
    }


def value_there(layout: Layout, field: Field, other: Any, value: Any) -> Any:
    """How a value of ours looks in kafka-python."""
    if value is None:
        return None
    if field.kind is Kind.STRUCT:
        nested = nested_layout(layout, field)
        return other.data_class(version=layout.version, **values(nested, value, other))
    if field.kind is Kind.ARRAY:
        assert field.item is not None
        inner = other if field.item.kind is Kind.STRUCT else other.array_of
        return [value_there(layout, field.item, inner, item) for item in value]
    if field.kind is Kind.UUID:
        return None if value == ZERO_UUID else UUID(bytes=bytes(value))
    if other.type_str == "bitfield":
        return operations(value)
    return value


def operations(value: int) -> set[int] | None:
    """A bit for each operation that is allowed; the least integer alone says that nobody asked."""
    bits = {bit for bit in range(32) if value >> bit & 1}
    return None if bits == {31} else bits
