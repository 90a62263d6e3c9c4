"""What a task does with its range, without Spark around it: a real broker, and consumers that are kept."""

import logging
from itertools import count
from threading import Timer

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Admin, Producer
from barnabas.spark.planning.splits import OffsetRange
from barnabas.spark.source.ranges import DataLoss, read_range

LONG_MS = 30_000
SHORT_MS = 500
LATER_S = 0.5
_numbers = count()


@pytest.fixture
def visits(address: str) -> TopicPartition:
    """The only partition of a topic that has three records."""
    tp = TopicPartition(f"visits-{next(_numbers)}", 0)
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(tp.topic, partitions=1)
    send(address, tp, 3)
    return tp


def send(address: str, tp: TopicPartition, records: int) -> None:
    with Producer(bootstrap_servers=address) as producer:
        for _ in range(records):
            producer.send(tp.topic, b"x", partition=tp.partition)


def test_an_end_that_a_broker_does_not_know_yet_is_waited_for(address: str, visits: TopicPartition) -> None:
    """As behind a leader that is new, or at a follower: the end that it tells is behind the one planned."""
    settings = {"bootstrap.servers": address}
    batches = read_range(
        OffsetRange(visits, 0, 5), settings, ("offset",), fails_on_loss=True, timeout_ms=LONG_MS
    )
    known = next(batches)
    # Not before the task has met the end that is too early.
    later = Timer(LATER_S, send, (address, visits, 2))
    later.start()

    try:
        offsets = [offset for batch in (known, *batches) for offset in batch["offset"].to_pylist()]
    finally:
        later.join()

    assert offsets == [0, 1, 2, 3, 4]


def test_an_end_that_does_not_come_is_loss(address: str, visits: TopicPartition) -> None:
    settings = {"bootstrap.servers": address}
    batches = read_range(
        OffsetRange(visits, 1, 5), settings, ("offset",), fails_on_loss=True, timeout_ms=SHORT_MS
    )
    assert next(batches)["offset"].to_pylist() == [1, 2]

    with pytest.raises(DataLoss, match=r"from 0 to 3, .*; the range was 1 to 5"):
        next(batches)


def test_an_end_that_does_not_come_is_told_and_passed_over(
    address: str, visits: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"bootstrap.servers": address}
    with caplog.at_level(logging.WARNING, "barnabas.spark"):
        [batch] = read_range(
            OffsetRange(visits, 1, 5), settings, ("offset",), fails_on_loss=False, timeout_ms=SHORT_MS
        )

    assert batch["offset"].to_pylist() == [1, 2]
    assert [record.getMessage() for record in caplog.records] == [
        f"offsets lost tp={visits} from=3 to=5 begins=0 ends=3"
    ]
