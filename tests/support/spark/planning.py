"""Runs the driver of a stream without Spark: topics that are created and deleted, and the planned tasks."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

from barnabas.client.blocking import Admin, Producer
from barnabas.spark.options.source import stream_options
from barnabas.spark.options.values import Values
from barnabas.spark.source.stream import StreamReader

_numbers = count()


class Stream:
    """A query as Spark runs it, without tasks: its offsets and the ranges of its planned tasks."""

    def __init__(self, address: str, options: dict[str, str]) -> None:
        given = {
            "kafka.bootstrap.servers": address,
            "startingOffsets": "earliest",
            "failOnDataLoss": "false",
            "commitProgress": "false",
            "fetchOffset.retryIntervalMs": "10",
            **options,
        }
        self._options = stream_options(Values(given))
        self.reader = StreamReader(self._options, ("value",))
        self.at: dict[str, Any] | None = None

    def trigger(self) -> list[tuple[str, int, int, int]]:
        """Topic, partition, first and last offset of the tasks of one micro-batch."""
        if self.at is None:
            self.at = self.reader.initialOffset()
        end = self.reader.latestOffset(self.at, ReadAllAvailable())
        tasks = [] if end == self.at else [one.value for one in self.reader.partitions(self.at, end)]
        self.at = end
        return [(tp.topic, tp.partition, start, last) for tp, start, last in tasks]

    def start_again(self) -> None:
        """Restart from the checkpoint, as in a new process."""
        self.reader.stop()
        self.reader = StreamReader(self._options, ("value",))


@contextmanager
def stream(address: str, **options: str) -> Iterator[Stream]:
    made = Stream(address, options)
    try:
        yield made
    finally:
        made.reader.stop()


class Topics:
    def __init__(self, address: str) -> None:
        self._address = address
        self._number = next(_numbers)

    def name(self, letter: str) -> str:
        return f"deleted-{self._number}-{letter}"

    def make(self, *letters: str, records: int, partitions: int = 1) -> None:
        with Admin(bootstrap_servers=self._address) as admin:
            for letter in letters:
                admin.create_topic(self.name(letter), partitions=partitions)
        for letter in letters:
            self.send(letter, records, partitions)

    def send(self, letter: str, records: int, partitions: int = 1) -> None:
        """Send this number of records to each partition."""
        with Producer(bootstrap_servers=self._address) as producer:
            for number in range(records * partitions):
                producer.send(self.name(letter), b"x", partition=number % partitions)

    def delete(self, *letters: str) -> None:
        with Admin(bootstrap_servers=self._address) as admin:
            admin.delete_topics([self.name(letter) for letter in letters])

    def choice(self, kind: str, *letters: str, partitions: int = 1) -> dict[str, str]:
        names = [self.name(letter) for letter in letters]
        if kind == "assign":
            return {kind: json.dumps({name: list(range(partitions)) for name in names})}
        return {kind: f"^deleted-{self._number}-" if kind == "subscribePattern" else ",".join(names)}
