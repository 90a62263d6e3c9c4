"""The clients for scripts, with a broker of their own process: plain values, threads, interruptions, ends."""

import asyncio
import inspect
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client import BrokerUnavailable, Closed, EndOfPartition, Message, Refused, UnknownTopic
from barnabas.client.admin.admin import Admin as AsyncAdmin
from barnabas.client.blocking import Admin, Consumer, Delivery, Producer
from barnabas.client.blocking.loop_thread import NotFromItsLoop
from barnabas.client.blocking.record_queue import QUEUE_BYTES_MAX
from barnabas.client.consumer.consumer import Consumer as AsyncConsumer
from barnabas.client.producer.errors import BufferFull, RecordTooLarge
from barnabas.client.producer.producer import Producer as AsyncProducer
from barnabas.protocol.error_codes import ErrorCode
from support.process.our_broker import OurBroker
from support.process.ports import free_port

WAIT_S = 20.0
PROMPT_S = 7.0
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


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before]
    assert left == []


def reader(address: str, topic: str, **named: object) -> Consumer:
    consumer = Consumer(bootstrap_servers=address, auto_offset_reset="earliest", **named)
    consumer.assign([(topic, 0)])
    return consumer


def write(address: str, topic: str, *values: bytes) -> None:
    with Producer(bootstrap_servers=address) as producer:
        for value in values:
            producer.send(topic, value, partition=0)


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[float], None]]:
    """Press it, so to speak, so many seconds from now. Timers that are under way end with the test."""
    here = threading.get_ident()
    timers: list[threading.Timer] = []
    began: list[float] = []

    def press_after(seconds: float) -> None:
        began.append(time.monotonic() + seconds)
        timers.append(threading.Timer(seconds, signal.pthread_kill, (here, signal.SIGINT)))
        timers[-1].start()

    # A shell that starts the tests in the background has them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield press_after
        assert time.monotonic() - began[-1] < PROMPT_S, "it took long to end"
    finally:
        for timer in timers:
            timer.join()
        signal.signal(signal.SIGINT, before)


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


# All of it is there


@pytest.mark.parametrize(
    ("blocking", "other", "left_out"),
    [
        (Admin, AsyncAdmin, {"start"}),
        # What does not wait is for the loop alone.
        (Producer, AsyncProducer, {"start", "try_send", "buffered_bytes"}),
        # Threads that share work have a consumer each, and callbacks run in the script's own. What was read
        # ahead is given back by the blocking one itself.
        (Consumer, AsyncConsumer, {"start", "streams", "calling", "go_back"}),
    ],
    ids=["admin", "producer", "consumer"],
)
def test_every_method_of_the_async_client_is_there(blocking: type, other: type, left_out: set[str]) -> None:
    assert public(other) - left_out == public(blocking)


def test_methods_have_the_arguments_of_the_async_ones() -> None:
    for name in public(AsyncAdmin) - {"start", "close"}:
        assert inspect.signature(getattr(Admin, name)) == inspect.signature(getattr(AsyncAdmin, name))


def test_partitions_for_returns_the_partitions_of_a_topic(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address, max_block_ms=500) as producer:
        assert producer.partitions_for(topic) == 2
        with pytest.raises(UnknownTopic):
            producer.partitions_for("nowhere")


# The admin


def test_the_admin_returns_values_and_raises_errors(address: str, topic: str) -> None:
    with Admin({"bootstrap.servers": address}) as admin:
        assert admin.list_topics()[topic].partitions == 2
        with pytest.raises(Refused) as refused:
            admin.create_topic(topic)

    assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_several_threads_may_use_one_admin(address: str, topic: str) -> None:
    with Admin(bootstrap_servers=address) as admin, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: admin.describe_topic(topic), range(50)))

    assert len({each.topic_id for each in found}) == 1


@pytest.mark.parametrize("kind", [Admin, Producer, Consumer])
def test_the_constructor_raises_without_a_broker_and_leaks_nothing(kind: Callable[..., object]) -> None:
    with pytest.raises(BrokerUnavailable):
        kind(bootstrap_servers=f"127.0.0.1:{free_port()}", default_api_timeout_ms=300)


@pytest.mark.parametrize(
    "use",
    [
        lambda address: Admin(bootstrap_servers=address),
        lambda address: Producer(bootstrap_servers=address),
        lambda address: Consumer(bootstrap_servers=address),
    ],
    ids=["admin", "producer", "consumer"],
)
def test_use_after_close_raises_and_close_is_idempotent(use: Callable[[str], object], address: str) -> None:
    client = use(address)
    client.close()  # type: ignore[attr-defined]
    client.close()  # type: ignore[attr-defined]

    match client:
        case Admin():
            calls: list[Callable[[], object]] = [client.list_topics]
        case Producer():
            calls = [lambda: client.send("x", b"v"), client.flush]
        case Consumer():
            calls = [lambda: client.batch(timeout_ms=0), lambda: client.seek(("x", 0), 0), client.resume]
            assert list(client) == []
        case _:
            raise AssertionError(client)
    for call in calls:
        with pytest.raises(Closed):
            call()


