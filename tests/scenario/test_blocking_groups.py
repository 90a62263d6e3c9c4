"""The blocking consumer in a group: callbacks in the script's own thread, commits of what the script got."""

import threading
import time
from collections.abc import Iterator

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.errors import ClientError
from barnabas.client.group.errors import CallbackFailed, InCallback
from barnabas.testing import Broker

pytestmark = pytest.mark.kernel

PROTOCOLS = ["classic", "consumer"]
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)
DONE_S = 30


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker(settings={"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker.bootstrap


@pytest.fixture
def topic(bootstrap: str) -> str:
    """Four partitions with a hundred records each."""
    name = f"orders-{time.time_ns()}"
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(name, partitions=4)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(400):
            producer.send(name, b"%d" % number, partition=number % 4)
    return name


def member(bootstrap: str, topic: str, protocol: str, **settings: object) -> Consumer:
    """The group is called like the topic."""
    named = {"auto_offset_reset": "earliest", "group_protocol": protocol, **settings}
    if protocol == "classic":
        named["heartbeat_interval_ms"] = 300
    return Consumer(bootstrap_servers=bootstrap, group_id=topic, **named)


def committed(consumer: Consumer, topic: str) -> int:
    found = consumer.committed([(topic, number) for number in range(4)])
    return sum(one.offset for one in found.values() if one is not None)


@every_protocol
def test_callbacks_run_in_the_scripts_thread_and_may_use_the_consumer(
    bootstrap: str, topic: str, protocol: str
) -> None:
    said: list[tuple[str, int, bool]] = []
    mine = threading.get_ident()

    def assigned(tps: frozenset[TopicPartition]) -> None:
        said.append(("+", len(tps), threading.get_ident() == mine))
        consumer.seek((topic, 0), 90)

    def revoked(tps: frozenset[TopicPartition]) -> None:
        consumer.commit()
        said.append(("-", len(tps), threading.get_ident() == mine))

    with member(bootstrap, topic, protocol, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], on_assigned=assigned, on_revoked=revoked)
        read = [next(consumer) for _ in range(310)]

    assert len({(one.partition, one.offset) for one in read}) == 310
    assert said == [("+", 4, True), ("-", 4, True)]
    with member(bootstrap, topic, protocol) as consumer:
        assert committed(consumer, topic) == 400


@every_protocol
def test_prefetched_records_are_not_committed(bootstrap: str, topic: str, protocol: str) -> None:
    with member(bootstrap, topic, protocol, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        for count in (1, 2, 3):
            next(consumer)
            consumer.commit()
            assert committed(consumer, topic) == count
        consumer.batch(7)
        consumer.commit()
        assert committed(consumer, topic) == 10


@every_protocol
def test_closing_commits_delivered_records(bootstrap: str, topic: str, protocol: str) -> None:
    with member(bootstrap, topic, protocol) as consumer:
        consumer.subscribe([topic])
        for _ in range(13):
            next(consumer)
    assert consumer_sees(bootstrap, topic, protocol) == 13


def consumer_sees(bootstrap: str, topic: str, protocol: str) -> int:
    with member(bootstrap, topic, protocol) as consumer:
        return committed(consumer, topic)


@every_protocol
def test_a_script_that_stumbles_has_not_dealt_with_its_message(
    bootstrap: str, topic: str, protocol: str
) -> None:
    def stumble() -> None:
        with member(bootstrap, topic, protocol) as consumer:
            consumer.subscribe([topic])
            for count, _ in enumerate(consumer):
                assert count < 12 or 1 // 0

    with pytest.raises(ZeroDivisionError):
        stumble()

    assert consumer_sees(bootstrap, topic, protocol) == 12


@every_protocol
def test_two_scripts_share_and_nothing_is_read_twice(bootstrap: str, topic: str, protocol: str) -> None:
    seen: list[tuple[int, int]] = []
    both = threading.Barrier(2)

    def read() -> None:
        with member(bootstrap, topic, protocol) as consumer:
            consumer.subscribe([topic])
            both.wait(DONE_S)
            until = time.monotonic() + DONE_S
            while len(seen) < 400 and time.monotonic() < until:
                for message in consumer.batch(10, timeout_ms=100):
                    seen.append((message.partition, message.offset))
                    time.sleep(0.001)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(seen) == len(set(seen)) == 400


def test_prefetched_records_of_a_revoked_partition_are_not_delivered(bootstrap: str, topic: str) -> None:
    gone: set[tuple[str, int]] = set()
    late: list[tuple[str, int]] = []
    ended = threading.Event()

    def read_a_while() -> None:
        with member(bootstrap, topic, "consumer") as other:
            other.subscribe([topic])
            while not ended.is_set():
                other.batch(10, timeout_ms=100)

    thread = threading.Thread(target=read_a_while)
    with member(bootstrap, topic, "consumer", enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], on_revoked=gone.update)
        # By now nearly everything lies ahead.
        next(consumer)
        thread.start()
        until = time.monotonic() + DONE_S
        while not gone and time.monotonic() < until:
            consumer.batch(1, timeout_ms=100)
            time.sleep(0.05)
        went = frozenset(gone)
        for _ in range(40):
            late += [one.tp for one in consumer.batch(10, timeout_ms=10)]
        ended.set()
        thread.join()

    assert went
    assert late
    assert not went & set(late)


def test_reading_and_closing_are_refused_in_a_callback(bootstrap: str, topic: str) -> None:
    refused: list[ClientError] = []

    def assigned(tps: frozenset[TopicPartition]) -> None:
        for attempt in (
            lambda: next(consumer),
            lambda: consumer.batch(1),
            consumer.close,
            consumer.unsubscribe,
        ):
            try:
                attempt()
            except InCallback as error:
                refused.append(error)

    with member(bootstrap, topic, "classic") as consumer:
        consumer.subscribe([topic], on_assigned=assigned)
        next(consumer)

    assert len(refused) == 4


def test_an_error_of_a_callback_is_raised_by_the_next_read(bootstrap: str, topic: str) -> None:
    def assigned(tps: frozenset[TopicPartition]) -> None:
        raise KeyError("mine")

    with member(bootstrap, topic, "classic") as consumer:
        consumer.subscribe([topic], on_assigned=assigned)
        with pytest.raises(CallbackFailed, match="on_assigned"):
            consumer.batch(1)
        assert consumer.subscription == {topic}
        assert len(consumer.batch(1)) == 1
