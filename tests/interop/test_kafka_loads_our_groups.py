"""Groups and offsets that Barnabas wrote are loaded by Kafka 4.3.0, and what Kafka adds by us again.

Needs Java and Maven as the other tests here do.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.process.our_broker import OurBroker

TIMEOUT_S = 30
RECORDS = 100
PARTITIONS = 4
GROUPS = {"classics": "classic", "moderns": "consumer"}
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 1,
}


def admin_of(address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": address, "log_level": 0})


def fill(address: str) -> None:
    admin = admin_of(address)
    admin.create_topics([NewTopic("orders", PARTITIONS, 1, config={"retention.ms": "-1"})])["orders"].result(
        TIMEOUT_S
    )
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for number in range(RECORDS):
        producer.produce("orders", str(number), partition=number % PARTITIONS)
    assert producer.flush(TIMEOUT_S) == 0


def consume(address: str, group: str, protocol: str, count: int) -> None:
    """Read some records in a group, commit them with a note, and leave."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe(["orders"])
    deadline = time.monotonic() + TIMEOUT_S
    positions: dict[int, int] = {}
    while count > 0:
        assert time.monotonic() < deadline, "no records"
        message = consumer.poll(0.5)
        if message is None or message.error():
            continue
        count -= 1
        positions[message.partition()] = message.offset() + 1
    offsets = [
        TopicPartition("orders", partition, offset, f"note {offset}")
        for partition, offset in positions.items()
    ]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def seen_of(address: str) -> dict[str, Any]:
    """Committed offsets with their notes, and what the groups are, as soon as they can be told."""
    admin = admin_of(address)

    def look() -> dict[str, Any]:
        listed = admin.list_consumer_groups(request_timeout=TIMEOUT_S).result(TIMEOUT_S).valid
        kinds = {one.group_id: (one.type.name, one.state.name) for one in listed}
        offsets = {}
        for group in GROUPS:
            asked = [ConsumerGroupTopicPartitions(group)]
            (future,) = admin.list_consumer_group_offsets(asked, request_timeout=TIMEOUT_S).values()
            offsets[group] = {
                (one.topic, one.partition): (one.offset, one.metadata, one.leader_epoch)
                for one in future.result(TIMEOUT_S).topic_partitions
            }
        return {"kinds": kinds, "offsets": offsets}

    return patient(look)


def patient(look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A coordinator that has just been started may still be loading."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            found = look()
            if len(found["kinds"]) == len(GROUPS):
                return found
        except Exception:
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


@pytest.mark.parametrize("ending", ["a clean stop", "a kill"])
def test_groups_go_from_us_to_kafka_and_back(tmp_path: Path, ending: str) -> None:
    tools = kafka_tools()
    ours = OurBroker(tmp_path / "ours", settings=SETTINGS)
    ours.start()
    fill(ours.address)
    for group, protocol in GROUPS.items():
        consume(ours.address, group, protocol, 10)
    first = seen_of(ours.address)
    ours.stop() if ending == "a clean stop" else ours.kill()

    kafka = KafkaBroker(tools, tmp_path, logs=ours.logs, settings=SETTINGS)
    with kafka.running() as address:
        assert seen_of(address) == first
        for group, protocol in GROUPS.items():
            consume(address, group, protocol, 20)
        second = seen_of(address)

    assert second["offsets"] != first["offsets"]
    with ours.running() as address:
        assert seen_of(address) == second
        for group, protocol in GROUPS.items():
            consume(address, group, protocol, 5)