# The producer


def test_a_delivery_has_the_partition_and_offset_of_its_record(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address) as producer:
        first = producer.send(
            topic, b"a", b"k", partition=0, headers=[("h", b"1")], timestamp_ms=1_767_225_600_000
        )
        second = producer.send(topic, b"b", partition=0)
        assert [first.result(WAIT_S).offset, second.result(WAIT_S).offset] == [0, 1]
        assert first.done()
        assert first.exception() is None
        assert first.result().timestamp_ms == 1_767_225_600_000
    with reader(address, topic) as consumer:
        found = next(consumer)

    assert (found.key, found.value, tuple(found.headers)) == (b"k", b"a", (("h", b"1"),))


def test_records_of_many_threads_all_arrive_and_each_threads_in_order(address: str, topic: str) -> None:
    threads, each = 4, 3000
    with Producer(bootstrap_servers=address) as producer:

        def send(thread: int) -> list[Delivery]:
            return [producer.send(topic, b"%d %d" % (thread, n), partition=0) for n in range(each)]

        with ThreadPoolExecutor(threads) as pool:
            sent = list(pool.map(send, range(threads)))
        producer.flush(WAIT_S)
        offsets = [[delivery.result(0).offset for delivery in deliveries] for deliveries in sent]

    assert all(mine == sorted(mine) for mine in offsets)
    assert sorted(offset for mine in offsets for offset in mine) == list(range(threads * each))
    with reader(address, topic) as consumer:
        found = [next(consumer).value for _ in range(threads * each)]
    for thread in range(threads):
        mine = [value for value in found if value is not None and value.startswith(b"%d " % thread)]
        assert mine == [b"%d %d" % (thread, n) for n in range(each)]


def test_closing_delivers_sent_records(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address, linger_ms=10_000) as producer:
        sent = [producer.send(topic, b"%d" % number, partition=0) for number in range(100)]

    assert [delivery.result().offset for delivery in sent] == list(range(100))


def test_an_unknown_topic_fails_its_delivery_and_delays_no_other_topic(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address, max_block_ms=3000) as producer:
        lost = [producer.send("nope", b"v") for _ in range(3)]
        began = time.monotonic()
        assert producer.send(topic, b"v", partition=0).result(WAIT_S).offset == 0
        assert time.monotonic() - began < 2.5
        for each in lost:
            with pytest.raises(UnknownTopic):
                each.result(WAIT_S)
        # All of them wait at the same time, not one after the other.
        assert time.monotonic() - began < 7


def test_records_of_a_topic_that_appears_later_keep_their_order(address: str) -> None:
    name = f"late-{next(_names)}"
    with Producer(bootstrap_servers=address, max_block_ms=20_000) as producer:
        sent = [producer.send(name, b"%d" % number, partition=0) for number in range(20)]
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic(name, partitions=1)
        sent += [producer.send(name, b"%d" % number, partition=0) for number in range(20, 40)]
        assert [each.result(WAIT_S).offset for each in sent] == list(range(40))


def test_a_record_that_is_too_large_fails_alone(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address, max_request_size=5000) as producer:
        large, small = producer.send(topic, b"x" * 6000, partition=0), producer.send(topic, b"y", partition=0)
        assert small.result(WAIT_S).offset == 0
        with pytest.raises(RecordTooLarge):
            large.result(WAIT_S)


def test_a_value_that_is_no_bytes_fails_alone(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address) as producer:
        bad: object = "text"
        wrong = producer.send(topic, bad, partition=0)  # type: ignore[arg-type]
        right = producer.send(topic, b"v", partition=0)
        assert isinstance(wrong.exception(WAIT_S), Exception)
        assert right.result(WAIT_S).offset == 0
        number: object = 5
        with pytest.raises(TypeError):
            producer.send(topic, number)  # type: ignore[arg-type]


def test_a_record_is_delivered_after_a_timed_out_wait(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address, linger_ms=1000) as producer:
        delivery = producer.send(topic, b"v", partition=0)
        with pytest.raises(TimeoutError):
            delivery.result(0.05)
        assert not delivery.done()
        with pytest.raises(TimeoutError):
            producer.flush(0)
        assert delivery.result(WAIT_S).offset == 0


