"""Transactions that Barnabas wrote are loaded by Kafka 4.3.0 and ended there, and the other way round.

Needs Java and Maven as the other tests here do.
"""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from barnabas.client.admin import Admin
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.process.our_broker import OurBroker

TIMEOUT_S = 30
SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}


def create(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result(TIMEOUT_S)


def producer_of(address: str, transactional_id: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 60_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    return producer


def write(producer: Producer, *values: str) -> None:
    for number, value in enumerate(values):
        producer.produce("orders", value, partition=number % 2)
    assert producer.flush(TIMEOUT_S) == 0


def leave_three(address: str) -> None:
    """One transaction that is committed, one that is aborted, and one that stays open."""
    for transactional_id, ends in (("commits", "commit"), ("aborts", "abort"), ("stays", "")):
        producer = producer_of(address, transactional_id)
        write(producer, f"{transactional_id}-1", f"{transactional_id}-2")
        if ends == "commit":
            producer.commit_transaction(TIMEOUT_S)
        elif ends == "abort":
            producer.abort_transaction(TIMEOUT_S)


def told_by(address: str) -> dict[str, Any]:
    """States, producers and partitions of all transactional ids, as soon as they are loaded."""

    async def look() -> dict[str, Any]:
        async with Admin(bootstrap_servers=address) as admin:
            listed = await admin.list_transactions()
            found = await admin.describe_transactions(list(listed))
            return {
                name: (
                    one.state.name,
                    one.producer_id,
                    one.producer_epoch,
                    one.timeout_ms,
                    sorted(map(str, one.partitions)),
                )
                for name, one in found.items()
            }

    deadline = time.monotonic() + TIMEOUT_S
    while True:
        found = asyncio.run(look())
        if len(found) == 3:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def committed(address: str, count: int) -> set[str]:
    """What a reader of committed records sees, when it has seen so much; then nothing more may come."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition("orders", index, 0) for index in range(2)])
    seen: set[str] = set()
    deadline = time.monotonic() + TIMEOUT_S
    quiet = 0
    while quiet < 3:
        assert time.monotonic() < deadline, seen
        message = consumer.poll(0.5)
        if message is not None and not message.error():
            seen.add(message.value().decode())
        elif len(seen) >= count:
            quiet += 1
    consumer.close()
    return seen


@pytest.mark.parametrize("ending", ["a clean stop", "a kill"])
def test_transactions_go_from_us_to_kafka_and_back(tmp_path: Path, ending: str) -> None:
    tools = kafka_tools()
    ours = OurBroker(tmp_path / "ours", settings=SETTINGS)
    ours.start()
    try:
        create(ours.address)
        leave_three(ours.address)
        first = told_by(ours.address)
        assert {name: told[0] for name, told in first.items()} == {
            "commits": "COMPLETE_COMMIT",
            "aborts": "COMPLETE_ABORT",
            "stays": "ONGOING",
        }
        assert committed(ours.address, 2) == {"commits-1", "commits-2"}
        if ending == "a clean stop":
            ours.stop()
    finally:
        ours.kill()

    theirs = KafkaBroker(tools, tmp_path, logs=ours.logs, settings=SETTINGS)
    with theirs.running() as address:
        assert told_by(address) == first
        # Whoever comes with the id of the open one has it aborted, and goes on.
        producer = producer_of(address, "stays")
        write(producer, "in-kafka")
        producer.commit_transaction(TIMEOUT_S)
        second = told_by(address)
        seen = committed(address, 3)
    assert seen == {"commits-1", "commits-2", "in-kafka"}
    assert second["stays"][0] == "COMPLETE_COMMIT"

    with ours.running() as address:
        assert told_by(address) == second
        producer = producer_of(address, "aborts")
        write(producer, "at-home")
        producer.commit_transaction(TIMEOUT_S)
        assert committed(address, 4) == seen | {"at-home"}
