"""Reading a range in a task, without Spark, with a real broker and the consumer cache."""

import logging
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Timer

import pyarrow as pa
import pytest
from pyspark import TaskContext

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.blocking import Admin, Producer
from barnabas.client.errors import BrokerUnavailable, UnknownTopic
from barnabas.spark.options.source import stream_options
from barnabas.spark.options.values import Values
from barnabas.spark.planning.splits import OffsetRange
from barnabas.spark.source.progress import Announcement
from barnabas.spark.source.ranges import DataLoss, NotRead, read_range
from barnabas.spark.source.tasks import RangePartition, read_task
from support.process.our_broker import OurBroker

LONG_MS = 30_000
SHORT_MS = 500
LATER_S = 0.5
# Numbers of fetches: one consumer, or several in turn.
LANES = pytest.mark.parametrize("fetches", [1, 3])
# A consumer retries for a third of a second before it reports a topic as unknown.
GONE_S = 3.0
# Several times the short timeout, and much less than the client's own timeout of a minute.
ENOUGH_S = 20
_numbers = count()


@pytest.fixture
def visits(address: str) -> TopicPartition:
    """The only partition of a new topic with three records."""
    tp = TopicPartition(f"visits-{next(_numbers)}", 0)
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(tp.topic, partitions=1)
    send(address, tp, 3)
    return tp


def send(address: str, tp: TopicPartition, records: int) -> None:
    """Send records, each in its own batch."""
    with Producer({"bootstrap.servers": address, "batch.size": "1"}) as producer:
        for _ in range(records):
            producer.send(tp.topic, b"x", partition=tp.partition)


@LANES
def test_a_task_waits_for_a_lagging_log_end(address: str, visits: TopicPartition, fetches: int) -> None:
    """As with a new leader or a follower, whose log end lags behind the planned one."""
    settings = {"bootstrap.servers": address}
    batches = read_range(
        OffsetRange(visits, 0, 5),
        settings,
        ("offset",),
        fails_on_loss=True,
        timeout_ms=LONG_MS,
        fetches=fetches,
    )
    known = next(batches)
    # Only after the task has seen the lagging end.
    later = Timer(LATER_S, send, (address, visits, 2))
    later.start()

    try:
        offsets = [offset for batch in (known, *batches) for offset in batch["offset"].to_pylist()]
    finally:
        later.join()

    assert offsets == [0, 1, 2, 3, 4]


@LANES
def test_a_log_that_stays_too_short_is_data_loss(address: str, visits: TopicPartition, fetches: int) -> None:
    settings = {"bootstrap.servers": address}
    batches = read_range(
        OffsetRange(visits, 1, 5),
        settings,
        ("offset",),
        fails_on_loss=True,
        timeout_ms=SHORT_MS,
        fetches=fetches,
    )
    assert next(batches)["offset"].to_pylist() == [1, 2]

    with pytest.raises(DataLoss, match=r"from 0 to 3 .*; the range was 1 to 5"):
        next(batches)


@LANES
def test_a_log_that_stays_too_short_is_logged_and_skipped(
    address: str, visits: TopicPartition, fetches: int, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"bootstrap.servers": address}
    with caplog.at_level(logging.WARNING, "barnabas.spark"):
        [batch] = read_range(
            OffsetRange(visits, 1, 5),
            settings,
            ("offset",),
            fails_on_loss=False,
            timeout_ms=SHORT_MS,
            fetches=fetches,
        )

    assert batch["offset"].to_pylist() == [1, 2]
    assert [record.getMessage() for record in caplog.records] == [
        f"offsets lost tp={visits} from=3 to=5 begins=0 ends=3"
    ]


def read_as_a_task(
    address: str, wanted: OffsetRange, topic_id: Uuid | None = None, **options: str
) -> list[pa.RecordBatch]:
    """Run a task as a Spark worker does at the start of a stream, with a mark to commit for the driver."""
    given = {"kafka.bootstrap.servers": address, "subscribe": wanted.tp.topic}
    given |= {name.replace("__", "."): text for name, text in options.items()}
    announcement = Announcement("somebody", "mark", {wanted.tp: wanted.start})
    task = RangePartition(wanted, announcement, topic_id=topic_id)
    return list(read_task(task, stream_options(Values(given)), ("offset",)))