def test_callbacks_run_once_in_the_loop_thread_and_cannot_block_there(address: str, topic: str) -> None:
    called: list[tuple[str, object]] = []
    done = threading.Event()
    with Producer(bootstrap_servers=address) as producer:

        def note(delivery: Delivery) -> None:
            try:
                producer.flush()
            except NotFromItsLoop as error:
                called.append((threading.current_thread().name, error))
            if len(called) == 2:
                done.set()

        delivery = producer.send(topic, b"v", partition=0)
        delivery.add_done_callback(note)
        delivery.result(WAIT_S)
        delivery.add_done_callback(note)
        assert done.wait(WAIT_S)

    assert [name for name, _ in called] == ["barnabas producer"] * 2


def test_sends_are_bounded_and_raise_without_buffer_space_in_time(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    broker = OurBroker(tmp_path_factory.mktemp("own"))
    with broker.running() as address:
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic("orders", partitions=1)
        producer = Producer(
            bootstrap_servers=address, buffer_memory=200_000, batch_size=50_000, max_block_ms=500, linger_ms=0
        )
        assert producer.send("orders", b"first", partition=0).result(WAIT_S).offset == 0
    # The broker is gone, and nothing leaves any more.
    value = b"x" * 10_000
    sent: list[Delivery] = []
    many = range(10 * QUEUE_BYTES_MAX // len(value))
    with pytest.raises(BufferFull):
        sent.extend(producer.send("orders", value, partition=0) for _ in many)
    assert len(sent) * len(value) < 2 * (QUEUE_BYTES_MAX + 200_000)
    producer.close(timeout_ms=0)
    assert all(isinstance(each.exception(0), Exception) for each in sent)


def test_tables_are_ordered_after_earlier_records(address: str, topic: str) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"value": pa.array([b"1", b"2"], pa.binary())})
    with Producer(bootstrap_servers=address) as producer:
        before = producer.send(topic, b"0", partition=0)
        [rows] = producer.send_table(topic, table, partition=0)
        assert (before.result(WAIT_S).offset, rows.result(WAIT_S).offset) == (0, 1)
    with reader(address, topic) as consumer:
        assert [next(consumer).value for _ in range(3)] == [b"0", b"1", b"2"]


# The consumer


def test_messages_are_read_in_a_loop(address: str, topic: str) -> None:
    write(address, topic, *(b"%d" % number for number in range(2000)))
    found: list[Message] = []
    with reader(address, topic) as consumer:
        for message in consumer:
            found.append(message)
            if len(found) == 1400:
                break
        # What is fetched ahead is not read yet.
        assert consumer.position((topic, 0)) == 1400
        assert consumer.lag((topic, 0)) == 600
        found += consumer.batch(3)
        assert consumer.position((topic, 0)) == 1403

    assert [message.offset for message in found] == list(range(1403))


def test_a_batch_returns_after_its_timeout(address: str, topic: str) -> None:
    with reader(address, topic) as consumer:
        assert consumer.batch(timeout_ms=50) == []
        write(address, topic, b"a", b"b", b"c")
        found = consumer.batch(2) + consumer.batch(2)
        assert [each.value for each in found][:3] == [b"a", b"b", b"c"][: len(found)]


def test_batches_are_lists(address: str, topic: str) -> None:
    write(address, topic, *(b"%d" % number for number in range(10)))
    with reader(address, topic) as consumer:
        found: list[Message] = []
        for batch in consumer.batches(4):
            assert len(batch) <= 4
            found += batch
            if len(found) == 10:
                break

    assert [each.offset for each in found] == list(range(10))


def test_seek_discards_prefetched_records(address: str, topic: str) -> None:
    write(address, topic, *(b"%d" % number for number in range(100)))
    place = TopicPartition(topic, 0)
    with reader(address, topic) as consumer:
        assert next(consumer).offset == 0
        consumer.seek(place, 50)
        assert next(consumer).offset == 50
        consumer.seek_to_beginning(place)
        assert next(consumer).offset == 0
        consumer.pause()
        assert consumer.paused == {place}
        assert consumer.batch(timeout_ms=50) == []
        assert consumer.position(place) == 1
        consumer.resume()
        assert next(consumer).offset == 1
        # Those that stay assigned keep their positions, and it is the reader's position that counts.
        consumer.assign([place, (topic, 1)])
        assert next(consumer).offset == 2
        consumer.seek_to_time(0)
        assert next(consumer).offset == 0
        consumer.seek_to_end()
        assert consumer.position(place) == 100
        consumer.unassign()
        assert consumer.assignment == frozenset()
        assert consumer.assign_topic(topic) == {place, (topic, 1)}
        assert consumer.stopped == {}
        assert consumer.held_bytes == 0


