"""Transactions of the producer for scripts: what threads send belongs to the transaction that was open."""

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client import EndOfPartition, UnknownTopic
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.producer.errors import RecordTooLarge
from barnabas.client.producer.transaction_errors import (
    MustAbort,
    NoTransaction,
    NotTransactional,
    TransactionAborted,
)
from barnabas.testing import Broker, wait_until

# Here, and with groups, all of a broker and its clients is tried on plain Python, too.
pytestmark = pytest.mark.kernel

WAIT_S = 30.0
_names = iter(range(1_000_000))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        yield broker.bootstrap


@pytest.fixture
def topic(address: str) -> str:
    name = f"orders-{next(_names)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=2)
    return name


@pytest.fixture
def producer(address: str, topic: str) -> Iterator[Producer]:
    with Producer(bootstrap_servers=address, transactional_id=topic) as producer:
        yield producer


def wait_for_markers(address: str, topic: str) -> None:
    """They are written after the answer to an end, so a moment later."""

    def ends(isolation_level: str) -> dict[TopicPartition, int]:
        with Consumer(bootstrap_servers=address, isolation_level=isolation_level) as consumer:
            return consumer.end_offsets(consumer.assign_topic(topic))

    wait_until(lambda: ends("read_committed") == ends("read_uncommitted"), timeout_s=WAIT_S)


def seen(address: str, topic: str) -> list[bytes]:
    """What is committed, sorted."""
    wait_for_markers(address, topic)
    found: list[bytes] = []
    with Consumer(
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        enable_partition_eof=True,
    ) as consumer:
        left = set(consumer.assign_topic(topic))
        for message in consumer:
            if isinstance(message, EndOfPartition):
                left.discard(message.tp)
                if not left:
                    break
            else:
                found.append(message.value or b"")
    return sorted(found)


def test_all_that_threads_have_sent_is_committed(address: str, topic: str, producer: Producer) -> None:
    values = [b"%04d" % number for number in range(2_000)]

    with producer.transaction(), ThreadPoolExecutor(4) as threads:
        for value in values:
            threads.submit(producer.send, topic, value)

    assert seen(address, topic) == values


def test_records_sent_before_an_abort_are_not_in_the_next_transaction(
    address: str, topic: str, producer: Producer
) -> None:
    for _ in range(20):
        producer.begin_transaction()
        for _ in range(50):
            producer.send(topic, b"aborted")
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"committed")

    assert seen(address, topic) == [b"committed"] * 20


def test_an_error_in_the_block_aborts_and_the_producer_continues(
    address: str, topic: str, producer: Producer
) -> None:
    with pytest.raises(KeyError):
        _send_and_raise(producer, topic, KeyError())

    assert seen(address, topic) == []


def _send_and_raise(producer: Producer, topic: str, error: BaseException) -> None:
    with producer.transaction():
        producer.send(topic, b"not this").result(WAIT_S)
        raise error


def test_a_record_that_could_not_be_handed_on_is_not_left_out(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address, transactional_id=topic, max_block_ms=2_000) as producer:
        for bad_topic, value, kind in (
            (topic, b"x" * 2_000_000, RecordTooLarge),
            ("nowhere", b"a", UnknownTopic),
        ):
            producer.begin_transaction()
            producer.send(topic, b"good")
            producer.send(bad_topic, value)
            with pytest.raises(MustAbort) as trouble:
                producer.commit_transaction()
            assert isinstance(trouble.value.because, kind)
            producer.abort_transaction()
        with pytest.raises(TransactionAborted), producer.transaction():
            producer.send(topic, b"x" * 2_000_000)

    assert seen(address, topic) == []


def test_outside_of_a_transaction_the_delivery_says_so(topic: str, producer: Producer) -> None:
    delivery = producer.send(topic, b"a")

    assert isinstance(delivery.exception(WAIT_S), NoTransaction)


def test_a_producer_without_a_transactional_id_has_none(address: str) -> None:
    with Producer(bootstrap_servers=address) as plain, pytest.raises(NotTransactional):
        plain.begin_transaction()


@pytest.fixture
def _can_be_interrupted() -> Iterator[None]:
    """A shell that starts the tests in the background has them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_can_be_interrupted")
def test_interrupted_in_the_block_it_is_aborted(address: str, topic: str, producer: Producer) -> None:
    timer = threading.Timer(0.3, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))

    with suppress(KeyboardInterrupt), producer.transaction():
        producer.send(topic, b"not this").result(WAIT_S)
        timer.start()
        time.sleep(10)
    with producer.transaction():
        producer.send(topic, b"this")

    timer.join()
    assert seen(address, topic) == [b"this"]


def test_offsets_of_a_consumer_go_with_the_transaction(address: str, topic: str, producer: Producer) -> None:
    with producer.transaction():
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=0)
    with Consumer(
        bootstrap_servers=address,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    ) as consumer:
        consumer.subscribe([topic])
        messages = consumer.batch(4, timeout_ms=WAIT_S * 1000)
        with producer.transaction() as transaction:
            producer.send(topic, b"done", partition=1)
            transaction.send_offsets(consumer.delivered, consumer)
        committed = consumer.committed([(topic, 0)])

    assert [at and at.offset for at in committed.values()] == [len(messages)]


def test_closing_aborts_an_open_transaction(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address, transactional_id=topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"open").result(WAIT_S)

    assert seen(address, topic) == []
