"""The records that Kafka 4.3.0 keeps about itself: metadata, offsets, transactions, control records.

Every one in the sample directory decodes, and encodes back to the bytes that Kafka wrote.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from barnabas.protocol.stored import framing
from barnabas.protocol.stored.framing import CONSUMER_OFFSETS, TRANSACTION_STATE, CoordinatorTopic
from barnabas.records.control import ControlType, control_key, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.header import batch_headers
from barnabas.records.record import Record
from support.kafka.sample import expected_reads, sample_files

pytestmark = pytest.mark.kernel


def records_of(start: str, *, control: bool) -> Iterator[Record]:
    """Every data record, or every control record, of the logs whose paths begin with `start`."""
    for name, data in sample_files().items():
        if name.startswith(start) and name.endswith((".log", ".checkpoint")):
            for at, header in batch_headers(data):
                if header.is_control == control:
                    yield from decode_batch(data, at)


@pytest.mark.parametrize("name", ["__cluster_metadata-0", "bootstrap.checkpoint"])
def test_metadata_records_decode_and_encode_back(name: str) -> None:
    seen = Counter[str]()
    for record in records_of(name, control=False):
        assert record.value is not None

        message, version = framing.decode_metadata_record(record.value)

        assert framing.encode_metadata_record(message, version) == record.value
        seen[type(message).__name__] += 1
    assert seen["FeatureLevelRecord"] > 0
    if name == "__cluster_metadata-0":
        assert seen["TopicRecord"] > 5
        assert seen["PartitionRecord"] > 5
        assert seen["RegisterBrokerRecord"] > 0


@pytest.mark.parametrize(
    ("topic", "key_types"),
    [
        (CONSUMER_OFFSETS, {"OffsetCommitKey", "GroupMetadataKey", "ConsumerGroupMetadataKey"}),
        (TRANSACTION_STATE, {"TransactionLogKey"}),
    ],
    ids=["offsets", "transactions"],
)
def test_coordinator_records_decode_and_encode_back(topic: CoordinatorTopic, key_types: set[str]) -> None:
    seen = set()
    for record in records_of(topic.name, control=False):
        assert record.key is not None
        key = topic.decode_key(record.key)
        assert framing.encode_key(key) == record.key
        seen.add(type(key).__name__)
        if record.value is None:
            continue

        value, version = topic.decode_value(key, record.value)

        assert framing.encode_value(value, version) == record.value
    assert key_types <= seen


def test_committed_offsets_equal_those_of_a_client() -> None:
    groups = expected_reads()["groups"]
    committed: dict[str, dict[str, int]] = {}
    for record in records_of(CONSUMER_OFFSETS.name, control=False):
        assert record.key is not None
        key = CONSUMER_OFFSETS.decode_key(record.key)
        if type(key).__name__ == "OffsetCommitKey" and record.value is not None:
            value = CONSUMER_OFFSETS.decode_value(key, record.value).message
            committed.setdefault(key.group, {})[f"{key.topic}-{key.partition}"] = value.offset

    assert {group: committed[group] for group in groups} == groups


def test_control_records_decode_and_encode_back() -> None:
    kinds = Counter[ControlType | int]()
    for record in records_of("", control=True):
        kind = read_control_type(record.key)
        assert isinstance(kind, ControlType)
        assert record.value is not None

        message, version = framing.decode_control(kind, record.value)

        assert framing.encode_control(message, version) == record.value
        assert control_key(kind) == record.key
        kinds[kind] += 1
    assert {ControlType.COMMIT, ControlType.ABORT, ControlType.LEADER_CHANGE} <= set(kinds)
    assert {ControlType.SNAPSHOT_HEADER, ControlType.SNAPSHOT_FOOTER} <= set(kinds)
