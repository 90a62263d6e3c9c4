"""The clients for scripts in odd hands: callbacks that close, forks, scripts that end without a word."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from barnabas.client import ClientError, Closed, UnknownTopic
from barnabas.client.blocking import Admin, Consumer, Delivery, Producer
from barnabas.client.blocking.loop_thread import NotFromItsLoop
from support.process.our_broker import OurBroker

WAIT_S = 20.0
_names = iter(range(1_000_000))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = OurBroker(tmp_path_factory.mktemp("ours"), settings={"auto.create.topics.enable": "false"})
    with broker.running() as found:
        yield found


@pytest.fixture
def topic(address: str) -> str:
    name = f"orders-{next(_names)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=2)
    return name


def run_script(script: str, *arguments: str) -> str:
    """What a script prints that ends by itself, in time and well."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def end_of(address: str, topic: str) -> int:
    with Consumer(bootstrap_servers=address) as consumer:
        return consumer.end_offsets([(topic, 0)])[topic, 0]


# Callbacks


def test_a_callback_cannot_close_its_producer(address: str, topic: str) -> None:
    refused: list[tuple[float, BaseException]] = []
    done = threading.Event()
    with Producer(bootstrap_servers=address) as producer:

        def close(delivery: Delivery) -> None:
            began = time.monotonic()
            try:
                producer.close()
            except BaseException as error:
                refused.append((time.monotonic() - began, error))
            done.set()

        producer.send(topic, b"a", partition=0).add_done_callback(close)
        assert done.wait(WAIT_S)
        assert producer.send(topic, b"b", partition=0).result(WAIT_S).offset == 1

    [(took_s, error)] = refused
    assert isinstance(error, NotFromItsLoop)
    assert took_s < 1


def test_a_callback_that_closes_its_consumer_is_refused_at_once(address: str, topic: str) -> None:
    with Consumer(bootstrap_servers=address) as consumer:

        async def close() -> None:
            with pytest.raises(NotFromItsLoop):
                consumer.close()

        consumer._thread.run(close())
        assert consumer.end_offsets([(topic, 0)]) == {(topic, 0): 0}


def test_a_failing_callback_affects_no_other_delivery(
    address: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(delivery: Delivery) -> None:
        raise ValueError("a mistake of the user")

    with Producer(bootstrap_servers=address) as producer:
        sent = [producer.send(topic, b"%d" % number, partition=0) for number in range(10)]
        for each in sent:
            each.add_done_callback(fail)
        assert [each.result(WAIT_S).offset for each in sent] == list(range(10))
        producer.flush()
        assert producer.send(topic, b"after", partition=0).result(WAIT_S).offset == 10
    assert "a mistake of the user" in caplog.text


def test_a_callback_added_after_the_delivery_is_called(address: str, topic: str) -> None:
    called: list[Delivery] = []
    with Producer(bootstrap_servers=address) as producer:
        delivery = producer.send(topic, b"a", partition=0)
    delivery.add_done_callback(called.append)
    assert called == [delivery]
    assert delivery.result().offset == 0


def test_sends_during_close_of_another_thread_raise(address: str, topic: str) -> None:
    producer = Producer(bootstrap_servers=address)
    taken: list[Delivery] = []
    lock = threading.Lock()

    def send() -> None:
        while True:
            try:
                delivery = producer.send(topic, b"v", partition=0)
            except Closed:
                return
            with lock:
                taken.append(delivery)

    threads = [threading.Thread(target=send) for _ in range(4)]
    closers = [threading.Thread(target=producer.close) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    for thread in closers:
        thread.start()
    for thread in [*threads, *closers]:
        thread.join(WAIT_S)
        assert not thread.is_alive()
    assert all(each.done() for each in taken)
    written = sum(each.exception(0) is None for each in taken)
    assert written == end_of(address, topic)


def test_headers_are_those_of_the_moment_of_sending(address: str, topic: str) -> None:
    headers: list[tuple[str, bytes | None]] = []
    with Producer(bootstrap_servers=address) as producer:
        for number in range(1000):
            headers[:] = [("number", b"%d" % number)]
            producer.send(topic, b"%d" % number, partition=0, headers=headers)
        headers.clear()
    with Consumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        for number in range(1000):
            message = next(consumer)
            assert message.value == b"%d" % number
            assert list(message.headers) == [("number", message.value)]


def test_records_for_a_missing_partition_do_not_fail_others(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address, max_block_ms=1000) as producer:
        bad = [producer.send(topic, b"bad", partition=number) for number in range(5, 15)]
        good = [producer.send(topic, b"good", partition=0) for _ in range(3)]
        began = time.monotonic()
        assert [each.result(WAIT_S).offset for each in good] == [0, 1, 2]
        for number, each in enumerate(bad, start=5):
            with pytest.raises(UnknownTopic, match=f"{topic}-{number}"):
                each.result(WAIT_S)
        # All of them wait at the same time: one after the other, they took 10 s.
        assert time.monotonic() - began < 9


def test_records_of_a_topic_without_reachable_metadata_wait_together(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    broker = OurBroker(tmp_path_factory.mktemp("alone"))
    with broker.running() as address:
        producer = Producer(bootstrap_servers=address, max_block_ms=1000)
    sent = [producer.send("orders", b"%d" % number) for number in range(20)]
    began = time.monotonic()

    producer.close()

    # One after the other, they took 20 s.
    assert time.monotonic() - began < 15
    assert all(isinstance(each.exception(), ClientError) for each in sent)


# Scripts that end without closing

FORGETFUL = """
import sys
from barnabas.client.blocking import Producer, Consumer
address, topic = sys.argv[1:]
producer = Producer(bootstrap_servers=address, linger_ms=100_000)
consumer = Consumer(bootstrap_servers=address, auto_offset_reset="earliest")
consumer.assign([(topic, 0)])
for number in range(1000):
    last = producer.send(topic, b"x" * 100, partition=0)
{end}
print("end")
"""


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "next(consumer)", "del producer, consumer, last"])
def test_a_script_that_forgets_to_close_ends_all_the_same(address: str, topic: str, end: str) -> None:
    said = run_script(FORGETFUL.replace("{end}", end), address, topic)
    assert said == ("" if end == "sys.exit(0)" else "end\n")


FORKED = """
import os, sys, time, warnings
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client import ClientError
# Python 3.12 and later warn of a fork where there are threads.
warnings.simplefilter("ignore", DeprecationWarning)
address, topic = sys.argv[1:]
producer = Producer(bootstrap_servers=address)
consumer = Consumer(bootstrap_servers=address, auto_offset_reset="earliest")
admin = Admin(bootstrap_servers=address)
consumer.assign([(topic, 0)])
unknown = producer.send(topic, b"before", partition=0)
child = os.fork()
if child == 0:
    calls = [
        lambda: producer.send(topic, b"in the child", partition=0),
        producer.flush,
        lambda: consumer.batch(timeout_ms=100),
        admin.list_topics,
        unknown.result,
    ]
    for call in calls:
        try:
            call()
            print("nothing was raised", flush=True)
        except ClientError as error:
            print(type(error).__name__, flush=True)
    producer.close()
    consumer.close()
    admin.close()
    print("closed", flush=True)
    sys.exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert producer.send(topic, b"after", partition=0).result(30).offset == 1
assert [next(consumer).value for _ in range(2)] == [b"before", b"after"]
admin.close(), consumer.close(), producer.close()
print("parent")
"""


def test_clients_raise_in_a_fork(address: str, topic: str) -> None:
    said = run_script(FORKED, address, topic).split()
    assert said == ["Forked"] * 5 + ["closed", "parent"]
