"""Every message and stored record survives a round trip at every version; wrong values are refused.

test_malformed_messages.py tests damaged bytes, tests/differential the bytes of other implementations.
"""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.messages.connection import SaslAuthenticateRequest
from barnabas.protocol.messages.credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from barnabas.protocol.messages.group_admin import DescribeGroupsRequest
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.schema.codec import NotEncodable, UnsupportedVersion, decode, encode, encode_parts
from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.layout import Layout, message_layout, nested_layout
from barnabas.protocol.schema.struct import schema_of
from support.wire.messages import MESSAGES, messages, random_message

pytestmark = pytest.mark.kernel

NAMES = sorted(MESSAGES)
SAMPLES = 12

NOT_CHECKED = (Kind.BOOL, Kind.RECORDS)
INTEGERS = {Kind.INT8: 7, Kind.INT16: 15, Kind.INT32: 31, Kind.INT64: 63, Kind.UINT16: 16, Kind.UINT32: 32}

# Values that every field of the kind must refuse; for integers also the nearest values out of range.
# Booleans are missing, because any value has a truth value, which is written. Bytes have a test below.
WRONG: dict[Kind, tuple[Any, ...]] = {
    **dict.fromkeys(INTEGERS, ("1", 1.5, b"1", [])),
    Kind.FLOAT64: ("1.0", b"1", [], 10**400),
    Kind.UUID: ("0123456789abcdef", b"fifteen bytes..", b"seventeen bytes..", 7),
    Kind.STRING: (b"bytes", 7, "\ud800", "x" * 32768, "ż" * 16384),
    Kind.STRUCT: (7, "text", b"bytes"),
    Kind.ARRAY: (7, 1.5, [object()]),
}


def versions_of(cls: type) -> range:
    return schema_of(cls).versions.all()


def samples(cls: type, version: int, count: int = SAMPLES) -> Iterator[Any]:
    rng = random.Random(f"{cls.__name__} {version}")
    for _ in range(count):
        yield random_message(cls, version, rng)


@pytest.mark.parametrize("name", NAMES)
def test_a_message_survives_a_round_trip_and_so_do_its_bytes(name: str) -> None:
    cls = MESSAGES[name]
    for version in versions_of(cls):
        for message in samples(cls, version):
            data = encode(message, version)

            again, end = decode(cls, version, data)

            assert again == message, version
            assert end == len(data), version
            assert encode(again, version) == data, version


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_a_round_trip_that_fails_is_shrunk(name: str, data: st.DataObject) -> None:
    cls = MESSAGES[name]
    version = data.draw(st.sampled_from(versions_of(cls)))
    message = data.draw(messages(cls, version))

    wire = encode(message, version)

    assert decode(cls, version, wire) == (message, len(wire))


@pytest.mark.parametrize("name", NAMES)
def test_a_message_may_start_anywhere_in_a_view_and_ends_with_its_last_field(name: str) -> None:
    cls = MESSAGES[name]
    for version in versions_of(cls):
        for message in samples(cls, version, 2):
            data = encode(message, version)
            frame = b"\xff\x01before" + data + b"\xff\xff after"

            assert decode(cls, version, memoryview(frame), 8) == (message, 8 + len(data))
            assert decode(cls, version, frame, 8) == (message, 8 + len(data))


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_join_to_the_message_and_records_are_not_copied(name: str) -> None:
    cls = MESSAGES[name]
    for version in versions_of(cls):
        for message in samples(cls, version, 4):
            parts: list[bytes] = []

            encode_parts(message, version, parts)

            assert b"".join(parts) == encode(message, version)
            kept = {id(part) for part in parts}
            assert all(id(blob) in kept for blob in records_in(message_layout(cls, version), message))


def records_in(layout: Layout, message: Any) -> Iterator[Any]:
    for field, holder, _ in spots(layout, message, ""):
        if field.kind is Kind.RECORDS and getattr(holder, field.name) is not None:
            yield getattr(holder, field.name)


@pytest.mark.parametrize("name", NAMES)
def test_an_undeclared_version_is_refused(name: str) -> None:
    cls = MESSAGES[name]
    first, last = schema_of(cls).versions
    for version in (first - 1, last + 1):
        with pytest.raises(UnsupportedVersion, match=f"{name} has no version {version}, only "):
            encode(cls(), version)
        with pytest.raises(UnsupportedVersion):
            decode(cls, version, bytes(100))


@pytest.mark.parametrize("name", NAMES)
def test_a_set_field_that_the_version_lacks_is_refused_unless_ignorable(name: str) -> None:
    cls = MESSAGES[name]
    for version in versions_of(cls):
        layout = message_layout(cls, version)
        message = fullest(cls, version)
        data = encode(message, version)
        for field, holder, path in spots(layout, message, "", absent=True):
            kept = getattr(holder, field.name)
            setattr(holder, field.name, other_value(field))

            if field.ignorable:
                assert encode(message, version) == data, (version, path)
            else:
                with pytest.raises(NotEncodable) as refused:
                    encode(message, version)
                assert refused.value.where == f"{name} v{version}, {path}"
                assert refused.value.what == f"is set, but version {version} does not have it"

            setattr(holder, field.name, kept)


