"""The topics that every case reads, with the same records at the same offsets on any broker.

| topic | partitions | what is in it |
|---|---|---|
| orders | 3 | 60, 25 and 3 records, a second apart, some without key, value or headers |
| orders-bills | 1 | 10 such records |
| sparse | 2 | 5 records, and none |
| aged | 1 | offsets 10 to 29: what was before is deleted |
| compacted | 1 | offsets with gaps, and a tombstone |
| payments | 1 | ten transactions, every second one aborted; an open one; a record after its first |
| packed | 5 | a partition for each codec, 40 records in a batch |
| stamped | 1 | times of the log |
| odd | 1 | bytes that are no text, empty and large values, every kind of header |
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.consumer.message import EndOfPartition

TOPICS: Final = (
    "orders",
    "orders-bills",
    "sparse",
    "aged",
    "compacted",
    "payments",
    "packed",
    "stamped",
    "odd",
)
# For the broker: a topic that is not there stays away, and the cleaner looks often.
BROKER_SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "log.cleaner.backoff.ms": 200,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
ORDERS: Final = (60, 25, 3)
BILLS: Final = 10
SPARSE: Final = 5
AGED: Final = 30
AGED_FROM: Final = 10
COMPACTED: Final = 30
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
PACKED: Final = 40
FIRST_MS: Final = 1_790_000_000_000
# Else what is so old goes away.
_KEPT: Final = {"retention.ms": "-1"}
# A record a minute later begins a segment, and those before it can be compacted.
_COMPACTED: Final = {
    "cleanup.policy": "compact",
    "segment.ms": "60000",
    "min.cleanable.dirty.ratio": "0.01",
}
_CLEANED_WITHIN_S: Final = 60
# The open transaction has to stay open for as long as cases are run.
_OPEN_MS_MAX: Final = 900_000


@contextmanager
def topics(address: str) -> Iterator[None]:
    """Written, until the end of the block, where the open transaction is aborted."""
    with Admin(bootstrap_servers=address) as admin:
        for name, partitions in {"orders": 3, "orders-bills": 1, "sparse": 2, "aged": 1, "odd": 1}.items():
            admin.create_topic(name, partitions=partitions, settings=_KEPT)
        admin.create_topic("packed", partitions=len(CODECS), settings=_KEPT)
        admin.create_topic("payments", partitions=1, settings=_KEPT)
        admin.create_topic("compacted", partitions=1, settings=_COMPACTED)
        admin.create_topic("stamped", partitions=1, settings={"message.timestamp.type": "LogAppendTime"})
    with Producer(bootstrap_servers=address) as producer:
        _write_orders(producer)
        _write_odd(producer)
        _write_compacted(producer)
        for number in range(3):
            producer.send("stamped", b"%d" % number, partition=0, timestamp_ms=1000)
    for partition, codec in enumerate(CODECS):
        with Producer(bootstrap_servers=address, compression_type=codec, linger_ms=50) as producer:
            for offset in range(PACKED):
                _send(producer, "packed", partition, offset, b"%d " % offset * 20)
    with Admin(bootstrap_servers=address) as admin:
        admin.delete_records({TopicPartition("aged", 0): AGED_FROM})
        # So that there is a topic of the cluster itself.
        admin.alter_group_offsets("shop", {TopicPartition("orders", 0): 57})
    with _payments(address):
        _wait_until_compacted(address)
        yield


def _send(producer: Producer, topic: str, partition: int, offset: int, value: bytes | None) -> None:
    """Some without a key or headers, with a header twice, or with one without a value."""
    producer.send(
        topic,
        value,
        b"key %d" % offset if offset % 7 else None,
        partition=partition,
        timestamp_ms=FIRST_MS + 1000 * offset + 10 * partition,
        headers=[("a", b"%d" % offset), ("b", None), ("a", b"")] if offset % 3 else [],
    )


def _write_orders(producer: Producer) -> None:
    """Offset o of partition p is o seconds and 10 * p ms after the first."""
    sizes = [("orders", partition, size) for partition, size in enumerate(ORDERS)]
    for topic, partition, size in [
        *sizes,
        ("orders-bills", 0, BILLS),
        ("sparse", 0, SPARSE),
        ("aged", 0, AGED),
    ]:
        for offset in range(size):
            value = None if offset % 10 == 9 else b"value %d" % offset if offset % 11 else b""
            _send(producer, topic, partition, offset, value)


def _write_odd(producer: Producer) -> None:
    every = bytes(range(256))
    headers = {
        0: [("", b"no name")],
        1: [("ключ", every), ("ключ", None)],
        2: [(f"h{number}", b"%d" % number) for number in range(20)],
    }
    for offset, (key, value) in enumerate(
        [(every, every), (b"", b""), (None, None), (b"large", b"v" * 100_000)]
    ):
        producer.send(
            "odd", value, key, partition=0, timestamp_ms=FIRST_MS + offset, headers=headers.get(offset, [])
        )


def _write_compacted(producer: Producer) -> None:
    for offset in range(COMPACTED):
        producer.send(
            "compacted",
            None if offset == COMPACTED - 1 else b"value %d" % offset,
            _key_of(offset),
            partition=0,
            timestamp_ms=FIRST_MS + 1000 * offset,
        )
    producer.flush()
    # Begins another segment: the last one is never compacted.
    producer.send("compacted", b"last", b"last", partition=0, timestamp_ms=FIRST_MS + 120_000)


def _key_of(offset: int) -> bytes:
    return b"hot %d" % (offset % 4) if offset % 4 else b"key %d" % offset


def _wait_until_compacted(address: str) -> None:
    latest = {_key_of(offset): offset for offset in range(COMPACTED)}
    expected = [*sorted(latest.values()), COMPACTED]
    end = time.monotonic() + _CLEANED_WITHIN_S
    while (found := _offsets(address, "compacted")) != expected:
        assert time.monotonic() < end, f"not compacted in time: {found}"
        time.sleep(0.1)


def _offsets(address: str, topic: str) -> list[int]:
    settings = {"auto_offset_reset": "earliest", "enable_partition_eof": True}
    found = []
    with Consumer(bootstrap_servers=address, **settings) as consumer:
        consumer.assign_topic(topic)
        for message in consumer:
            if isinstance(message, EndOfPartition):
                break
            found.append(message.offset)
    return found


@contextmanager
def _payments(address: str) -> Iterator[None]:
    """Two records and a marker each; the open transaction is at offset 30."""
    with Producer(bootstrap_servers=address, transactional_id="done") as producer:
        for number in range(10):
            producer.begin_transaction()
            for text in (b"%d", b"%d again"):
                producer.send("payments", text % number, partition=0, timestamp_ms=FIRST_MS + 1000 * number)
            if number % 2:
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    open_one = {"transactional_id": "open", "transaction_timeout_ms": _OPEN_MS_MAX}
    with Producer(bootstrap_servers=address, **open_one) as producer:
        producer.begin_transaction()
        producer.send("payments", b"open", partition=0, timestamp_ms=FIRST_MS + 11_000).result()
        with Producer(bootstrap_servers=address) as other:
            other.send("payments", b"after it", partition=0, timestamp_ms=FIRST_MS + 12_000).result()
        yield
        producer.abort_transaction()
