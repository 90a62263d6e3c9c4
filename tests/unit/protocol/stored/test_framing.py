"""Type and version of stored messages: known bytes, and errors for unknown ones."""

import pytest

from barnabas.base.errors import Malformed
from barnabas.protocol.stored.cluster_topics import RemoveTopicRecord, TopicRecord
from barnabas.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from barnabas.protocol.stored.control import EndTxnMarker, LeaderChangeMessage
from barnabas.protocol.stored.framing import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    UnknownRecord,
    decode_control,
    decode_metadata_record,
    decode_versioned,
    encode_control,
    encode_key,
    encode_metadata_record,
    encode_value,
)
from barnabas.protocol.stored.offsets import OffsetCommitKey, OffsetCommitValue
from barnabas.records.control import ControlType


def test_a_metadata_record_starts_with_frame_type_and_version() -> None:
    data = encode_metadata_record(TopicRecord(name="t"), 0)

    assert data.hex() == "010200" + "0274" + "00" * 16 + "00"
    assert decode_metadata_record(data) == (TopicRecord(name="t"), 0)


def test_metadata_types_are_distinguished() -> None:
    data = encode_metadata_record(RemoveTopicRecord(), 0)

    assert data.startswith(b"\x01\x09\x00")
    assert isinstance(decode_metadata_record(data).message, RemoveTopicRecord)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x02\x02\x00", "frame version is 2, expected 1"),
        (b"\x01\x7f\x00", "type 127: unknown type"),
        (b"\x01\x02\x05", "type 2: version 5 is unknown, expected 0"),
    ],
)
def test_a_metadata_record_of_a_later_release_is_detected(data: bytes, says: str) -> None:
    with pytest.raises(UnknownRecord, match=says):
        decode_metadata_record(data)


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x01\x02", b"\x01\xff\xff\xff\xff\xff\x01"])
def test_a_metadata_record_without_a_type_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed, match="ends before its type"):
        decode_metadata_record(data)


def test_a_coordinator_key_starts_with_its_type_and_a_value_with_its_version() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    value = OffsetCommitValue(offset=7, metadata="m", commit_timestamp=1)

    assert encode_key(key).hex() == "0001" + "000167" + "000174" + "00000003"
    assert CONSUMER_OFFSETS.decode_key(encode_key(key)) == key
    assert CONSUMER_OFFSETS.decode_value(key, encode_value(value, 3)) == (value, 3)


def test_the_same_type_number_means_another_message_in_another_topic() -> None:
    data = b"\x00\x00" + b"\x00\x01x"

    assert type(TRANSACTION_STATE.decode_key(data)).__name__ == "TransactionLogKey"
    with pytest.raises(Malformed, match="LegacyOffsetCommitKey v0, topic"):
        CONSUMER_OFFSETS.decode_key(data)


def test_unknown_coordinator_types_and_versions_are_detected() -> None:
    with pytest.raises(UnknownRecord, match="key type 99 in __consumer_offsets: unknown type"):
        CONSUMER_OFFSETS.decode_key(b"\x00\x63")
    with pytest.raises(UnknownRecord, match="version 99 is unknown, expected"):
        CONSUMER_OFFSETS.decode_value(OffsetCommitKey(), b"\x00\x63")
    with pytest.raises(Malformed, match="1 bytes are too few"):
        CONSUMER_OFFSETS.decode_key(b"\x00")


def test_a_transaction_marker_has_its_version_in_front() -> None:
    data = encode_control(EndTxnMarker(coordinator_epoch=5))

    assert data.hex() == "0000" + "00000005"
    assert decode_control(ControlType.COMMIT, data) == (EndTxnMarker(coordinator_epoch=5), 0)


def test_a_marker_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    marker, _ = decode_control(ControlType.ABORT, b"\x00\x07" + b"\x00\x00\x00\x05" + b"more")

    assert marker == EndTxnMarker(coordinator_epoch=5)


def test_a_leader_change_says_its_version_in_a_field() -> None:
    change = LeaderChangeMessage(version=1, leader_id=2)

    assert decode_control(ControlType.LEADER_CHANGE, encode_control(change, 1)) == (change, 1)
    with pytest.raises(UnknownRecord, match="LEADER_CHANGE: version 9"):
        decode_control(ControlType.LEADER_CHANGE, b"\x00\x09")


def test_a_newer_consumer_protocol_is_read_as_the_last_one_known() -> None:
    data = encode_value(ConsumerProtocolSubscription(topics=["t"], generation_id=4, rack_id="r"), 3)

    newer = b"\x00\x09" + data[2:] + b"fields of version 9"

    subscription, version = decode_versioned(ConsumerProtocolSubscription, newer, newer_as_last=True)
    assert (subscription.topics, subscription.rack_id, version) == (["t"], "r", 3)
    with pytest.raises(UnknownRecord):
        decode_versioned(ConsumerProtocolAssignment, newer)
