"""Topics that are created or recreated while a query runs: the driver's plans with a real broker."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from barnabas.client.blocking import Admin, Producer
from barnabas.spark.options.source import stream_options
from barnabas.spark.options.values import Values
from barnabas.spark.source.ranges import DataLoss
from barnabas.spark.source.stream import StreamReader
from barnabas.spark.source.tasks import RangePartition

_numbers = count()


def made(address: str, records: int) -> str:
    """Create a topic of one partition with this number of records."""
    name = f"visits-made-{next(_numbers)}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(name, partitions=1)
    send(address, name, records)
    return name


def make_anew(address: str, name: str, records: int) -> None:
    with Admin(bootstrap_servers=address) as admin:
        admin.delete_topic(name)
        admin.create_topic(name, partitions=1)
    send(address, name, records)


def send(address: str, name: str, records: int) -> None:
    with Producer(bootstrap_servers=address) as producer:
        for _ in range(records):
            producer.send(name, b"x", partition=0)


@contextmanager
def reading(address: str, name: str, **options: str) -> Iterator[StreamReader]:
    given = {"kafka.bootstrap.servers": address, "commitProgress": "false"}
    chosen = {} if options.keys() & {"assign", "subscribe", "subscribePattern"} else {"subscribe": name}
    reader = StreamReader(stream_options(Values({**given, **chosen, **options})), ("value",))
    try:
        yield reader
    finally:
        reader.stop()


def ranges(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the first and last offsets of the tasks."""
    return [one.value[1:] for one in reader.partitions(start, end)]


def test_a_query_at_its_start_offsets_reads_a_recreated_topic(address: str) -> None:
    name = made(address, 10)
    with reading(address, name, failOnDataLoss="false") as reader:
        start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        assert start == {name: {"0": 10}}
        make_anew(address, name, 3)

        end = reader.latestOffset(start, ReadAllAvailable())

        assert end == {name: {"0": 3}}
        assert ranges(reader, start, end) == [(0, 3)]


def test_another_process_replans_batch_0_of_a_recreated_topic_identically(address: str) -> None:
    name = made(address, 10)
    options = {"failOnDataLoss": "false", "startingOffsets": f'{{"{name}":{{"0":10}}}}'}
    with reading(address, name, **options) as reader, reading(address, name, **options) as again:
        make_anew(address, name, 3)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())

        assert ranges(reader, start, end) == [(0, 3)]
        assert ranges(again, again.initialOffset(), end) == [(0, 3)]


def test_a_replayed_batch_0_ignores_topics_created_after_it(address: str) -> None:
    name = made(address, 10)
    options = {"subscribePattern": f"^{name}", "startingOffsets": "earliest"}
    with reading(address, name, **options) as reader, reading(address, name, **options) as again:
        end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic(f"{name}-more", partitions=1)

        start = again.initialOffset()

        assert start == {name: {"0": 0}, f"{name}-more": {"0": 0}}
        assert ranges(again, start, end) == [(0, 10)]


@pytest.mark.parametrize("choice", ["subscribe", "subscribePattern", "assign"])
def test_a_recreated_topic_that_has_outgrown_the_query_is_data_loss(address: str, choice: str) -> None:
    name = made(address, 10)
    options = {choice: f'{{"{name}":[0]}}' if choice == "assign" else name, "startingOffsets": "earliest"}
    with reading(address, name, **options) as reader:
        start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        assert reader.latestOffset(start, ReadAllAvailable()) == start
        make_anew(address, name, 15)

        with pytest.raises(DataLoss, match=f"{name}-0 was read up to offset 10, but the topic was recreated"):
            reader.latestOffset(start, ReadAllAvailable())


@pytest.mark.parametrize("records", [10, 15])
def test_a_recreated_topic_past_the_query_offset_is_read_from_its_start(
    address: str, records: int, caplog: pytest.LogCaptureFixture
) -> None:
    name = made(address, 10)
    with reading(address, name, startingOffsets="earliest", failOnDataLoss="false") as reader:
        start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        make_anew(address, name, records)

        found = list(batches(reader, start))

        assert [offset for one in found for offset in range(*one)] == list(range(records))
        [told] = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
        assert told.startswith(f"records lost: {name}-0 was read up to offset 10")


def test_a_limited_batch_never_ends_at_the_previous_end(address: str) -> None:
    name = made(address, 10)
    options = {"startingOffsets": "earliest", "failOnDataLoss": "false", "maxOffsetsPerTrigger": "10"}
    with reading(address, name, **options) as reader:
        start = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
        assert start == {name: {"0": 10}}
        make_anew(address, name, 25)

        assert list(batches(reader, start)) == [(0, 9), (9, 19), (19, 25)]


def batches(reader: StreamReader, start: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """Run micro-batches as Spark does, until nothing is left to read."""
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        yield from ranges(reader, start, end)
        start = end


def test_tasks_know_with_which_topic_they_were_planned(address: str) -> None:
    name = made(address, 10)
    with Admin(bootstrap_servers=address) as admin:
        planned = admin.describe_topics([name])[name].topic_id
    with reading(address, name, startingOffsets="earliest", minPartitions="2") as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        make_anew(address, name, 10)
        tasks = reader.partitions(start, end)

    assert [one.topic_id for one in tasks if isinstance(one, RangePartition)] == [planned, planned]


def test_a_batch_planned_by_another_process_has_no_topic_ids(address: str) -> None:
    name = made(address, 10)
    with reading(address, name, startingOffsets="earliest") as reader:
        [task] = reader.partitions({name: {"0": 0}}, {name: {"0": 10}})

    assert isinstance(task, RangePartition)
    assert task.topic_id is None
