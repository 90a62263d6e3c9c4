"""A record is printed as Kafka's formatters print it."""

from dataclasses import dataclass

import pytest

from barnabas.cli.console.deserializers import UnknownDeserializer
from barnabas.cli.console.formatters import default_formatter, log_line

EVERYTHING = {
    f"print.{name}": "true"
    for name in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
}


@dataclass
class Message:
    topic: str = "orders"
    partition: int = 1
    offset: int = 2
    timestamp: int = 1794744206769
    timestamp_type: int = 0
    key: bytes | None = b"key"
    value: bytes | None = b"value"
    headers: tuple[tuple[str, bytes | None], ...] = (("h1", b"v1"), ("h2", None))


def test_only_the_value_is_printed_by_default() -> None:
    assert default_formatter({})(Message()) == b"value\n"
    assert default_formatter({})(Message(value=None)) == b"null\n"


def test_columns_are_in_kafkas_order() -> None:
    asked = dict(reversed(EVERYTHING.items()))

    assert default_formatter(asked)(Message()) == (
        b"CreateTime:1794744206769\tPartition:1\tOffset:2\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\t"
        b"h1:v1,h2:null\tkey\tvalue\n"
    )


def test_missing_columns_are_printed_as_kafkas_words() -> None:
    bare = Message(timestamp=-1, key=None, value=None, headers=())

    assert default_formatter(EVERYTHING)(bare) == (
        b"NO_TIMESTAMP\tPartition:1\tOffset:2\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\t"
        b"NO_HEADERS\tnull\tnull\n"
    )


def test_log_append_time_has_its_own_name() -> None:
    shown = default_formatter({"print.timestamp": "TRUE", "print.value": "false"})

    assert shown(Message(timestamp_type=1)) == b"LogAppendTime:1794744206769\n"


def test_separators_and_the_null_literal_can_be_set() -> None:
    properties = {
        "print.key": "true",
        "print.headers": "true",
        "key.separator": "|",
        "line.separator": ";",
        "headers.separator": "&",
        "null.literal": "NIL",
    }

    assert default_formatter(properties)(Message(key=None)) == b"h1:v1&h2:NIL|NIL|value;"


def test_deserializers_are_not_applied_to_null() -> None:
    properties = {
        "print.key": "true",
        "key.deserializer": "org.apache.kafka.common.serialization.IntegerDeserializer",
        "value.deserializer": "LongDeserializer",
    }

    assert default_formatter(properties)(Message(key=b"\0\0\0\7", value=b"\0" * 7 + b"\1")) == b"7\t1\n"
    assert default_formatter(properties)(Message(key=None, value=None)) == b"null\tnull\n"


def test_without_columns_nothing_is_printed() -> None:
    assert default_formatter({"print.value": "false"})(Message()) == b""


def test_an_unknown_deserializer_fails_before_the_first_record() -> None:
    with pytest.raises(UnknownDeserializer):
        default_formatter({"value.deserializer": "Nope"})


def test_the_log_line_names_time_key_and_value() -> None:
    assert log_line(Message()) == "CreateTime:1794744206769, key:key, value:value"
    assert log_line(Message(timestamp=-1, key=None, value=None)) == "key:null value:null"
