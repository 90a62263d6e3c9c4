"""Our consumer and broker on a directory that Kafka 4.3.0 wrote: the same messages as librdkafka read there.

By messages and by Arrow, in both isolation levels, and in small pieces, so that transactions span answers.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.records.header import TimestampType
from support.kafka.sample import expected_reads, sample_files
from support.process.our_broker import OurBroker

EXPECTED = expected_reads()
READS = [key for key in EXPECTED if key != "groups"]
# Only every 500th record of this partition was written down.
SAMPLED = {"rolled-0": 500}
# Thousands of small fetches say nothing that a hundred do not.
SIZED = [
    (read, size) for read in READS for size in (300, 1 << 20) if size > 300 or read.split()[0] not in SAMPLED
]
BROKER = {"log.retention.ms": -1, "log.cleaner.enable": "false"}
# librdkafka's numbers for the two.
TYPES = {TimestampType.CREATE_TIME: 1, TimestampType.LOG_APPEND_TIME: 2}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("sample")
    for name, data in sample_files().items():
        path = root / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with OurBroker(root, logs=root / "data", settings=BROKER).running() as served:
        yield served


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def shown(message: Message) -> list[Any]:
    headers = [[name, text(value)] for name, value in message.headers]
    kind = TYPES[message.timestamp_type]
    return [message.offset, kind, message.timestamp, text(message.key), text(message.value), headers]


def consumer_of(address: str, isolation: str, bytes_max: int) -> Consumer:
    return Consumer(
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        isolation_level=isolation,
        enable_partition_eof=True,
        max_partition_fetch_bytes=bytes_max,
    )


async def read_messages(address: str, tp: tuple[str, int], isolation: str, bytes_max: int) -> list[list[Any]]:
    found: list[list[Any]] = []
    async with consumer_of(address, isolation, bytes_max) as consumer:
        await consumer.assign([tp])
        async for message in consumer:
            if isinstance(message, EndOfPartition):
                assert message.offset == EXPECTED[f"{tp[0]}-{tp[1]} {isolation}"]["high"]
                break
            found.append(shown(message))
    return found


async def read_tables(address: str, tp: tuple[str, int], isolation: str, bytes_max: int) -> pa.Table:
    found = []
    async with consumer_of(address, isolation, bytes_max) as consumer:
        await consumer.assign([tp])
        async for table in consumer.arrow():
            if isinstance(table, EndOfPartition):
                break
            found.append(table)
    return pa.concat_tables(found)


@pytest.mark.parametrize(("read", "bytes_max"), SIZED, ids=[f"{read} {size}" for read, size in SIZED])
def test_the_same_messages_as_from_kafka(address: str, read: str, bytes_max: int) -> None:
    place, isolation = read.split()
    topic, _, partition = place.rpartition("-")

    found = asyncio.run(read_messages(address, (topic, int(partition)), isolation, bytes_max))

    assert found[:: SAMPLED.get(place, 1)] == EXPECTED[read]["records"]


@pytest.mark.parametrize("read", READS)
def test_the_same_rows_as_from_kafka(address: str, read: str) -> None:
    place, isolation = read.split()
    topic, _, partition = place.rpartition("-")

    table = asyncio.run(read_tables(address, (topic, int(partition)), isolation, 2_000))

    assert set(table.column("topic").to_pylist()) == {topic}
    assert set(table.column("partition").to_pylist()) == {int(partition)}
    times = table.column("timestamp").cast(pa.int64()).to_pylist()
    rows = [
        [
            row["offset"],
            row["timestamp_type"] + 1,
            time,
            text(row["key"]),
            text(row["value"]),
            [[header["key"], text(header["value"])] for header in row["headers"]],
        ]
        for row, time in zip(table.to_pylist(), times, strict=True)
    ]
    assert rows[:: SAMPLED.get(place, 1)] == EXPECTED[read]["records"]
