"""`barnabas transactions` and kafka-transactions.sh with one cluster, and the calls of Admin behind it.

Transactions are made by confluent-kafka. A hanging one is made on purpose: a transactional batch that no
coordinator knows, accepted because the broker does not verify it. Values that depend on the time are masked,
and Kafka's advice to enable debug logging is removed.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import OffsetSpec, PartlyRefused
from barnabas.client.admin.transactions import TransactionState
from barnabas.client.blocking import Admin
from barnabas.client.errors import Refused
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.records.builder import build_batch
from support.kafka.broker import KafkaBroker
from support.kafka.tools import KafkaTools, kafka_tools
from support.process.our_broker import OurBroker
from support.process.processes import Ended
from support.process.tool_runs import Tools
from support.wire.client import WireClient

# The brokers that the tools run against.
BROKERS = ("kafka", "barnabas")

MAIN_CLASS = "org.apache.kafka.tools.TransactionsCommand"
ADVICE = ". Enable debug logging for additional detail."
SETTINGS = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 2,
    # Accept a batch of a transaction that no coordinator knows.
    "transaction.partition.verification.enable": "false",
}
HOUR_MS = 3_600_000
# Before Produce version 12 a batch does not start a transaction implicitly.
PRODUCE_VERSION = 11
TIMEOUT_S = 30
# Producers without coordinator.
HUNG, STALE = 9000, 9001

Both = Callable[[str], tuple[Ended, Ended]]


@pytest.fixture(scope="module")
def tools() -> KafkaTools:
    return kafka_tools()


@pytest.fixture(scope="module", params=BROKERS)
def address(
    request: pytest.FixtureRequest, tools: KafkaTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A cluster with committed, aborted and open transactions, and two hanging ones."""
    with running(request.param, tools, tmp_path_factory.mktemp(request.param)) as address:
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic("orders", partitions=3)
            admin.create_topic("plain", partitions=2)
            for name, commits in (("done", True), ("given-up", False)):
                transact(address, name, commits=commits)
            done = admin.describe_transaction("done")
        hang(address, "orders", 1, producer_id=HUNG)
        # The coordinator knows this producer, but not this partition of its transaction.
        hang(address, "plain", 1, producer_id=done.producer_id, epoch=done.producer_epoch)
        still_open = begin(address, "open", partitions=(0, 2), timestamp_ms=now_ms() - HOUR_MS)
        yield address
        still_open.abort_transaction(TIMEOUT_S)


def running(kind: str, tools: KafkaTools, root: Path) -> AbstractContextManager[str]:
    if kind == "barnabas":
        return OurBroker(root, settings=SETTINGS).running()
    broker = KafkaBroker(tools, root, settings=SETTINGS)
    broker.format()
    return broker.running()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def begin(
    address: str, name: str, *, partitions: tuple[int, ...] = (0,), timestamp_ms: int | None = None
) -> Producer:
    """A producer with an open transaction, whose records are in the log."""
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": name, "transaction.timeout.ms": 600_000}
    )
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    for partition in partitions:
        producer.produce("orders", b"v", partition=partition, timestamp=timestamp_ms or now_ms())
    producer.flush(TIMEOUT_S)
    return producer


def transact(address: str, name: str, *, commits: bool) -> None:
    producer = begin(address, name)
    end = producer.commit_transaction if commits else producer.abort_transaction
    end(TIMEOUT_S)


def hang(address: str, topic: str, partition: int, *, producer_id: int, epoch: int = 0) -> int:
    """Write the first batch of a transaction, dated an hour ago; return its offset."""
    batch = build_batch(
        [(now_ms() - HOUR_MS, None, b"hanging", ())],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        transactional_id="whoever",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    with WireClient(address) as client:
        told = client.ask(request, PRODUCE_VERSION).responses[0].partition_responses[0]
    assert told.error_code == 0, told
    return int(told.base_offset)


@pytest.fixture(scope="module")
def both(tools: KafkaTools, address: str) -> Both:
    """Run Kafka's tool and ours."""
    ours = Tools(address)

    def run(line: str) -> tuple[Ended, Ended]:
        words = line.split()
        done = tools.run(MAIN_CLASS, ["--bootstrap-server", address, *words])
        return Ended(done.returncode, done.stdout, done.stderr), ours("transactions", *words)

    return run


# Output


def masked(text: str) -> list[str]:
    """Mask the durations, which grow with time."""
    lines = text.splitlines()
    for name in ("TransactionDurationMs", "Duration(min)"):
        if name in lines[0]:
            at = lines[0].split("\t").index(name)
            width = len(name)
            for row, line in enumerate(lines[1:], 1):
                cells = line.split("\t")
                assert cells[at].strip() == "None" or cells[at].strip().isdigit()
                cells[at] = re.sub(r"\d+ *", "N", cells[at]).ljust(width)
                lines[row] = "\t".join(cells)
    return [lines[0], *sorted(lines[1:])]


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("list", 3),
        ("list --transactional-id-pattern .*n.*", 3),
        ("list --transactional-id-pattern n", 0),
        ("list --duration-filter -1", 3),
        ("list --duration-filter 3600000", 0),
        ("describe --transactional-id done", 1),
        ("describe --transactional-id given-up", 1),
        ("describe --transactional-id open", 1),
        ("describe-producers --topic orders --partition 0", 3),
        ("describe-producers --topic orders --partition 1 --broker-id 1", 1),
        ("describe-producers --topic plain --partition 0", 0),
        ("find-hanging --broker-id 1", 2),
        ("find-hanging --topic orders", 1),
        ("find-hanging --topic orders --partition 1 --broker-id 1", 1),
        ("find-hanging --topic orders --partition 0", 0),
        ("find-hanging --topic orders --max-transaction-timeout 100", 0),
        ("find-hanging --topic orders --max-transaction-timeout -1", 1),
        ("find-hanging --broker-id 7", 0),
    ],
)
def test_tables_equal_kafkas(both: Both, line: str, rows: int) -> None:
    theirs, ours = both(line)

    assert ours.code == theirs.code == 0
    assert masked(ours.out) == masked(theirs.out)
    assert len(ours.out.splitlines()) == rows + 1