@pytest.fixture
def in_a_query() -> Iterator[None]:
    """Simulate the query id that Spark sets in tasks of a stream."""
    context = TaskContext._getOrCreate()
    context._localProperties = {"sql.streaming.queryId": "some-query"}
    yield
    TaskContext._setTaskContext(None)


@pytest.mark.usefixtures("in_a_query")
def test_a_task_waits_for_a_broker_no_longer_than_asked() -> None:
    wanted = OffsetRange(TopicPartition("visits", 0), 7, 9)
    began = time.monotonic()

    with pytest.raises(NotRead) as down:
        read_as_a_task("127.0.0.1:1", wanted, kafkaConsumer__pollTimeoutMs=str(SHORT_MS))

    assert time.monotonic() - began < ENOUGH_S
    assert "cannot read visits-0 from offset 7 in the range 7 to 9: no broker at 127" in str(down.value)
    assert str(down.value).endswith("kafkaConsumer.pollTimeoutMs is 500")
    assert isinstance(down.value.__cause__, BrokerUnavailable)


def test_a_task_waits_for_a_topic_no_longer_than_asked(address: str) -> None:
    wanted = OffsetRange(TopicPartition("not-there", 0), 7, 9)
    began = time.monotonic()

    with pytest.raises(DataLoss) as gone:
        read_as_a_task(address, wanted, kafkaConsumer__pollTimeoutMs=str(SHORT_MS))

    assert time.monotonic() - began < ENOUGH_S
    assert "not-there-0 is gone from offset 7 in the range 7 to 9: topic not-there" in str(gone.value)
    assert str(gone.value).endswith("set failOnDataLoss to false)")
    assert isinstance(gone.value.__cause__, UnknownTopic)


def read_until_it_vanishes(
    address: str, visits: TopicPartition, *, fails_on_loss: bool, comes_back: bool
) -> Iterator[pa.RecordBatch]:
    """Return the rest of a range whose topic is deleted after its first rows were read."""
    settings = {"bootstrap.servers": address, "default.api.timeout.ms": str(SHORT_MS)}
    batches = read_range(
        OffsetRange(visits, 1, 5), settings, ("offset",), fails_on_loss=fails_on_loss, timeout_ms=LONG_MS
    )
    assert next(batches)["offset"].to_pylist() == [1, 2]
    with Admin(bootstrap_servers=address) as admin:
        admin.delete_topic(visits.topic)
        if comes_back:
            admin.create_topic(visits.topic, partitions=1)
    return batches


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_topic_deleted_while_reading_is_data_loss_from_the_next_offset(
    address: str, visits: TopicPartition, comes_back: bool
) -> None:
    batches = read_until_it_vanishes(address, visits, fails_on_loss=True, comes_back=comes_back)

    with pytest.raises(DataLoss, match=f"{visits} is gone from offset 3 in the range 1 to 5: "):
        next(batches)