@pytest.mark.parametrize("name", NAMES)
def test_a_value_of_the_wrong_type_or_out_of_range_is_refused_with_its_path(name: str) -> None:
    cls = MESSAGES[name]
    versions = versions_of(cls)
    for version in {versions[0], versions[-1]}:
        message = fullest(cls, version)
        for field, holder, path in spots(message_layout(cls, version), message, ""):
            kept = getattr(holder, field.name)
            for wrong in wrong_values(field, version):
                if not put(holder, field.name, wrong):
                    continue
                with pytest.raises(NotEncodable) as refused:
                    encode(message, version)
                assert refused.value.where.startswith(f"{name} v{version}, {path}"), wrong
            setattr(holder, field.name, kept)


SALT = AlterUserScramCredentialsRequest(upsertions=[ScramCredentialUpsertion(salt="salt")])
BATCH = PartitionProduceData(index=1, records="batch")
PRODUCE = ProduceRequest(topic_data=[TopicProduceData(partition_data=[BATCH])])


@pytest.mark.parametrize(
    ("message", "version", "path"),
    [
        (SaslAuthenticateRequest(auth_bytes="text"), 1, "auth_bytes"),
        (SaslAuthenticateRequest(auth_bytes="text"), 2, "auth_bytes"),
        (SaslAuthenticateRequest(auth_bytes=7), 2, "auth_bytes"),
        (SaslAuthenticateRequest(auth_bytes=[1, 2]), 2, "auth_bytes"),
        (SALT, 0, "upsertions[0].salt"),
        (PRODUCE, 9, "topic_data[0].partition_data[0].records"),
        (DescribeGroupsRequest(groups="my-group"), 5, "groups"),
    ],
)
def test_values_that_python_converts_to_bytes_or_a_list_are_refused(
    message: Any, version: int, path: str
) -> None:
    with pytest.raises(NotEncodable) as refused:
        encode(message, version)

    assert refused.value.where == f"{type(message).__name__} v{version}, {path}"


def wrong_values(field: Field, version: int) -> Iterator[Any]:
    yield from WRONG.get(field.kind, ())
    if field.kind in INTEGERS:
        high = 1 << INTEGERS[field.kind]
        yield high
        yield -1 if field.kind in (Kind.UINT16, Kind.UINT32) else -high - 1
    # A tagged field that is None is not sent.
    if version not in field.null and field.tag is None and field.kind not in NOT_CHECKED:
        yield None


def put(holder: Any, name: str, value: Any) -> bool:
    """Whether the value was assigned: a compiled class refuses some wrong values at the assignment."""
    try:
        setattr(holder, name, value)
    except (TypeError, OverflowError):
        return False
    return True


def other_value(field: Field) -> Any:
    """A value of the right type that is not the default."""
    if field.kind is Kind.STRUCT:
        assert field.struct is not None
        blank = field.struct()
        first = schema_of(field.struct).fields[0]
        setattr(blank, first.name, other_value(first))
        return blank
    if field.kind is Kind.ARRAY:
        assert field.item is not None
        return [other_value(field.item)]
    plain = {Kind.STRING: "other", Kind.BYTES: b"other", Kind.RECORDS: b"other", Kind.UUID: b"u" * 16}
    if field.kind in plain:
        return plain[field.kind]
    return not field.default if field.kind is Kind.BOOL else 42


def fullest(cls: type, version: int) -> Any:
    """The sample that contains the most fields."""
    layout = message_layout(cls, version)
    return max(samples(cls, version), key=lambda message: sum(1 for _ in spots(layout, message, "")))


def spots(
    layout: Layout, message: Any, path: str, *, absent: bool = False
) -> Iterator[tuple[Field, Any, str]]:
    """Every field of every struct in a message, with owner and path; with `absent`, those not on the wire."""
    for field in layout.absent if absent else (*layout.plain, *layout.tagged):
        yield field, message, f"{path}{field.name}"
    for field in (*layout.plain, *layout.tagged):
        value = getattr(message, field.name)
        if field.kind is Kind.STRUCT and value is not None:
            yield from spots(nested_layout(layout, field), value, f"{path}{field.name}.", absent=absent)
        elif field.kind is Kind.ARRAY and value and field.item is not None and field.item.kind is Kind.STRUCT:
            for index, item in enumerate(value):
                inner = nested_layout(layout, field.item)
                yield from spots(inner, item, f"{path}{field.name}[{index}].", absent=absent)