@pytest.mark.parametrize(
    "line",
    [
        "describe --transactional-id nobody",
        "find-hanging",
        "find-hanging --partition 1",
        "find-hanging --topic nowhere",
        "abort --topic orders --partition 0",
        "abort --topic orders --partition 0 --producer-id 1",
        "abort --topic orders --partition 0 --producer-id 1 --producer-epoch 1",
        "abort --topic orders --partition 0 --start-offset 77",
    ],
)
def test_errors_have_kafkas_messages_and_exit_with_1(both: Both, line: str) -> None:
    theirs, ours = both(line)

    assert ours.code == theirs.code == 1
    assert ours.out == theirs.out == ""
    # Kafka appends its advice to the sentence, with or without a full stop between them.
    assert ours.err.strip() == theirs.err.strip().removesuffix(ADVICE)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "reset",
        "list --topic orders",
        "list --duration-filter long",
        "list --transactional-id-pattern (",
        "describe",
        "describe-producers --topic orders",
        "describe-producers --topic orders --partition x",
        "abort --topic orders --partition 0 --producer-id 1 --producer-epoch 32768 --coordinator-epoch 0",
        "find-hanging --topic orders --max-transaction-timeout 1.5",
        "forceTerminateTransaction --transactional-id open",
    ],
)
def test_misuse_exits_with_1(both: Both, line: str) -> None:
    theirs, ours = both(line)

    assert ours[:2] == theirs[:2] == (1, "")
    assert ours.err != ""


def test_unknown_partitions_fail_soon(address: str) -> None:
    """Kafka's tool retries for a minute."""
    tool = Tools(address)
    producers = ("transactions", "describe-producers")

    elsewhere = tool(*producers, "--topic", "orders", "--partition", "0", "--broker-id", "7")
    nowhere = tool(*producers, "--topic", "nowhere", "--partition", "0")
    validated = tool("transactions", "abort", "--topic", "orders", "--partition", "9", "--start-offset", "0")

    assert elsewhere.code == nowhere.code == validated.code == 1
    assert elsewhere.err.startswith("Failed to describe producers for partition orders-0 on broker 7: ")
    assert nowhere.err.startswith("Failed to describe producers for partition nowhere-0 on leader: ")
    assert validated.err.startswith("Failed to validate producer state for partition orders-9: ")


def test_with_json_there_is_one_document(address: str) -> None:
    tool = Tools(address)

    listed = json.loads(tool("transactions", "list", "--json").out)
    described = json.loads(tool("transactions", "--json", "describe", "--transactional-id", "open").out)
    hanging = json.loads(tool("transactions", "find-hanging", "--broker-id", "1", "--json").out)

    assert [(each["transactionalId"], each["state"]) for each in listed["transactions"]] == [
        ("done", "CompleteCommit"),
        ("given-up", "CompleteAbort"),
        ("open", "Ongoing"),
    ]
    assert described["partitions"] == [
        {"topic": "orders", "partition": 0},
        {"topic": "orders", "partition": 2},
    ]
    assert described["durationMs"] >= 0
    assert [(each["topic"], each["partition"], each["transactionalId"]) for each in hanging["hanging"]] == [
        ("orders", 1, None),
        ("plain", 1, "done"),
    ]
    assert all(each["durationMs"] >= HOUR_MS for each in hanging["hanging"])


# Aborting


def stuck_topic(address: str, name: str, *, epoch: int = 0) -> TopicPartition:
    """A partition whose last stable offset stays at 1 because of a hanging transaction."""
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=1)
    plain = Producer({"bootstrap.servers": address})
    plain.produce(name, b"before", partition=0)
    plain.flush(TIMEOUT_S)
    assert hang(address, name, 0, producer_id=STALE, epoch=epoch) == 1
    assert last_stable(address, TopicPartition(name, 0)) == 1
    return TopicPartition(name, 0)


def last_stable(address: str, tp: TopicPartition) -> int:
    with Admin(bootstrap_servers=address) as admin:
        return admin.list_offsets({tp: OffsetSpec.LATEST}, isolation="read_committed")[tp].offset