def test_a_topic_deleted_while_reading_is_logged_and_skipped(
    address: str, visits: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    batches = read_until_it_vanishes(address, visits, fails_on_loss=False, comes_back=False)

    with caplog.at_level(logging.WARNING, "barnabas.spark"):
        assert list(batches) == []

    [told] = [record.getMessage() for record in caplog.records if record.name.startswith("barnabas.spark")]
    assert told.startswith(f"offsets lost tp={visits} from=3 to=5 error=")


def test_a_topic_that_comes_back_is_not_skipped(address: str, visits: TopicPartition) -> None:
    batches = read_until_it_vanishes(address, visits, fails_on_loss=False, comes_back=False)
    # By now the consumer has found that the topic does not exist.
    time.sleep(GONE_S)
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(visits.topic, partitions=1)

    with pytest.raises(NotRead, match=f"cannot read {visits} from offset 3 in the range 1 to 5: "):
        next(batches)


def test_a_topic_deleted_before_a_task_starts_is_logged_and_skipped(
    address: str, visits: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = OffsetRange(visits, 0, 3)
    options = {"kafkaConsumer__pollTimeoutMs": str(SHORT_MS), "failOnDataLoss": "false"}
    with Admin(bootstrap_servers=address) as admin:
        admin.delete_topic(visits.topic)

    with caplog.at_level(logging.WARNING, "barnabas.spark"):
        assert read_as_a_task(address, wanted, **options) == []

    told = [record.getMessage() for record in caplog.records]
    assert any(one.startswith(f"offsets lost tp={visits} from=0 to=3 error=") for one in told)


def id_of(address: str, tp: TopicPartition) -> Uuid:
    with Admin(bootstrap_servers=address) as admin:
        found = admin.describe_topics([tp.topic])[tp.topic].topic_id
    assert found is not None
    return found


def make_anew(address: str, tp: TopicPartition) -> None:
    """Recreate the topic with the same number of records."""
    with Admin(bootstrap_servers=address) as admin:
        admin.delete_topic(tp.topic)
        admin.create_topic(tp.topic, partitions=1)
    send(address, tp, 3)


def test_the_topic_that_a_task_was_planned_with_is_read(address: str, visits: TopicPartition) -> None:
    [batch] = read_as_a_task(address, OffsetRange(visits, 1, 3), id_of(address, visits))

    assert batch["offset"].to_pylist() == [1, 2]


@pytest.mark.parametrize("is_kept", [False, True], ids=["new consumer", "kept consumer"])
def test_a_recreated_topic_is_not_read(address: str, visits: TopicPartition, is_kept: bool) -> None:
    wanted, planned = OffsetRange(visits, 0, 3), id_of(address, visits)
    if is_kept:
        assert len(read_as_a_task(address, wanted, planned)) == 1
    make_anew(address, visits)

    with pytest.raises(DataLoss, match=f"{visits} is gone from offset 0 .* topic {visits.topic} was "):
        read_as_a_task(address, wanted, planned)


def test_a_recreated_topic_is_logged_and_skipped(
    address: str, visits: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    wanted, planned = OffsetRange(visits, 0, 3), id_of(address, visits)
    make_anew(address, visits)
    options = {"kafkaConsumer__pollTimeoutMs": str(SHORT_MS), "failOnDataLoss": "false"}

    began = time.monotonic()
    with caplog.at_level(logging.WARNING, "barnabas.spark"):
        assert read_as_a_task(address, wanted, planned, **options) == []

    # Only after a while, because the broker might have stale metadata.
    assert time.monotonic() - began > SHORT_MS / 1000
    told = [record.getMessage() for record in caplog.records]
    assert any(one.startswith(f"offsets lost tp={visits} from=0 to=3 error=") for one in told)


@LANES
def test_cached_consumers_with_stale_metadata_read_the_planned_topic(
    address: str, visits: TopicPartition, fetches: int
) -> None:
    wanted = OffsetRange(visits, 0, 3)
    # One record per response, so that all consumers are needed.
    options = {"fetchesInFlight": str(fetches), "kafka__max__partition__fetch__bytes": "1"}
    before = read_as_a_task(address, wanted, id_of(address, visits), **options)
    make_anew(address, visits)

    after = read_as_a_task(address, wanted, id_of(address, visits), **options)

    for batches in (before, after):
        assert [batch["offset"].to_pylist() for batch in batches] == [[0], [1], [2]]


def test_a_broker_that_stops_during_the_topic_check_is_reported(tmp_path: Path) -> None:
    """Without evidence that the topic was deleted the range is not skipped, and the error names it."""
    broker = OurBroker(tmp_path)
    tp = TopicPartition("visits", 0)
    with broker.running() as address:
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic(tp.topic, partitions=1)
        send(address, tp, 3)
        planned = id_of(address, tp)
        make_anew(address, tp)
        # By then the task has found a recreated topic, and checks whether the broker's metadata is stale.
        later = Timer(LATER_S, broker.kill)
        later.start()
        options = {"kafkaConsumer__pollTimeoutMs": "3000", "failOnDataLoss": "false"}

        with pytest.raises(NotRead) as down:
            read_as_a_task(address, OffsetRange(tp, 1, 3), planned, **options)

        later.join()
    assert str(down.value).startswith("cannot read visits-0 from offset 1 in the range 1 to 3: ")
    assert isinstance(down.value.__cause__, BrokerUnavailable)
