"""`barnabas transactions` with our broker and a transaction that really hangs: find it, abort it, read on.

It is made on purpose: a transactional batch that no coordinator knows of, let in because this broker does not
verify it. Kafka's tool and ours are compared in tests/interop/test_tools_transactions.py.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import OffsetSpec
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.records.builder import build_batch
from support.process.our_broker import OurBroker
from support.process.record_runs import RecordTools
from support.wire.client import WireClient

SETTINGS = {
    "auto.create.topics.enable": "false",
    "transaction.state.log.num.partitions": 1,
    "transaction.partition.verification.enable": "false",
}
HOUR_MS = 3_600_000
# A producer without coordinator.
NOBODY, EPOCH = 9000, 2
# Before Produce version 12 a batch does not start a transaction implicitly.
PRODUCE_VERSION = 11
ORDERS_0 = TopicPartition("orders", 0)
WAIT_MS = 10_000


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordTools]:
    broker = OurBroker(tmp_path_factory.mktemp("transactions"), settings=SETTINGS)
    with broker.running():
        yield RecordTools(broker.address)


def an_hour_ago_ms() -> int:
    return time.time_ns() // 1_000_000 - HOUR_MS


def write(tools: RecordTools, value: str) -> None:
    """Produce to the first partition without a transaction."""
    with Producer(bootstrap_servers=tools.address) as producer:
        producer.send("orders", value.encode(), partition=0)


def hang(tools: RecordTools) -> None:
    batch = build_batch(
        [(an_hour_ago_ms(), None, b"hangs", ())],
        producer_id=NOBODY,
        producer_epoch=EPOCH,
        base_sequence=0,
        transactional=True,
    )
    data = TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=0, records=batch)])
    request = ProduceRequest(transactional_id="whoever", acks=-1, timeout_ms=10_000, topic_data=[data])
    with WireClient(tools.address) as client:
        (told,) = client.ask(request, PRODUCE_VERSION).responses[0].partition_responses
    assert told.error_code == 0, told


def hanging(tools: RecordTools) -> list[dict[str, Any]]:
    found = tools("transactions", "find-hanging", "--topic", "orders", "--json")
    assert (found.code, found.err) == (0, "")
    rows: list[dict[str, Any]] = json.loads(found.out)["hanging"]
    return rows


def last_stable(tools: RecordTools) -> int:
    with Admin(bootstrap_servers=tools.address) as admin:
        return admin.list_offsets({ORDERS_0: OffsetSpec.LATEST}, isolation="read_committed")[ORDERS_0].offset


@contextmanager
def open_transaction(tools: RecordTools) -> Iterator[None]:
    """An open transaction of the same age that its coordinator knows."""
    alive = Producer(bootstrap_servers=tools.address, transactional_id="alive")
    with alive as producer, producer.transaction():
        producer.send("orders", b"alive", partition=1, timestamp_ms=an_hour_ago_ms())
        producer.flush(WAIT_MS / 1000)
        yield


@contextmanager
def reader(tools: RecordTools) -> Iterator[Consumer]:
    with Consumer(
        bootstrap_servers=tools.address, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([ORDERS_0])
        yield consumer


def test_a_hanging_transaction_is_found_and_aborted_and_readers_continue(tools: RecordTools) -> None:
    assert tools("topics", "--create", "--topic", "orders", "--partitions", "2").code == 0
    write(tools, "before")
    hang(tools)
    write(tools, "after")

    with reader(tools) as consumer:
        assert [message.value for message in consumer.batch(timeout_ms=WAIT_MS)] == [b"before"]
        assert last_stable(tools) == 1

        with open_transaction(tools):
            (found,) = hanging(tools)
        where = ("--topic", found["topic"], "--partition", str(found["partition"]))
        offset = str(found["transactionStartOffset"])
        ended = tools("transactions", "abort", *where, "--start-offset", offset)

        assert (found["topic"], found["partition"], found["producerId"]) == ("orders", 0, NOBODY)
        assert (ended.code, ended.out, ended.err) == (0, b"", "")
        assert [message.value for message in consumer.batch(timeout_ms=WAIT_MS)] == [b"after"]
    # The marker follows the records written meanwhile.
    assert last_stable(tools) == 4
    assert hanging(tools) == []
    again = tools("transactions", "abort", *where, "--start-offset", offset)
    assert (again.code, again.out) == (1, b"")
    assert again.err == "Could not find any open transactions starting at offset 1 on partition orders-0\n"