@pytest.mark.parametrize(
    ("topic", "which"),
    [
        ("stuck-by-offset", "--start-offset 1"),
        ("stuck-by-producer", f"--producer-id {STALE} --producer-epoch 2 --coordinator-epoch -1"),
    ],
)
def test_a_hanging_transaction_is_found_and_aborted(address: str, both: Both, topic: str, which: str) -> None:
    tp = stuck_topic(address, topic, epoch=2)
    found_by_both = [len(each.out.splitlines()) for each in both(f"find-hanging --topic {topic}")]

    ended = Tools(address)("transactions", "abort", "--topic", topic, "--partition", "0", *which.split())

    assert found_by_both == [2, 2]
    assert ended == Ended(0, "", "")
    # The marker is at offset 2.
    assert last_stable(address, tp) == 3
    theirs, ours = both(f"find-hanging --topic {topic}")
    assert ours.out == theirs.out
    assert len(ours.out.splitlines()) == 1
    theirs, ours = both(f"describe-producers --topic {topic} --partition 0")
    assert ours.out == theirs.out
    assert ours.out.splitlines()[1].split("\t")[-2].strip() == "None"


def test_a_marker_with_a_stale_epoch_is_rejected_and_changes_nothing(address: str, both: Both) -> None:
    tp = stuck_topic(address, "stuck-on", epoch=5)

    theirs, ours = both(
        f"abort --topic stuck-on --partition 0 --producer-id {STALE} --producer-epoch 4 --coordinator-epoch 0"
    )

    assert ours.code == theirs.code == 1
    assert ours.err.strip() == theirs.err.strip().removesuffix(ADVICE)
    assert "invalid producer epoch" in ours.err
    assert last_stable(address, tp) == 1


def test_abort_prints_the_transaction_as_json(address: str) -> None:
    stuck_topic(address, "stuck-json")

    ended = Tools(address)(
        "transactions", "abort", "--topic", "stuck-json", "--partition", "0", "--start-offset", "1", "--json"
    )

    assert json.loads(ended.out)["aborted"] == {
        "topic": "stuck-json",
        "partition": 0,
        "producerId": STALE,
        "producerEpoch": 0,
        "coordinatorEpoch": 0,
    }


def test_a_transaction_is_terminated_by_force_and_its_producer_fenced(address: str) -> None:
    victim = begin(address, "victim")

    ended = Tools(address)("transactions", "forceTerminateTransaction", "--transactionalId", "victim")

    assert ended == Ended(0, "", "")
    with Admin(bootstrap_servers=address) as admin:
        after = admin.describe_transaction("victim")
        assert after.state in (TransactionState.EMPTY, TransactionState.COMPLETE_ABORT)
        assert after.partitions == ()
    with pytest.raises(KafkaException) as caught:
        victim.commit_transaction(TIMEOUT_S)
    error: KafkaError = caught.value.args[0]
    assert error.fatal()


# Calls of Admin


def test_transactions_are_filtered_by_state_and_producer(address: str) -> None:
    with Admin(bootstrap_servers=address) as admin:
        ongoing = admin.list_transactions(states=[TransactionState.ONGOING])
        chosen = admin.list_transactions(producer_ids=[ongoing["open"].producer_id])
        none = admin.list_transactions(states=[TransactionState.ONGOING], producer_ids=[HUNG])

    assert list(ongoing) == list(chosen) == ["open"]
    assert none == {}


def test_known_ids_are_described_and_unknown_ones_are_errors(address: str) -> None:
    with Admin(bootstrap_servers=address) as admin, pytest.raises(PartlyRefused) as caught:
        admin.describe_transactions(["open", "nobody", "done"])

    assert list(caught.value.done) == ["open", "done"]
    assert caught.value.done["open"].partitions == (TopicPartition("orders", 0), TopicPartition("orders", 2))
    assert caught.value.refused["nobody"].code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_each_fenced_producer_gets_a_higher_epoch(address: str) -> None:
    names = ["fenced-a", "fenced-b"]
    with Admin(bootstrap_servers=address) as admin:
        first = admin.fence_producers(names, transaction_timeout_ms=5000)
        second = admin.fence_producers(names)
        described = admin.describe_transactions(names)

        with pytest.raises(Refused) as caught:
            admin.fence_producer("fenced-a", transaction_timeout_ms=2**31 - 1)

    assert [second[name].producer_id for name in names] == [first[name].producer_id for name in names]
    assert [second[name].producer_epoch - first[name].producer_epoch for name in names] == [1, 1]
    assert [described[name].timeout_ms for name in names] == [30_000, 30_000]
    assert caught.value.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_an_unlimited_search_finds_every_hanging_transaction(address: str) -> None:
    told = []
    with Admin(bootstrap_servers=address) as admin:
        found = admin.find_hanging(tell=told.append)

    places = {each.partition for each in found}
    assert {TopicPartition("orders", 1), TopicPartition("plain", 1)} <= places
    assert TopicPartition("orders", 0) not in places
    assert {each.stage.value for each in told} == {
        "list topics",
        "describe topics",
        "describe producers",
        "list transactions",
        "describe transactions",
    }
