"""Records of internal topics are printed as Kafka's formatters print them."""

from dataclasses import dataclass

import pytest

from barnabas.cli.console.internal_formatters import CannotShow, internal_formatter
from barnabas.protocol.stored.framing import encode_key, encode_value
from barnabas.protocol.stored.offsets import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
)

PACKAGE = "org.apache.kafka.tools.consumer."


@dataclass
class Message:
    key: bytes | None
    value: bytes | None
    topic: str = "__consumer_offsets"
    partition: int = 0
    offset: int = 7
    timestamp: int = 0
    timestamp_type: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


COMMIT = encode_key(OffsetCommitKey(group="g", topic="t", partition=3))
COMMITTED = encode_value(OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9), 3)
GROUP = encode_key(GroupMetadataKey(group="g"))


def shown(formatter: str, key: bytes | None, value: bytes | None) -> str:
    found = internal_formatter(PACKAGE + formatter)
    assert found is not None
    return found(Message(key, value)).decode()


def test_a_committed_offset_is_one_object_without_a_line_end() -> None:
    assert shown("OffsetsMessageFormatter", COMMIT, COMMITTED) == (
        '{"key":{"type":1,"data":{"group":"g","topic":"t","partition":3}},'
        '"value":{"version":3,"data":{"offset":5,"leaderEpoch":-1,"metadata":"m","commitTimestamp":9}}}'
    )


def test_a_tombstone_has_no_value() -> None:
    assert shown("OffsetsMessageFormatter", COMMIT, None).endswith('"value":null}')


def test_records_of_other_kinds_are_skipped() -> None:
    assert shown("OffsetsMessageFormatter", GROUP, None) == ""
    assert shown("GroupMetadataMessageFormatter", COMMIT, COMMITTED) == ""
    assert shown("GroupMetadataMessageFormatter", GROUP, None).startswith('{"key":{"type":2,')
    assert shown("OffsetsMessageFormatter", b"\x7f\xff", None) == ""
    assert shown("OffsetsMessageFormatter", None, b"x") == ""


def test_a_malformed_record_is_reported_with_its_offset() -> None:
    with pytest.raises(CannotShow, match=r"^Could not read record at offset 7 due to: "):
        shown("OffsetsMessageFormatter", COMMIT[:-1], None)


def test_an_unknown_class_has_no_formatter() -> None:
    assert internal_formatter("com.example.Mine") is None
