"""All that a librdkafka consumer reads of a partition, in the shape of fixtures/kafka-4.3/expected.json."""

import time
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

TIMEOUT_S = 60
POLL_S = 0.5


def watermarks(address: str, topic: str, partition: int) -> tuple[int, int]:
    consumer = _consumer(address, "read_uncommitted")
    try:
        found: tuple[int, int] = consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=TIMEOUT_S
        )
        return found
    finally:
        consumer.close()


def read_back(
    address: str, topic: str, partition: int, isolation: str = "read_uncommitted"
) -> list[list[Any]]:
    """Every record up to the high watermark: offset, timestamp type, timestamp, key, value, headers."""
    consumer = _consumer(address, isolation)
    place = TopicPartition(topic, partition)
    try:
        low, high = consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)
        consumer.assign([TopicPartition(topic, partition, low)])
        found: list[list[Any]] = []
        deadline = time.monotonic() + TIMEOUT_S
        # Markers and what is aborted are passed over silently, so the position tells when the end is reached.
        while consumer.position([place])[0].offset < high and low < high:
            assert time.monotonic() < deadline, (
                f"{place} is read up to {consumer.position([place])} of {high}"
            )
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            if (error := message.error()) is not None:
                assert error.name() == "_PARTITION_EOF", error
                break
            found.append(_shown(message))
        return found
    finally:
        consumer.close()


def _consumer(address: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "required-by-librdkafka",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "log_level": 0,
        }
    )


def _shown(message: Message) -> list[Any]:
    kind, timestamp = message.timestamp()
    headers = [[name, _text(value)] for name, value in message.headers() or []]
    return [message.offset(), kind, timestamp, _text(message.key()), _text(message.value()), headers]


def _text(data: bytes | str | None) -> str | None:
    return data.decode() if isinstance(data, bytes) else data
