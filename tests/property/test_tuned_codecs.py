"""Codecs written by hand against the generated ones: the same values, the same refusals.

Both decoders of a message are called by themselves here; codec.py picks one of them.
"""

import random
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

import barnabas.protocol.tuned
from barnabas.base.errors import Malformed
from barnabas.protocol.schema.codec import encode
from barnabas.protocol.schema.decoder import compile_decoder
from barnabas.protocol.schema.struct import schema_of
from support.fuzz import lie, sample
from support.messages import MESSAGES, random_message
from support.mutations import attempts, mutate

pytestmark = pytest.mark.kernel

BY_HAND = [
    pytest.param(cls, version, id=f"{name} v{version}")
    for name, cls in sorted(MESSAGES.items())
    if schema_of(cls).tuned_decoder is not None
    for version in schema_of(cls).versions.all()
]
# For each version of each message.
ATTEMPTS = 300


def tuned_classes() -> Iterator[type[Any]]:
    for info in iter_modules(barnabas.protocol.tuned.__path__, "barnabas.protocol.tuned."):
        for value in vars(import_module(info.name)).values():
            if isinstance(value, type) and "__schema__" in vars(value):
                yield value


TUNED = list(tuned_classes())


def both(cls: type, version: int) -> tuple[Callable[[bytes, int], Any], Callable[[bytes, int], Any]]:
    by_hand = schema_of(cls).tuned_decoder
    assert by_hand is not None
    return lambda data, at: by_hand(version, data, at), compile_decoder(cls, version)


def outcome(decode: Callable[[bytes, int], Any], data: bytes) -> Any:
    try:
        return decode(data, 0)
    except Malformed as found:
        return str(found)


def test_the_fetch_request_is_among_them() -> None:
    assert {"FetchRequest", "FetchTopic", "FetchPartition"} <= {cls.__name__ for cls in TUNED}
    assert any(param.values[0].__name__ == "FetchRequest" for param in BY_HAND)


@pytest.mark.parametrize(("cls", "version"), BY_HAND)
def test_both_decoders_read_the_same_from_good_bytes(cls: type, version: int) -> None:
    by_hand, generated = both(cls, version)
    rng = random.Random(version)
    for _ in range(50):
        message = random_message(cls, version, rng)
        data = b"head" + encode(message, version) + b"tail"

        read = by_hand(data, 4)

        assert read == (message, len(data) - 4)
        assert read == generated(data, 4)


@pytest.mark.parametrize(("cls", "version"), BY_HAND)
def test_both_decoders_read_the_same_from_damaged_bytes_or_refuse_them_alike(cls: type, version: int) -> None:
    by_hand, generated = both(cls, version)
    refusals = 0
    count = attempts(ATTEMPTS * len(BY_HAND)) // len(BY_HAND)
    for attempt in range(count):
        rng = random.Random(version * 1_000_000_007 + attempt)
        good = sample(cls, version, rng)
        data = lie(rng, good) if attempt & 1 else mutate(rng, good.data)

        read = outcome(by_hand, data)

        assert read == outcome(generated, data), f"v{version}, attempt {attempt}: {data.hex()}"
        refusals += isinstance(read, str)

    assert 0 < refusals < count


# What a class knows beside its fields: where in the frame the records are.
BESIDE = {"PartitionProduceData": ("start",)}


@pytest.mark.parametrize("cls", TUNED, ids=lambda cls: str(cls.__name__))
def test_a_tuned_class_has_the_declared_fields_and_defaults(cls: type[Any]) -> None:
    blank = cls()

    declared = {
        field.name: field.default() if isinstance(field.default, type) else field.default
        for field in schema_of(cls).fields
    }
    # A compiled class has no __dict__ but shows its attributes in dir().
    attributes = getattr(blank, "__dict__", None) or [name for name in dir(cls) if not name.startswith("_")]

    assert set(attributes) == {*declared, "unknown_tags", *BESIDE.get(cls.__name__, ())}
    assert {name: getattr(blank, name) for name in declared} == declared
    assert blank.unknown_tags == ()


@pytest.mark.parametrize("cls", TUNED, ids=lambda cls: str(cls.__name__))
def test_two_new_messages_share_no_list(cls: type[Any]) -> None:
    one, other = cls(), cls()

    for field in schema_of(cls).fields:
        value = getattr(one, field.name)
        assert not isinstance(value, list) or value is not getattr(other, field.name)
