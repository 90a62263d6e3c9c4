"""Transactions that one process opens and another one ends, with the clients for scripts."""

import pickle
import subprocess
import sys
from collections.abc import Iterator

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.producer.transaction import OpenTransaction
from barnabas.client.producer.transaction_errors import ProducerFenced
from barnabas.testing import Broker

# Its arguments: the address, what to join (nothing: it begins its own), the topic, a partition, values.
WRITER = """
import pickle, sys
from barnabas.client.blocking import Producer

address, joined, topic, partition, *values = sys.argv[1:]
with Producer(bootstrap_servers=address, transactional_id=topic) as producer:
    if joined:
        producer.join_transaction(pickle.loads(bytes.fromhex(joined)))
    else:
        producer.begin_transaction()
    for value in values:
        producer.send(topic, value.encode(), partition=int(partition))
    print(pickle.dumps(producer.hand_over_transaction()).hex())
"""
VALUES = [f"{number:03d}" for number in range(200)]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        yield broker.bootstrap


@pytest.fixture
def admin(address: str) -> Iterator[Admin]:
    with Admin(bootstrap_servers=address) as admin:
        yield admin


def written_elsewhere(
    address: str, topic: str, partition: int, values: list[str], joined: OpenTransaction | None = None
) -> OpenTransaction:
    """By a process that has ended."""
    name = "" if joined is None else pickle.dumps(joined).hex()
    ran = subprocess.run(
        [sys.executable, "-c", WRITER, address, name, topic, str(partition), *values],
        check=True,
        capture_output=True,
        timeout=60,
    )
    opened = pickle.loads(bytes.fromhex(ran.stdout.decode()))
    assert isinstance(opened, OpenTransaction)
    return opened


def stable_end(admin: Admin, topic: str, partition: int) -> int | None:
    """Where who reads committed records has to stop."""
    tp = TopicPartition(topic, partition)
    return admin.list_offsets({tp: -1}, isolation="read_committed")[tp].offset


def seen(address: str, topic: str, count: int) -> list[str]:
    found: list[str] = []
    with Consumer(
        bootstrap_servers=address, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign_topic(topic)
        while len(found) < count:
            batch = consumer.batch(count, timeout_ms=30_000)
            assert batch, found
            found += [(message.value or b"").decode() for message in batch]
    return found


def test_a_transaction_of_another_process_is_committed_here(address: str, admin: Admin) -> None:
    admin.create_topic("handed-over", partitions=1)

    opened = written_elsewhere(address, "handed-over", 0, VALUES)
    assert stable_end(admin, "handed-over", 0) == 0
    admin.end_transactions([opened], commit=True)

    assert seen(address, "handed-over", len(VALUES)) == VALUES


def test_two_processes_write_into_one_transaction_that_is_ended_here(address: str, admin: Admin) -> None:
    admin.create_topic("joined", partitions=2)
    with Producer(bootstrap_servers=address, transactional_id="joined") as opener:
        opened = opener.open_transaction_for_others()

    assert written_elsewhere(address, "joined", 0, VALUES[:100], opened) == opened
    with Producer(bootstrap_servers=address, transactional_id="joined") as here:
        here.join_transaction(opened)
        for value in VALUES[100:]:
            here.send("joined", value.encode(), partition=1)
        here.send_offsets_to_transaction({("joined", 0): 5}, "batches")
        assert here.hand_over_transaction() == opened
    assert [stable_end(admin, "joined", partition) for partition in (0, 1)] == [0, 0]
    admin.end_transactions([opened, opened], commit=True)

    assert sorted(seen(address, "joined", len(VALUES))) == VALUES


def test_a_later_process_fences_a_handed_over_transaction(address: str, admin: Admin) -> None:
    admin.create_topic("fenced", partitions=1)
    with Producer(bootstrap_servers=address, transactional_id="fenced") as producer:
        producer.begin_transaction()
        producer.send("fenced", b"not this")
        opened = producer.hand_over_transaction()
    assert opened is not None

    later = written_elsewhere(address, "fenced", 0, ["this"])
    with pytest.raises(ProducerFenced, match=r"fenced .*another producer"):
        admin.end_transactions([opened], commit=True)
    admin.end_transactions([later], commit=True)

    assert seen(address, "fenced", 1) == ["this"]
