"""The three Python clients of the field behind one shape: produce these records, read that many back.

Unmodified and with their own defaults, except that records are gathered into as few batches as the client
makes, and that every wait has a limit. What a client refuses to send is said by `can_send`.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from time import monotonic
from typing import Any, NamedTuple, Protocol, TypeVar

from barnabas.records.builder import NewRecord
from barnabas.records.header import Codec, TimestampType
from barnabas.records.record import Record

T = TypeVar("T")

WAIT_SECONDS_MAX = 20.0
# More than the largest batch of any test, so that flushing and not size ends a batch.
BATCH_BYTES_MAX = 900_000
LINGER_MS = 50


class Seen(NamedTuple):
    """What a consumer hands to its user."""

    timestamp_type: TimestampType
    record: Record


class Client(Protocol):
    name: str

    def can_send(self, record: NewRecord) -> bool: ...

    def produce(
        self,
        address: str,
        topic: str,
        records: Sequence[NewRecord],
        *,
        codec: Codec = Codec.NONE,
        idempotent: bool = False,
        acks: int = -1,
    ) -> list[int]:
        """Send to partition 0 and return the offsets that were acknowledged: none with acks=0."""

    def consume(
        self, address: str, topic: str, *, count: int, from_offset: int | None = None, committed: bool = False
    ) -> list[Seen]:
        """Read `count` records of partition 0, without a group; from where the broker says that it begins, or
        from an offset."""


class ConfluentKafka:
    """confluent-kafka: librdkafka, which most clients outside of Java are made of."""

    name = "confluent-kafka"

    def can_send(self, record: NewRecord) -> bool:
        return True

    def produce(
        self,
        address: str,
        topic: str,
        records: Sequence[NewRecord],
        *,
        codec: Codec = Codec.NONE,
        idempotent: bool = False,
        acks: int = -1,
    ) -> list[int]:
        from confluent_kafka import Producer

        offsets: list[int] = []

        def delivered(error: object, message: Any) -> None:
            assert error is None, error
            offsets.append(message.offset())

        producer = Producer(
            {
                "bootstrap.servers": address,
                "compression.type": codec.name.lower(),
                "enable.idempotence": idempotent,
                "acks": acks,
                "linger.ms": LINGER_MS,
                "message.timeout.ms": int(WAIT_SECONDS_MAX * 1000),
            }
        )
        for timestamp, key, value, headers in records:
            producer.produce(
                topic,
                value,
                key,
                partition=0,
                timestamp=timestamp,
                headers=list(headers),
                on_delivery=delivered,
            )
        assert producer.flush(WAIT_SECONDS_MAX) == 0
        producer.close()
        return offsets if acks else []

    def consume(
        self, address: str, topic: str, *, count: int, from_offset: int | None = None, committed: bool = False
    ) -> list[Seen]:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "required by librdkafka",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "check.crcs": True,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
            }
        )
        try:
            start = OFFSET_BEGINNING if from_offset is None else from_offset
            consumer.assign([TopicPartition(topic, 0, start)])
            return [self._seen(message) for message in consumer.consume(count, WAIT_SECONDS_MAX)]
        finally:
            consumer.close()

    def _seen(self, message: Any) -> Seen:
        assert message.error() is None, message.error()
        kind, timestamp = message.timestamp()
        # librdkafka counts from "not available".
        return Seen(
            TimestampType(kind - 1),
            Record(
                message.offset(),
                timestamp,
                message.key(),
                message.value(),
                tuple(message.headers() or ()),
            ),
        )


class KafkaPython:
    """kafka-python: a client in plain Python."""

    name = "kafka-python"

    def can_send(self, record: NewRecord) -> bool:
        _, key, value, headers = record
        has_null_header = any(content is None for _, content in headers)
        return not (key is None and value is None) and not has_null_header

    def produce(
        self,
        address: str,
        topic: str,
        records: Sequence[NewRecord],
        *,
        codec: Codec = Codec.NONE,
        idempotent: bool = False,
        acks: int = -1,
    ) -> list[int]:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=address,
            compression_type=None if codec is Codec.NONE else codec.name.lower(),
            enable_idempotence=idempotent,
            acks=acks,
            batch_size=BATCH_BYTES_MAX,
            linger_ms=LINGER_MS,
        )
        try:
            futures = [
                producer.send(topic, value, key, headers=list(headers), partition=0, timestamp_ms=timestamp)
                for timestamp, key, value, headers in records
            ]
            producer.flush(WAIT_SECONDS_MAX)
            written = [future.get(WAIT_SECONDS_MAX) for future in futures]
            return [record.offset for record in written] if acks else []
        finally:
            producer.close(WAIT_SECONDS_MAX)

    def consume(
        self, address: str, topic: str, *, count: int, from_offset: int | None = None, committed: bool = False
    ) -> list[Seen]:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(
            bootstrap_servers=address,
            enable_auto_commit=False,
            auto_offset_reset="earliest" if from_offset is None else "none",
            isolation_level="read_committed" if committed else "read_uncommitted",
        )
        where = TopicPartition(topic, 0)
        found: list[Seen] = []
        deadline = monotonic() + WAIT_SECONDS_MAX
        try:
            consumer.assign([where])
            if from_offset is not None:
                consumer.seek(where, from_offset)
            while len(found) < count and monotonic() < deadline:
                polled = consumer.poll(timeout_ms=1000, max_records=count - len(found))
                found += [_python_seen(message) for message in polled.get(where, [])]
            return found
        finally:
            consumer.close()


class AioKafka:
    """aiokafka: the client of asyncio programs."""

    name = "aiokafka"

    def can_send(self, record: NewRecord) -> bool:
        _, key, value, _ = record
        return not (key is None and value is None)

    def produce(
        self,
        address: str,
        topic: str,
        records: Sequence[NewRecord],
        *,
        codec: Codec = Codec.NONE,
        idempotent: bool = False,
        acks: int = -1,
    ) -> list[int]:
        from aiokafka import AIOKafkaProducer

        async def run() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=address,
                compression_type=None if codec is Codec.NONE else codec.name.lower(),
                enable_idempotence=idempotent,
                acks=acks,
                max_batch_size=BATCH_BYTES_MAX,
                linger_ms=LINGER_MS,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic, value, key, partition=0, timestamp_ms=timestamp, headers=list(headers)
                    )
                    for timestamp, key, value, headers in records
                ]
                await producer.flush()
                written = [await future for future in futures]
                return [record.offset for record in written] if acks else []
            finally:
                await producer.stop()

        return _run(run())

    def consume(
        self, address: str, topic: str, *, count: int, from_offset: int | None = None, committed: bool = False
    ) -> list[Seen]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        async def run() -> list[Seen]:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=address,
                enable_auto_commit=False,
                auto_offset_reset="earliest" if from_offset is None else "none",
                isolation_level="read_committed" if committed else "read_uncommitted",
            )
            await consumer.start()
            try:
                where = TopicPartition(topic, 0)
                consumer.assign([where])
                if from_offset is not None:
                    consumer.seek(where, from_offset)
                return [_python_seen(await consumer.getone()) for _ in range(count)]
            finally:
                await consumer.stop()

        return _run(run())


def _python_seen(message: Any) -> Seen:
    headers = tuple(message.headers)
    record = Record(message.offset, message.timestamp, message.key, message.value, headers)
    return Seen(TimestampType(message.timestamp_type), record)


def _run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, WAIT_SECONDS_MAX))


CLIENTS: tuple[Client, ...] = (ConfluentKafka(), KafkaPython(), AioKafka())
