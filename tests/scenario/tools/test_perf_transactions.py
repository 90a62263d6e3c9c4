"""producer-perf-test with transactions: records are stored once, in the expected number of transactions.

Every transaction has an epoch of its own and leaves a marker in the partition that it wrote to. So the epoch
that the coordinator tells is how many there were, and with the records that many more offsets are taken.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from support.process.our_broker import OurBroker
from support.process.record_runs import RecordTools, Run

UNLIMITED = ("--throughput", "-1")
COMMITTED = ("--isolation-level", "read_committed")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordTools]:
    settings = {
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
    }
    broker = OurBroker(tmp_path_factory.mktemp("perf"), settings=settings)
    with broker.running():
        yield RecordTools(broker.address)


def made(tools: RecordTools, topic: str, *words: str) -> str:
    assert tools("topics", "--create", "--topic", topic, *words).code == 0
    return topic


def measure(tools: RecordTools, topic: str, count: int, *words: str) -> Run:
    return tools("producer-perf-test", "--topic", topic, "--num-records", str(count), "--json", *words)


class Coordinated(NamedTuple):
    """Describe a transactional id."""

    state: str
    transactions: int


def coordinated(tools: RecordTools, transactional_id: str) -> Coordinated:
    done = tools("transactions", "describe", "--transactional-id", transactional_id)
    assert done.code == 0, done.err
    head, row = (line.split() for line in done.lines)
    found = dict(zip(head, row, strict=False))
    return Coordinated(found["TransactionState"], int(found["ProducerEpoch"]))


def offsets_taken(tools: RecordTools, topic: str) -> int:
    lines = tools("get-offsets", "--topic", topic).lines
    return sum(int(line.rpartition(":")[2]) for line in lines)


# Records, their rate, how long a transaction lasts, and how many there are at least. A table has 10,000 of
# these records, so that two of them make a transaction.
LASTING = {
    "records": (400, 500, 50, 3, ()),
    "tables": (60_000, 100_000, 30, 2, ("--arrow",)),
}


@pytest.mark.parametrize("what", LASTING)
def test_a_transaction_is_committed_each_time_its_duration_has_passed(tools: RecordTools, what: str) -> None:
    count, rate, duration_ms, at_least, how = LASTING[what]
    if how:
        pytest.importorskip("pyarrow")
    topic = made(tools, what)
    words = ["--payload-monotonic", "--throughput", str(rate), "--transactional-id", what]

    done = measure(tools, topic, count, *words, "--transaction-duration-ms", str(duration_ms), *how)

    assert (done.code, done.err) == (0, "")
    *_, total = done.objects
    assert total["records"] == count
    state, transactions = coordinated(tools, what)
    # All transactions but the last have the full duration, so a busy machine completes fewer, never more.
    elapsed_ms = 1000 * count / total["records_per_second"]
    assert at_least <= transactions <= elapsed_ms / duration_ms + 1
    assert state == "CompleteCommit"
    assert tools.consume(topic, count, *COMMITTED).lines == [str(number) for number in range(count)]
    assert offsets_taken(tools, topic) == count + transactions


def test_records_within_the_duration_are_one_transaction(tools: RecordTools) -> None:
    topic = made(tools, "short")
    words = ["--payload-monotonic", *UNLIMITED, "--command-property", "transactional.id=short"]

    done = measure(tools, topic, 500, *words)

    assert (done.code, done.err) == (0, "")
    assert coordinated(tools, "short") == ("CompleteCommit", 1)
    assert tools.consume(topic, 500, *COMMITTED).lines == [str(number) for number in range(500)]
    assert offsets_taken(tools, topic) == 501


def test_a_duration_alone_generates_an_id(tools: RecordTools) -> None:
    topic = made(tools, "made-up", "--partitions", "3")

    done = measure(tools, topic, 300, "--record-size", "10", *UNLIMITED, "--transaction-duration-ms", "1000")

    assert (done.code, done.err) == (0, "")
    listed = [line.split() for line in tools("transactions", "list").lines]
    (found,) = [words for words in listed if words[0].startswith("performance-producer-")]
    assert found[-1] == "CompleteCommit"
    assert len(tools.consume(topic, 300, *COMMITTED).lines) == 300


def test_a_failed_record_ends_the_test_and_its_transaction(tools: RecordTools) -> None:
    topic = made(tools, "small", "--config", "max.message.bytes=1000")
    words = ["--record-size", "5000", *UNLIMITED, "--transactional-id", "refused"]

    done = measure(tools, topic, 5, *words)

    assert (done.code, done.out) == (1, b"")
    assert "MESSAGE_TOO_LARGE" in done.err
    assert coordinated(tools, "refused").state == "CompleteAbort"


def test_a_timeout_above_the_brokers_maximum_fails_before_sending(tools: RecordTools) -> None:
    topic = made(tools, "impatient")
    words = ["--record-size", "5", "--warmup-records", "1", *UNLIMITED, "--transactional-id", "impatient"]

    done = measure(tools, topic, 5, *words, "--command-property", "transaction.timeout.ms=1000000")

    assert (done.code, done.out) == (1, b"")
    assert "INVALID_TRANSACTION_TIMEOUT" in done.err
    assert offsets_taken(tools, topic) == 0
