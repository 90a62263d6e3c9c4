"""`barnabas up` on a directory that Kafka 4.3.0 wrote: clients see the cluster that Kafka left.

The records are of 2025 and the topics have Kafka's default retention, so any broker would delete them at its
first look, Kafka too: retention is switched off for the whole broker, and so is compaction.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions  # type: ignore[attr-defined]
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from support.kafka.sample import expected_reads, sample_files
from support.log.read_back import read_back, watermarks
from support.process.our_broker import OurBroker

EXPECTED = expected_reads()
READS = [key for key in EXPECTED if key != "groups"]
# Only every 500th record of this partition was written down.
SAMPLED = {"rolled-0": 500}
TOPICS = {
    "first": 1,
    "codecs": 1,
    "append-time": 1,
    "txn": 2,
    "idempotent": 1,
    "compacted": 1,
    "rolled": 1,
    "trimmed": 1,
    "__transaction_state": 2,
    "__consumer_offsets": 2,
}
SETTINGS = {
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {
        "cleanup.policy": "compact",
        "delete.retention.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.bytes": "1048576",
        "segment.ms": "1000",
    },
    "rolled": {"index.interval.bytes": "4096", "segment.bytes": "1048576"},
    "codecs": {},
}
BROKER = {"log.retention.ms": -1, "log.cleaner.enable": "false"}
DYNAMIC_TOPIC_CONFIG = 1
TIMEOUT_S = 20


@pytest.fixture(scope="module", params=["as Kafka left it", "started again", "after a kill"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("sample")
    for name, data in sample_files().items():
        path = root / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    broker = OurBroker(root, logs=root / "data", settings=BROKER)
    if request.param != "as Kafka left it":
        broker.start()
        broker.kill() if request.param == "after a kill" else broker.stop()
    with broker.running() as served:
        yield served
    told = broker.output.read_text()
    assert "WARNING" not in told
    assert "ERROR" not in told


@pytest.fixture(scope="module")
def admin(address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": address, "log_level": 0})


def test_the_topics_are_there_with_their_partitions(admin: AdminClient) -> None:
    found = admin.list_topics(timeout=30)

    assert {name: len(topic.partitions) for name, topic in found.topics.items()} == TOPICS
    assert found.cluster_id == "8UFBlDBzRM2WGJual5ztlg"
    for topic in found.topics.values():
        for partition in topic.partitions.values():
            assert (partition.leader, partition.replicas, partition.isrs) == (1, [1], [1])


@pytest.mark.parametrize("topic", SETTINGS)
def test_topics_have_the_settings_that_kafka_gave_them(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)

    [described] = admin.describe_configs([resource]).values()

    own = {
        name: entry.value
        for name, entry in described.result(30).items()
        if entry.source == DYNAMIC_TOPIC_CONFIG
    }
    assert own == SETTINGS[topic]


@pytest.mark.parametrize("read", READS)
def test_a_consumer_reads_the_same_records_as_from_kafka(address: str, read: str) -> None:
    place, isolation = read.split()
    topic, _, partition = place.rpartition("-")
    expected: dict[str, Any] = EXPECTED[read]

    found = read_back(address, topic, int(partition), isolation)

    assert watermarks(address, topic, int(partition)) == (expected["low"], expected["high"])
    assert found[:: SAMPLED.get(place, 1)] == expected["records"]


def test_groups_and_offsets_equal_those_of_kafka(address: str, admin: AdminClient) -> None:
    groups = EXPECTED["groups"]

    seen = {name: committed_by(admin, name) for name in groups}

    assert seen == groups
    listed = admin.list_consumer_groups(request_timeout=TIMEOUT_S).result().valid
    assert {one.group_id: (one.type.name, one.state.name) for one in listed} == {
        "classic-group": ("CLASSIC", "EMPTY"),
        "consumer-group": ("CONSUMER", "EMPTY"),
        # Of one of the tools. It committed nothing.
        "console-consumer-63832": ("CLASSIC", "EMPTY"),
    }


def committed_by(admin: AdminClient, group: str) -> dict[str, int]:
    asked = [ConsumerGroupTopicPartitions(group)]
    (future,) = admin.list_consumer_group_offsets(asked, request_timeout=TIMEOUT_S).values()
    return {f"{one.topic}-{one.partition}": one.offset for one in future.result(TIMEOUT_S).topic_partitions}
