"""One record there and back with each Python client: written, and read through a consumer group."""

import asyncio
from collections.abc import Callable

import confluent_kafka
import kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from barnabas.client.blocking import Consumer, Producer

TIMEOUT_S = 30.0


def with_barnabas(address: str, topic: str) -> bytes | None:
    with Producer(bootstrap_servers=address) as producer:
        producer.send(topic, b"from barnabas").result(TIMEOUT_S)
    with Consumer(bootstrap_servers=address, group_id=topic, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        [message] = consumer.batch(1, timeout_ms=TIMEOUT_S * 1000)
        consumer.commit()
        return message.value


def with_confluent(address: str, topic: str) -> bytes | None:
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "log_level": 0})
    producer.produce(topic, b"from confluent")
    assert producer.flush(TIMEOUT_S) == 0
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": topic, "auto.offset.reset": "earliest", "log_level": 0}
    )
    try:
        consumer.subscribe([topic])
        [message] = consumer.consume(1, TIMEOUT_S)
        value: bytes | None = message.value()
        return value
    finally:
        consumer.close()


def with_kafka_python(address: str, topic: str) -> bytes | None:
    producer = kafka.KafkaProducer(bootstrap_servers=address)
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=address,
        group_id=topic,
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(TIMEOUT_S * 1000),
    )
    try:
        producer.send(topic, b"from kafka-python").get(TIMEOUT_S)
        value: bytes | None = next(consumer).value
        return value
    finally:
        producer.close()
        consumer.close()


def with_aiokafka(address: str, topic: str) -> bytes | None:
    async def story() -> bytes | None:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=address, group_id=topic, auto_offset_reset="earliest"
        )
        async with AIOKafkaProducer(bootstrap_servers=address) as producer, consumer:
            await producer.send_and_wait(topic, b"from aiokafka")
            value: bytes | None = (await asyncio.wait_for(anext(consumer), TIMEOUT_S)).value
            return value

    return asyncio.run(story())


ROUND_TRIPS: dict[str, Callable[[str, str], bytes | None]] = {
    "barnabas": with_barnabas,
    "confluent": with_confluent,
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
}
