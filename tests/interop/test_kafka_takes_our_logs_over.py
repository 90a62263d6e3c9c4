"""A real Kafka 4.3 broker is started on a log directory that we wrote to, and gives every record back.

Kafka formats the directory and creates the topic; it is stopped; we take the directory over, append, and
close it; Kafka starts again. Needs Java and Maven as the other tests here do.
"""

import asyncio
import time
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from barnabas.base.clock import SystemClock
from barnabas.base.executor import InlineExecutor
from barnabas.base.ids import TopicPartition as OurPartition
from barnabas.base.ids import Uuid
from barnabas.records.header import Codec
from barnabas.storage.directory.meta_properties import read_meta_properties
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.manager import LogManager
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.log.logs import end_txn, put, send, settings

READ_TIMEOUT_S = 60
TOPIC = "ours"
P, Q = 4000, 5000


def append_ours(directory: Path) -> list[bytes]:
    """Take the directory over, append to the topic and close it. Return the values that are committed."""

    async def story() -> list[bytes]:
        fs = DiskFileSystem()
        meta = read_meta_properties(fs, str(directory))
        assert meta is not None
        manager = LogManager(
            fs,
            SystemClock(),
            InlineExecutor(),
            paths=[str(directory)],
            cluster_id=meta.cluster_id,
            node_id=meta.node_id,
            configs=lambda _: settings(segment_bytes=20_000, index_interval_bytes=1000),
            new_id=lambda: Uuid(b"not used so far."),
        )
        report = await manager.open()
        assert (report.broken, report.failed) == ({}, {})
        log = manager.logs[OurPartition(TOPIC, 0)]
        written: list[bytes] = []
        for number, codec in enumerate([*Codec] * 20):
            values = [b"record %d of batch %d" % (at, number) * 5 for at in range(20)]
            put(log, *values, codec=codec)
            written += values
        for sequence in range(4):
            send(log, P, sequence, b"aborted", txn=True)
            send(log, Q, sequence, b"committed %d" % sequence, txn=True)
            end_txn(log, P, abort=True)
            end_txn(log, Q, abort=False)
            written.append(b"committed %d" % sequence)
        assert len(log.segments) > 3
        log.advance_high_watermark(log.end_offset)
        await manager.close()
        return written

    return asyncio.run(story())


def files_of(directory: Path) -> dict[str, bytes]:
    """The files of our topic's segments, and the snapshots of its producers."""
    found = sorted((directory / f"{TOPIC}-0").glob("0*"))
    assert {path.suffix for path in found} >= {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    return {path.name: path.read_bytes() for path in found}


def read_all(address: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "test", "isolation.level": "read_committed"}
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        values: list[bytes] = []
        deadline = time.monotonic() + READ_TIMEOUT_S
        while len(values) < count and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                values.append(message.value() or b"")
        return values
    finally:
        consumer.close()


def test_kafka_continues_with_a_directory_of_ours(tmp_path: Path) -> None:
    kafka = KafkaBroker(kafka_tools(), tmp_path)
    kafka.format()
    with kafka.running() as address:
        admin = AdminClient({"bootstrap.servers": address})
        # The records are of a day long ago.
        topic = NewTopic(TOPIC, 1, 1, config={"retention.ms": "-1"})
        admin.create_topics([topic])[TOPIC].result(30)

    written = append_ours(kafka.logs)
    before = files_of(kafka.logs)
    with kafka.running():
        assert read_all(kafka.address, len(written)) == written

    # Kafka found nothing to cut off and nothing to make anew.
    assert files_of(kafka.logs) == before
