"""Options that determine how long the driver waits, without Spark."""

import time
from itertools import count

import pytest
from pyspark.sql.streaming.datasource import ReadMinRows

from barnabas.client.blocking import Admin, Producer
from barnabas.spark.first_contact import NotReached
from barnabas.spark.options.source import stream_options
from barnabas.spark.options.values import Values
from barnabas.spark.source.cluster import Cluster
from barnabas.spark.source.stream import StreamReader

NOBODY = "127.0.0.1:1"
# Default of fetchOffset.retryIntervalMs in seconds.
DEFAULT_S = 1
_numbers = count()


def ask_nobody(**options: str) -> float:
    """Return the seconds until the driver gives up."""
    given = {"kafka.bootstrap.servers": NOBODY, "subscribe": "visits", "kafka.default.api.timeout.ms": "20"}
    given |= {f"fetchOffset.{name}": text for name, text in options.items()}
    began = time.monotonic()
    with pytest.raises(NotReached):
        Cluster(stream_options(Values(given)))
    return time.monotonic() - began


@pytest.mark.parametrize("tries", [1, 2, 5])
def test_the_driver_makes_the_configured_number_of_attempts(
    tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    ask_nobody(numRetries=str(tries), retryIntervalMs="1")

    again = [
        one for one in caplog.records if one.getMessage().startswith("request failed, retrying retry_ms=1 ")
    ]
    assert len(again) == tries - 1


def test_the_driver_waits_the_retry_interval_between_attempts() -> None:
    assert ask_nobody(numRetries="4", retryIntervalMs="0") < 3 * DEFAULT_S
    assert ask_nobody(numRetries="2", retryIntervalMs="1500") >= 1.5


def test_a_batch_waits_for_enough_records(address: str) -> None:
    topic = made(address)
    reader = waiting_reader(address, topic, "1h")
    try:
        start = reader.initialOffset()
        send(address, topic, 3)
        # The first batch does not wait.
        first = reader.latestOffset(start, ReadMinRows(5))
        assert first == {topic: {"0": 3}}

        send(address, topic, 4)
        assert reader.latestOffset(first, ReadMinRows(5)) == first
        send(address, topic, 1)
        assert reader.latestOffset(first, ReadMinRows(5)) == {topic: {"0": 8}}
    finally:
        reader.stop()


def test_the_wait_for_enough_records_is_limited(address: str) -> None:
    topic = made(address)
    reader = waiting_reader(address, topic, "1s")
    try:
        before = time.monotonic()
        first = reader.latestOffset(reader.initialOffset(), ReadMinRows(5))
        send(address, topic, 4)

        while (end := reader.latestOffset(first, ReadMinRows(5))) == first:
            assert time.monotonic() - before < 20, "it waits for ever"
            time.sleep(0.02)

        assert end == {topic: {"0": 4}}
        assert time.monotonic() - before >= 1
    finally:
        reader.stop()


def waiting_reader(address: str, topic: str, longest: str) -> StreamReader:
    given = {
        "kafka.bootstrap.servers": address,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "commitProgress": "false",
        "minOffsetsPerTrigger": "5",
        "maxTriggerDelay": longest,
    }
    return StreamReader(stream_options(Values(given)), ("value",))


def made(address: str) -> str:
    name = f"visits-waited-for-{next(_numbers)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=1)
    return name


def send(address: str, topic: str, records: int) -> None:
    with Producer(bootstrap_servers=address) as producer:
        for _ in range(records):
            producer.send(topic, b"x", partition=0)
