"""Brokers that are unreachable when a query starts: how soon it fails, with which error. Without Spark."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count, product
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.streaming.datasource import ReadAllAvailable

from barnabas.client.blocking import Admin, Producer
from barnabas.spark.first_contact import NotReached
from barnabas.spark.options.sink import SinkOptions, sink_options
from barnabas.spark.options.source import batch_options, stream_options
from barnabas.spark.options.values import Values
from barnabas.spark.sink.availability import TopicNotThere, check_brokers
from barnabas.spark.sink.slots import write_slot
from barnabas.spark.sink.whole_batch import open_batch
from barnabas.spark.sink.writers import AtLeastOnceBatchWriter
from barnabas.spark.source.batch import BatchReader
from barnabas.spark.source.stream import StreamReader
from barnabas.testing import Broker
from support.process.our_broker import OurBroker
from support.process.ports import free_port
from support.scale import is_soak

TIMEOUT_S = 0.4
# connectTimeout of contacts that succeed.
LONGER_S = 2.0
# Outage of a broker, longer than connectTimeout.
AWAY_S = 2.0
# On a busy machine.
SLACK_S = 5.0
_numbers = count()


def closed(stack: ExitStack) -> str:
    return f"127.0.0.1:{free_port()}"


def silent(stack: ExitStack) -> str:
    """A server that accepts connections and never responds."""
    listening = stack.enter_context(socket.socket())
    listening.bind(("127.0.0.1", 0))
    listening.listen(50)
    return f"127.0.0.1:{listening.getsockname()[1]}"


def swallowing(stack: ExitStack) -> str:
    """A server that does not accept connections because its backlog is full."""
    listening = stack.enter_context(socket.socket())
    listening.bind(("127.0.0.1", 0))
    listening.listen(0)
    for _ in range(3):
        waiting = stack.enter_context(socket.socket())
        waiting.setblocking(False)
        waiting.connect_ex(listening.getsockname())
    return f"127.0.0.1:{listening.getsockname()[1]}"


Place = Callable[[ExitStack], str]


def source(address: str, timeout_s: float = TIMEOUT_S) -> Values:
    limit = f"{round(timeout_s * 1000)}ms"
    return Values({"kafka.bootstrap.servers": address, "subscribe": "visits", "connectTimeout": limit})


def sink(address: str, topic: str = "visits", timeout_s: float = TIMEOUT_S, **given: str) -> SinkOptions:
    limit = f"{round(timeout_s * 1000)}ms"
    options = {"kafka.bootstrap.servers": address, "topic": topic, "connectTimeout": limit, **given}
    return sink_options(Values(options), overwrite=False, directory="/")


def rows() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"value": ["one", "two"]})


def plan_batch(address: str, timeout_s: float = TIMEOUT_S) -> None:
    BatchReader(batch_options(source(address, timeout_s)), ("value",)).partitions()


@contextmanager
def stream(address: str, timeout_s: float = TIMEOUT_S) -> Iterator[StreamReader]:
    reader = StreamReader(stream_options(source(address, timeout_s)), ("value",))
    try:
        yield reader
    finally:
        reader.stop()


def start_stream(address: str) -> None:
    with stream(address) as reader:
        reader.initialOffset()


def resume_stream(address: str) -> None:
    with stream(address) as reader:
        reader.latestOffset({"visits": {"0": 7}}, ReadAllAvailable())


def write_rows(address: str, timeout_s: float = TIMEOUT_S) -> None:
    write_plainly(sink(address, timeout_s=timeout_s), rows())


def write_in_transaction(address: str) -> None:
    write_once(sink(address, deliveryGuarantee="exactly-once"), rows())


def open_transaction(address: str) -> None:
    open_batch(sink(address, deliveryGuarantee="exactly-once", transactionScope="batch"), "query")


PLACES: list[Place] = [closed, silent, swallowing]
BEGINNINGS = [plan_batch, start_stream, resume_stream, write_rows, write_in_transaction, open_transaction]
FEWER = [(closed, begin) for begin in BEGINNINGS] + list(product(PLACES[1:], [plan_batch, write_rows]))


@pytest.mark.scaled
@pytest.mark.parametrize(("nobody", "begin"), product(PLACES, BEGINNINGS) if is_soak() else FEWER)
def test_a_query_fails_in_time_and_names_the_addresses(nobody: Place, begin: Callable[[str], None]) -> None:
    with ExitStack() as stack:
        address = nobody(stack)
        began = time.monotonic()

        with pytest.raises(NotReached) as failed:
            begin(address)

        assert time.monotonic() - began < TIMEOUT_S + SLACK_S
    assert str(failed.value).startswith(f"no broker answered at {address}: ")
    assert str(failed.value).endswith("(connectTimeout is 0.4 s)")


def test_all_retries_together_respect_the_timeout() -> None:
    given = source(f"127.0.0.1:{free_port()}")
    options = batch_options(given)._replace(retries=1000, retry_after_ms=10)
    began = time.monotonic()

    with pytest.raises(NotReached):
        BatchReader(options, ("value",)).partitions()

    assert time.monotonic() - began < TIMEOUT_S + SLACK_S


@pytest.fixture
def second_try() -> Iterator[None]:
    """Simulate a further attempt of a task."""
    context = TaskContext._getOrCreate()
    context._attemptNumber = 1
    yield
    TaskContext._setTaskContext(None)


@pytest.mark.usefixtures("second_try")
def test_another_attempt_of_a_task_has_a_short_timeout() -> None:
    began = time.monotonic()

    with pytest.raises(NotReached, match="connectTimeout is 60 s"):
        write_rows(f"127.0.0.1:{free_port()}", 60)

    assert time.monotonic() - began < 2 + SLACK_S


def test_a_broker_is_found_behind_addresses_that_do_not_answer() -> None:
    with ExitStack() as stack, Broker(topics=["visits"]) as broker:
        addresses = ",".join([*(silent(stack) for _ in range(3)), broker.bootstrap])

        assert BatchReader(batch_options(source(addresses, timeout_s=10)), ("value",)).partitions() == []
        check_brokers({"bootstrap.servers": addresses}, 10_000)


@pytest.fixture
def misnamed(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A broker that advertises an unreachable address, and that address."""
    wrong = f"127.0.0.1:{free_port()}"
    settings = {"advertised.listeners": f"PLAINTEXT://{wrong}"}
    with OurBroker(tmp_path / "broker", settings=settings).running() as address:
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic("visits", partitions=1)
        yield address, wrong