def test_partitions_that_were_added_since_are_found_and_others_are_not(address: str, topic: str) -> None:
    with reader(address, topic) as consumer, Admin(bootstrap_servers=address) as admin:
        admin.create_partitions(topic, 3)
        with Producer(bootstrap_servers=address) as producer:
            producer.send(topic, b"late", partition=2).result(WAIT_S)

        # It knows the topic as it was.
        consumer.assign([(topic, 2)])

        assert next(consumer).value == b"late"
        with pytest.raises(UnknownTopic, match=f"partition {topic}-3"):
            consumer.assign([(topic, 3)])
        assert consumer.assignment == {(topic, 2)}


def test_beginning_and_end_offsets_are_returned(address: str, topic: str) -> None:
    write(address, topic, b"a", b"b")
    place = TopicPartition(topic, 0)
    with reader(address, topic) as consumer:
        assert consumer.beginning_offsets([place]) == {place: 0}
        assert consumer.end_offsets([place]) == {place: 2}
        assert consumer.offsets_for_times({place: 2**50}) == {place: None}


def test_the_end_of_a_partition_is_reported_on_request(address: str, topic: str) -> None:
    write(address, topic, b"a")
    with reader(address, topic, enable_partition_eof=True) as consumer:
        assert [type(next(consumer)) for _ in range(2)] == [Message, EndOfPartition]


def test_arrow_tables_are_read_in_a_loop(address: str, topic: str) -> None:
    pytest.importorskip("pyarrow")
    write(address, topic, *(b"%d" % number for number in range(500)))
    with reader(address, topic) as consumer:
        assert next(consumer).offset == 0
        rows = 0
        for table in consumer.arrow():
            assert not isinstance(table, EndOfPartition)
            rows += table.num_rows
            if rows == 499:
                break
        write(address, topic, b"one more")
        # The generator was left; what comes next comes by either way.
        assert next(consumer).offset == 500


def test_another_thread_can_end_a_wait_by_closing(address: str, topic: str) -> None:
    consumer = reader(address, topic)
    timer = threading.Timer(0.2, consumer.close)
    timer.start()

    assert list(consumer) == []
    timer.join()


# Interruptions


def test_ctrl_c_ends_a_wait_and_nothing_is_lost(
    address: str, topic: str, ctrl_c: Callable[[float], None]
) -> None:
    with reader(address, topic) as consumer:
        ctrl_c(0.2)
        with pytest.raises(KeyboardInterrupt):
            next(consumer)
        write(address, topic, b"a", b"b")
        assert [next(consumer).value for _ in range(2)] == [b"a", b"b"]


def test_ctrl_c_ends_a_wait_for_tables_and_nothing_is_lost(
    address: str, topic: str, ctrl_c: Callable[[float], None]
) -> None:
    pytest.importorskip("pyarrow")
    with reader(address, topic) as consumer:
        ctrl_c(0.2)
        with pytest.raises(KeyboardInterrupt):
            next(consumer.arrow())
        write(address, topic, b"a")
        assert next(consumer).value == b"a"


def test_ctrl_c_ends_a_wait_for_a_delivery(address: str, topic: str, ctrl_c: Callable[[float], None]) -> None:
    with Producer(bootstrap_servers=address, linger_ms=2000) as producer:
        delivery = producer.send(topic, b"v", partition=0)
        ctrl_c(0.2)
        with pytest.raises(KeyboardInterrupt):
            delivery.result()
        assert delivery.result(WAIT_S).offset == 0


def test_ctrl_c_ends_the_search_for_a_broker_and_leaves_nothing(ctrl_c: Callable[[float], None]) -> None:
    ctrl_c(0.3)
    with pytest.raises(KeyboardInterrupt):
        Admin(bootstrap_servers=f"127.0.0.1:{free_port()}")


def test_an_admin_call_that_is_interrupted_is_cancelled(
    address: str, topic: str, ctrl_c: Callable[[float], None]
) -> None:
    with Admin(bootstrap_servers=address) as admin:
        ctrl_c(0.3)
        with pytest.raises(KeyboardInterrupt):
            # It waits some seconds for a topic that is not there.
            admin.list_offsets({TopicPartition("nope", 0): -1})
        assert topic in admin.list_topics()


def test_a_client_that_is_forgotten_does_not_keep_its_thread(address: str) -> None:
    import gc
    import warnings

    with warnings.catch_warnings():
        # What is not closed is closed by the garbage collector, and Python says so.
        warnings.simplefilter("ignore", ResourceWarning)
        admin = Admin(bootstrap_servers=address)
        del admin
        gc.collect()
        deadline = time.monotonic() + WAIT_S
        while any(thread.name == "barnabas admin" for thread in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        gc.collect()
        assert not [task for task in gc.get_objects() if isinstance(task, asyncio.Task) and not task.done()]
