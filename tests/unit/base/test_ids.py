"""Uuids as Kafka prints them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Malformed
from barnabas.base.ids import ZERO_UUID, Uuid, format_uuid, parse_uuid


def test_a_uuid_is_printed_as_kafka_does() -> None:
    value = Uuid(bytes.fromhex("a5bb235e20784ca5b55907e4310bfbff"))

    assert format_uuid(value) == "pbsjXiB4TKW1WQfkMQv7_w"
    assert format_uuid(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"


@given(st.binary(min_size=16, max_size=16))
def test_every_uuid_is_read_back(raw: bytes) -> None:
    assert parse_uuid(format_uuid(Uuid(raw))) == raw


@pytest.mark.parametrize("text", ["", "x", "pbsjXiB4TKW1WQfkMQv7/w", "A" * 24, "é" * 22, "A" * 21])
def test_an_invalid_uuid_is_rejected(text: str) -> None:
    with pytest.raises(Malformed, match="uuid"):
        parse_uuid(text)
