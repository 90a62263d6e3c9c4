"""Messages as values."""

import pytest

from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.records.header import TimestampType

pytestmark = pytest.mark.kernel


def message(offset: int = 5, value: bytes | None = b"v") -> Message:
    return Message("orders", 2, offset, 17, TimestampType.CREATE_TIME, None, value, (("h", None),), 4)


def test_a_message_has_all_fields() -> None:
    one = message()

    assert (one.tp, one.offset, one.timestamp, one.leader_epoch) == (("orders", 2), 5, 17, 4)
    assert (one.key, one.value, one.headers) == (None, b"v", (("h", None),))
    assert one.timestamp_type is TimestampType.CREATE_TIME
    assert repr(one).startswith("Message(topic='orders', partition=2, offset=5")


def test_messages_are_equal_if_all_fields_are() -> None:
    assert message() == message()
    assert hash(message()) == hash(message())
    assert message() != message(offset=6)
    assert message() != message(value=None)
    assert message() != "message"


def test_end_of_partition_is_no_record() -> None:
    end = EndOfPartition("orders", 2, 5)

    assert isinstance(end, Message)
    assert (end.tp, end.offset, end.value) == (("orders", 2), 5, None)
    assert end == EndOfPartition("orders", 2, 5)
    assert end != Message("orders", 2, 5, -1, TimestampType.CREATE_TIME, None, None, (), -1)
    assert repr(end) == "EndOfPartition(topic='orders', partition=2, offset=5)"
