"""A directory that `barnabas up` wrote is started by Kafka 4.3.0, which gives all of it back; ours goes on.

Needs Java and Maven as the other tests here do.
"""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from barnabas.metadata.image import BROKER_RESOURCE
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.log.read_back import read_back, watermarks
from support.process.our_broker import OurBroker
from support.wire.frames import RawClient

TIMEOUT_S = 30
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 200
TRIMMED_TO = 50
# The records are of 2023, so that a wrong timestamp cannot be taken for the time of the test.
START_MS = 1_700_000_000_000
TOPICS = [
    NewTopic("codecs", 1, 1, config={"retention.ms": "-1"}),
    NewTopic("grown", 2, 1, config={"retention.ms": "-1", "max.message.bytes": "2000000"}),
    NewTopic("trimmed", 1, 1, config={"retention.ms": "-1", "segment.bytes": "1048576"}),
    NewTopic("compacted", 1, 1, config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}),
    NewTopic("deleted", 1, 1),
]
PLACES = [
    ("codecs", 0),
    ("grown", 0),
    ("grown", 1),
    ("grown", 2),
    ("grown", 3),
    ("trimmed", 0),
    ("compacted", 0),
]
DYNAMIC = {"TOPIC": 1, "BROKER": 2, "ALL": 3}


class Seen(NamedTuple):
    """What clients see of the cluster."""

    topics: dict[str, list[tuple[int, int, list[int]]]]
    settings: dict[str, dict[str, str | None]]
    watermarks: dict[tuple[str, int], tuple[int, int]]
    records: dict[tuple[str, int], list[list[Any]]]


def admin_of(address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": address, "log_level": 0})


def finish(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(TIMEOUT_S)


def produce(address: str, topic: str, partition: int, *, codec: str = "none", count: int = RECORDS) -> None:
    """One after another in batches of some ten records, by an idempotent producer."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "enable.idempotence": True,
            "compression.codec": codec,
            "batch.num.messages": 13,
            "log_level": 0,
        }
    )
    for number in range(count):
        producer.produce(
            topic,
            key=b"key %d" % (number % 20),
            value=b"%s record %d " % (codec.encode(), number) * 20,
            partition=partition,
            timestamp=START_MS + number,
            headers=[("codec", codec.encode()), ("codec", None)],
        )
    assert producer.flush(TIMEOUT_S) == 0


def first_life(address: str) -> None:
    admin = admin_of(address)
    finish(admin.create_topics(TOPICS, operation_timeout=TIMEOUT_S))
    for codec in CODECS:
        produce(address, "codecs", 0, codec=codec)
    produce(address, "trimmed", 0)
    finish(admin.delete_records([TopicPartition("trimmed", 0, TRIMMED_TO)]))
    for _ in range(3):
        produce(address, "compacted", 0)
    finish(admin.delete_topics(["deleted"], operation_timeout=TIMEOUT_S))


def second_life(address: str) -> None:
    admin = admin_of(address)
    finish(admin.create_partitions([NewPartitions("grown", 4)]))
    for partition in range(4):
        produce(address, "grown", partition, count=10 * partition)
    finish(
        admin.incremental_alter_configs(
            [
                changed("TOPIC", "grown", "retention.bytes", "123456789"),
                changed("BROKER", "1", "log.retention.ms", "987654321"),
            ]
        )
    )
    asyncio.run(set_for_all_brokers(address, "message.max.bytes", "1048000"))


async def set_for_all_brokers(address: str, name: str, value: str) -> None:
    """librdkafka has no word for all brokers, so this is sent as it is."""
    host, _, port = address.rpartition(":")
    client = await RawClient.connect(host, int(port))
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsAlterConfigsResource(
                resource_type=BROKER_RESOURCE,
                resource_name="",
                configs=[IncrementalAlterConfigsAlterableConfig(name=name, config_operation=0, value=value)],
            )
        ]
    )
    answer = await client.call(request, 1, key=ApiKey.INCREMENTAL_ALTER_CONFIGS)
    client.close()
    assert [one.error_code for one in answer.responses] == [0], answer


def changed(kind: str, name: str, setting: str, value: str) -> ConfigResource:
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    return ConfigResource(ConfigResource.Type[kind], name, incremental_configs=[entry])


def look(address: str) -> Seen:
    admin = admin_of(address)
    topics = {
        name: [(one.id, one.leader, one.replicas) for one in topic.partitions.values()]
        for name, topic in admin.list_topics(timeout=TIMEOUT_S).topics.items()
        if not name.startswith("__")
    }
    return Seen(
        topics=topics,
        settings={
            **{name: settings_of(admin, "TOPIC", name) for name in topics},
            "1": settings_of(admin, "BROKER", "1"),
        },
        watermarks={place: watermarks(address, *place) for place in PLACES},
        records={place: read_back(address, *place) for place in PLACES},
    )


def settings_of(admin: AdminClient, kind: str, name: str) -> dict[str, str | None]:
    """What is set by the metadata log, as opposed to a file or a default."""
    [described] = admin.describe_configs([ConfigResource(ConfigResource.Type[kind], name)]).values()
    wanted = DYNAMIC.values()
    return {key: entry.value for key, entry in described.result(TIMEOUT_S).items() if entry.source in wanted}


def test_kafka_serves_our_data_and_our_broker_continues_after_it(tmp_path: Path) -> None:
    tools = kafka_tools()
    ours = OurBroker(tmp_path / "ours", settings={"log.cleaner.enable": "false"})
    with ours.running() as address:
        first_life(address)
    with ours.running() as address:
        second_life(address)
        before = look(address)

    theirs_root = tmp_path / "theirs"
    theirs_root.mkdir()
    kafka = KafkaBroker(tools, theirs_root, logs=ours.logs, settings={"log.cleaner.enable": "false"})
    with kafka.running() as address:
        seen_by_kafka = look(address)
        produce(address, "codecs", 0, codec="zstd", count=5)
    with ours.running() as address:
        afterwards = look(address)

    assert seen_by_kafka == before
    assert sorted(before.topics) == ["codecs", "compacted", "grown", "trimmed"]
    assert len(before.records["codecs", 0]) == RECORDS * len(CODECS)
    assert before.watermarks["trimmed", 0] == (TRIMMED_TO, RECORDS)
    assert before.watermarks["grown", 3] == (0, 30)
    assert before.settings["grown"]["retention.bytes"] == "123456789"
    assert before.settings["1"]["log.retention.ms"] == "987654321"
    assert before.settings["1"]["message.max.bytes"] == "1048000"
    assert afterwards.records["codecs", 0][:-5] == before.records["codecs", 0]
    assert afterwards._replace(records={}, watermarks={}) == before._replace(records={}, watermarks={})
