"""The encoding of subscriptions and assignments in classic groups."""

import pytest

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.client.group.subscription import (
    Subscription,
    decode_assignment,
    decode_generation,
    decode_previous,
    decode_subscription,
    encode_assignment,
    encode_generation,
    encode_previous,
    encode_subscription,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_a_subscription_in_its_newest_form() -> None:
    told = Subscription(
        topics=frozenset("ba"), owned=frozenset((B0, A1)), generation=7, user_data=b"u", rack="r"
    )

    data = encode_subscription(told)

    assert data == (
        b"\x00\x03"
        b"\x00\x00\x00\x02\x00\x01a\x00\x01b"
        b"\x00\x00\x00\x01u"
        b"\x00\x00\x00\x02\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x01\x00\x01b\x00\x00\x00\x01\x00\x00\x00\x00"
        b"\x00\x00\x00\x07"
        b"\x00\x01r"
    )
    assert decode_subscription(data) == told


def test_the_oldest_form_has_topics_and_bytes_only() -> None:
    found = decode_subscription(b"\x00\x00\x00\x00\x00\x01\x00\x01a\xff\xff\xff\xff", instance_id="i")

    assert found == Subscription(topics=frozenset("a"), instance_id="i")


def test_a_version_of_the_future_is_read_as_far_as_it_is_known() -> None:
    data = encode_subscription(Subscription(topics=frozenset("a"), generation=7))

    assert decode_subscription(b"\x00\x09" + data[2:] + b"more").generation == 7


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x00\x00\x00\x00\x01", b"\xff\xff"])
def test_malformed_subscriptions(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_subscription(data)


def test_an_assignment_and_none() -> None:
    assert decode_assignment(encode_assignment([B0, A1, A0])) == {A0, A1, B0}
    assert decode_assignment(encode_assignment([])) == frozenset()
    assert decode_assignment(b"") == frozenset()


def test_previous_partitions_of_a_sticky_member_with_and_without_a_generation() -> None:
    data = encode_previous([A1, A0], 5)

    assert (
        data == b"\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x05"
    )
    assert decode_previous(data) == ({A0, A1}, 5)
    assert decode_previous(data[:-4]) == ({A0, A1}, -1)


@pytest.mark.parametrize("data", [None, b"", b"x", b"\x00\x00\x00\x05", b"\x7f\xff\xff\xff" * 4])
def test_unreadable_user_data_is_ignored(data: bytes | None) -> None:
    assert decode_previous(data) == (frozenset(), -1)


def test_a_generation_alone() -> None:
    assert decode_generation(encode_generation(3)) == 3
    assert decode_generation(None) == decode_generation(b"abc") == -1