@pytest.mark.parametrize("begin", [plan_batch, write_rows])
def test_an_unreachable_advertised_address_is_named(
    misnamed: tuple[str, str], begin: Callable[[str, float], None]
) -> None:
    address, wrong = misnamed
    told = f"no broker answered at {wrong} (advertised by {address})"

    with pytest.raises(NotReached, match=f"^{re.escape(told)}: .*Connection refused"):
        begin(address, LONGER_S)


@pytest.fixture
def restarted(tmp_path: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """A broker with a topic, and a function that stops it and restarts it after a while."""
    broker = OurBroker(tmp_path / "broker")
    timers: list[threading.Timer] = []

    def restart() -> None:
        broker.stop()
        timers.append(threading.Timer(AWAY_S, broker.start))
        timers[-1].start()

    with broker.running() as address:
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic("visits", partitions=1)
        yield address, restart
        for timer in timers:
            timer.join()


def test_a_running_stream_survives_an_outage_longer_than_the_timeout(
    restarted: tuple[str, Callable[[], None]],
) -> None:
    address, restart = restarted
    with stream(address, AWAY_S / 2) as reader:
        at = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        restart()
        began = time.monotonic()

        assert reader.latestOffset(at, ReadAllAvailable()) == at
        assert time.monotonic() - began > AWAY_S
        with Producer(bootstrap_servers=address) as producer:
            producer.send("visits", b"x").result(10)
        assert reader.latestOffset(at, ReadAllAvailable()) == {"visits": {"0": 1}}


def test_a_worker_survives_an_outage_after_its_first_write(
    restarted: tuple[str, Callable[[], None]],
) -> None:
    address, restart = restarted
    write_rows(address, AWAY_S / 2)
    restart()
    began = time.monotonic()

    write_rows(address, AWAY_S / 2)

    assert time.monotonic() - began > AWAY_S


@pytest.fixture
def strict() -> Iterator[str]:
    """A broker without automatic topic creation."""
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        yield broker.bootstrap


def write_plainly(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> None:
    AtLeastOnceBatchWriter(options).write(batches)


def write_once(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> None:
    write_slot(options, batches, "query", 0, 0)


@pytest.mark.parametrize(
    ("write", "guarantee"), [(write_plainly, "at-least-once"), (write_once, "exactly-once")]
)
def test_an_unknown_topic_is_named_within_the_timeout(
    strict: str, write: Callable[[SinkOptions, Iterator[pa.RecordBatch]], None], guarantee: str
) -> None:
    options = sink(strict, f"nowhere-{next(_numbers)}", 1.0, deliveryGuarantee=guarantee)
    began = time.monotonic()

    told = f"topic {options.topic} does not exist, and the brokers at {strict} did not create it within 1 s "
    with pytest.raises(TopicNotThere, match=told):
        write(options, rows())

    assert time.monotonic() - began < 1.0 + SLACK_S


def test_max_block_ms_also_limits_the_wait_for_a_topic(strict: str) -> None:
    options = sink(strict, f"nowhere-{next(_numbers)}", 60, **{"kafka.max.block.ms": "500"})

    with pytest.raises(TopicNotThere, match=r"within 0\.5 s \(kafka\.max\.block\.ms\): "):
        write_plainly(options, rows())


def test_a_topic_that_brokers_create_is_written_to(address: str) -> None:
    options = sink(address, f"made-by-itself-{next(_numbers)}", timeout_s=30)

    AtLeastOnceBatchWriter(options).write(rows())

    with Admin(bootstrap_servers=address) as admin:
        assert options.topic in admin.list_topics()
