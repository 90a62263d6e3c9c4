"""Tuned codecs compared with the generic ones: the same values, the same refusals.

The tests call both decoders and both encoders of a message directly; codec.py picks one of them.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.errors import Malformed
from barnabas.protocol.schema.codec import NotEncodable, encode
from barnabas.protocol.schema.decoder import compile_decoder
from barnabas.protocol.schema.encoder import ENCODE_FAILURES, compile_encoder
from barnabas.protocol.schema.explain import explain_message
from barnabas.protocol.schema.fields import Kind
from barnabas.protocol.schema.struct import schema_of
from support.fuzz.damage import lie, sample
from support.fuzz.mutations import attempts, mutate
from support.wire.messages import random_message
from support.wire.tuned import TUNED

pytestmark = pytest.mark.kernel

READ = [
    pytest.param(cls, version, id=f"{cls.__name__} v{version}")
    for cls in TUNED
    if schema_of(cls).tuned_decoder is not None
    for version in schema_of(cls).versions.all()
]
WRITTEN = [
    pytest.param(cls, version, id=f"{cls.__name__} v{version}")
    for cls in TUNED
    if schema_of(cls).tuned_encoder is not None
    for version in schema_of(cls).versions.all()
]
# For each version of each message.
ATTEMPTS = 300
# Invalid values, and valid ones near a limit.
ODD_NUMBERS = (-(2**63) - 1, -(2**31) - 1, -32769, -32768, 32767, 32768, 65536, 2**31, 2**63, True, None)
ODD_VALUES: dict[Kind, tuple[Any, ...]] = {
    Kind.BOOL: (True, False, None),
    Kind.INT8: (-129, -128, 127, 128, True, None),
    Kind.INT16: ODD_NUMBERS,
    Kind.INT32: ODD_NUMBERS,
    Kind.INT64: ODD_NUMBERS,
    Kind.STRING: (None, "a" * 126, "a" * 127, "ż" * 16384, "a" * 32767, "a" * 32768, "\ud800", 7),
    Kind.BYTES: (None, b"", b"a" * 126, b"a" * 127, bytes(70_000), "text", 7),
    Kind.UUID: (b"", bytes(15), bytes(range(16)), bytes(17), "a" * 16, None),
    Kind.STRUCT: (None,),
}
ODD_TAGS: tuple[Any, ...] = (((0, b""),), ((5, b"five"), (3, b"three")), ((-1, b""),), (), None)


def both(cls: type, version: int) -> tuple[Callable[[bytes, int], Any], Callable[[bytes, int], Any]]:
    tuned = schema_of(cls).tuned_decoder
    assert tuned is not None
    return lambda data, at: tuned(version, data, at), compile_decoder(cls, version)


def outcome(decode: Callable[[bytes, int], Any], data: bytes) -> Any:
    try:
        return decode(data, 0)
    except Malformed as found:
        return str(found)


def test_fetch_classes_are_tuned() -> None:
    assert {"FetchRequest", "FetchTopic", "FetchPartition", "NodeEndpoint"} <= {cls.__name__ for cls in TUNED}
    assert "FetchRequest" in {param.values[0].__name__ for param in READ}
    assert "ProduceResponse" in {param.values[0].__name__ for param in WRITTEN}


@pytest.mark.parametrize(("cls", "version"), READ)
def test_both_decoders_read_the_same_from_good_bytes(cls: type, version: int) -> None:
    tuned, generic = both(cls, version)
    rng = random.Random(version)
    for _ in range(50):
        message = random_message(cls, version, rng)
        data = b"head" + encode(message, version) + b"tail"

        read = tuned(data, 4)

        assert read == (message, len(data) - 4)
        assert read == generic(data, 4)


@pytest.mark.parametrize(("cls", "version"), READ)
def test_both_decoders_read_or_reject_damaged_bytes_identically(cls: type, version: int) -> None:
    tuned, generic = both(cls, version)
    refusals = 0
    count = attempts(ATTEMPTS * len(READ)) // len(READ)
    for attempt in range(count):
        rng = random.Random(version * 1_000_000_007 + attempt)
        good = sample(cls, version, rng)
        data = lie(rng, good) if attempt & 1 else mutate(rng, good.data)

        read = outcome(tuned, data)

        assert read == outcome(generic, data), f"v{version}, attempt {attempt}: {data.hex()}"
        refusals += isinstance(read, str)

    assert 0 < refusals < count


# Encoders


def generic_outcome(message: Any, version: int) -> bytes | str:
    """The encoded bytes, or the text of the error."""
    parts: list[bytes] = []
    try:
        compile_encoder(type(message), version)(message, parts)
        return b"".join(parts)
    except ENCODE_FAILURES:
        what, where = explain_message(message, version)
        return f"{where}: {what}"


def chosen_outcome(message: Any, version: int) -> bytes | str:
    try:
        return encode(message, version)
    except NotEncodable as refused:
        return str(refused)


def structs_in(message: Any) -> list[Any]:
    found = [message]
    for field in schema_of(type(message)).fields:
        value = getattr(message, field.name)
        for one in value if isinstance(value, list) else (value,):
            if hasattr(type(one), "__schema__"):
                found += structs_in(one)
    return found


def make_usual(struct: Any) -> None:
    """Remove tagged fields: a tuned encoder leaves messages with such fields to the generic one."""
    blank = type(struct)()
    for field in schema_of(type(struct)).fields:
        if field.tag is not None:
            setattr(struct, field.name, getattr(blank, field.name))
    struct.unknown_tags = ()


def make_odd(message: Any, rng: random.Random) -> None:
    """Set a random field, which the version may lack, to an invalid or rare value."""
    struct = rng.choice(structs_in(message))
    field = rng.choice((None, *schema_of(type(struct)).fields))
    if field is None:
        put(struct, "unknown_tags", rng.choice(ODD_TAGS))
        return
    if field.kind is not Kind.ARRAY:
        put(struct, field.name, rng.choice(ODD_VALUES[field.kind]))
        return
    assert field.item is not None
    if field.item.struct is None:
        odd = rng.choice(ODD_VALUES[field.item.kind])
        put(
            struct, field.name, rng.choice([None, [], (), [odd], [*(getattr(struct, field.name) or ()), odd]])
        )
        return
    blank = field.item.struct()
    items = [one for one in getattr(struct, field.name) or () if type(one) is type(blank)]
    # Objects of another class with the same fields.
    names = [*(one.name for one in schema_of(type(blank)).fields), "unknown_tags"]
    twins = [SimpleNamespace(**{name: getattr(one, name) for name in names}) for one in [*items, blank]]
    put(struct, field.name, rng.choice([None, (), tuple(items), [*items, blank], [*items, None], twins]))


def put(struct: Any, name: str, value: Any) -> None:
    with suppress(TypeError, ValueError):  # A compiled class refuses some values itself.
        setattr(struct, name, value)


@pytest.mark.parametrize(("cls", "version"), WRITTEN)
def test_tuned_encoders_write_usual_messages_in_one_part_as_generic_ones(cls: type, version: int) -> None:
    tuned = schema_of(cls).tuned_encoder
    assert tuned is not None
    rng = random.Random(version)
    for _ in range(50):
        message = random_message(cls, version, rng)
        for struct in structs_in(message):
            make_usual(struct)
        parts = [b"head"]

        assert tuned(version, message, parts)

        assert parts == [b"head", generic_outcome(message, version)]


@pytest.mark.parametrize(("cls", "version"), WRITTEN)
def test_tuned_encoders_write_odd_messages_as_generic_ones_or_not_at_all(cls: type, version: int) -> None:
    tuned = schema_of(cls).tuned_encoder
    assert tuned is not None
    written = refusals = 0
    count = attempts(ATTEMPTS * len(WRITTEN)) // len(WRITTEN)
    for attempt in range(count):
        rng = random.Random(version * 1_000_000_007 + attempt)
        message = random_message(cls, version, rng, unknown_tags=bool(attempt & 1))
        for _ in range(rng.randint(0, 2)):
            make_odd(message, rng)
        expected = generic_outcome(message, version)
        parts = [b"head"]

        is_written = tuned(version, message, parts)

        assert parts == ([b"head", expected] if is_written else [b"head"]), f"v{version}, attempt {attempt}"
        assert chosen_outcome(message, version) == expected, f"v{version}, attempt {attempt}"
        written += is_written
        refusals += isinstance(expected, str)

    assert 0 < written < count
    assert 0 < refusals < count


# Classes


@pytest.mark.parametrize("cls", TUNED, ids=lambda cls: str(cls.__name__))
def test_a_tuned_class_has_the_declared_fields_and_defaults(cls: type[Any]) -> None:
    blank = cls()

    declared = {
        field.name: field.default() if isinstance(field.default, type) else field.default
        for field in schema_of(cls).fields
    }
    # A compiled class has no __dict__ but shows its attributes in dir().
    attributes = getattr(blank, "__dict__", None) or [name for name in dir(cls) if not name.startswith("_")]

    positions = {field.position for field in schema_of(cls).fields if field.position}

    assert set(attributes) == {*declared, "unknown_tags", *positions}
    assert {name: getattr(blank, name) for name in declared} == declared
    assert blank.unknown_tags == ()


@pytest.mark.parametrize("cls", TUNED, ids=lambda cls: str(cls.__name__))
def test_two_new_messages_share_no_list(cls: type[Any]) -> None:
    one, other = cls(), cls()

    for field in schema_of(cls).fields:
        value = getattr(one, field.name)
        assert not isinstance(value, list) or value is not getattr(other, field.name)
