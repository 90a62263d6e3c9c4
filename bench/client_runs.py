"""One client doing one thing, in a process of its own: run by bench/client.py, prints records per second.

    python bench/client_runs.py TASK ADDRESS TOPIC COUNT SIZE CODEC kept|fresh

The clock runs while records move: a producer is connected and knows its topic, and everything it sent is
acknowledged when the clock stops; a consumer has had its first records, and reads COUNT more. Every client
has its defaults but for what is said here: linger of 5 ms and idempotence for all, and the same loop (uvloop)
for all that have one.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

import uvloop

from barnabas.base.memory import keep_freed_memory
from report import NothingMeasured

# How many records a consumer that gives lists is asked for at a time.
LIST_RECORDS = 1000
TABLE_ROWS = 100_000
LINGER_MS = 5
PARTITIONS_MAX = 64
POLL_S = 10.0
# Read before the clock starts, so that connecting and the first fetch do not count.
FIRST = 1


def payload(size: int) -> bytes:
    """Not all the same byte, so that compression has something to do."""
    words = b"the quick brown fox jumps over the lazy dog 0123456789 "
    return (words * (size // len(words) + 1))[:size]


class Clock:
    """Counts from start(); rate() ends it."""

    def start(self) -> None:
        self._began = time.perf_counter()

    def rate(self, records: int) -> float:
        if records <= 0:
            raise NothingMeasured("reading", [records], "records after the start of the clock")
        return records / (time.perf_counter() - self._began)


# Ours


async def ours_produce(address: str, topic: str, count: int, size: int, codec: str) -> float:
    """Record by record: `await producer.send(...)`."""
    from barnabas.client import Producer

    value, clock = payload(size), Clock()
    settings = {"bootstrap.servers": address, "linger.ms": LINGER_MS, "compression.type": codec}
    async with Producer(settings) as producer:
        await (await producer.send(topic, value))
        clock.start()
        for _ in range(count):
            last = await producer.send(topic, value)
        await producer.flush()
        await last
        return clock.rate(count)


async def ours_produce_table(address: str, topic: str, count: int, size: int, codec: str) -> float:
    """Arrow tables: `await producer.send_table(...)`."""
    import pyarrow as pa

    from barnabas.client import Producer

    clock = Clock()
    table = pa.table({"value": pa.array([payload(size)] * TABLE_ROWS, pa.binary())})
    settings = {"bootstrap.servers": address, "linger.ms": LINGER_MS, "compression.type": codec}
    async with Producer(settings) as producer:
        await (await producer.send(topic, b"first"))
        clock.start()
        for _ in range(count // TABLE_ROWS):
            await producer.send_table(topic, table)
        await producer.flush()
        return clock.rate(count // TABLE_ROWS * TABLE_ROWS)


async def ours_consume(address: str, topic: str, count: int, size: int, codec: str) -> float:
    """Record by record: `async for message in consumer`."""
    from barnabas.client import Consumer

    clock = Clock()
    async with Consumer({"bootstrap.servers": address, "auto.offset.reset": "earliest"}) as consumer:
        await consumer.assign_topic(topic)
        seen = 0
        async for message in consumer:
            assert message.value is not None
            seen += 1
            if seen == FIRST:
                clock.start()
            if seen - FIRST >= count:
                return clock.rate(seen - FIRST)
    raise AssertionError("the consumer ended")


async def ours_consume_lists(address: str, topic: str, count: int, size: int, codec: str) -> float:
    """Lists of messages: `await consumer.batch(...)`."""
    from barnabas.client import Consumer

    clock = Clock()
    async with Consumer({"bootstrap.servers": address, "auto.offset.reset": "earliest"}) as consumer:
        await consumer.assign_topic(topic)
        first = seen = len(await consumer.batch(LIST_RECORDS))
        clock.start()
        while seen - first < count:
            seen += len(await consumer.batch(LIST_RECORDS))
        return clock.rate(seen - first)


async def ours_consume_arrow(address: str, topic: str, count: int, size: int, codec: str) -> float:
    """Arrow tables: `async for table in consumer.arrow()`."""
    from barnabas.client import Consumer

    clock = Clock()
    async with Consumer({"bootstrap.servers": address, "auto.offset.reset": "earliest"}) as consumer:
        await consumer.assign_topic(topic)
        # One answer, which imports pyarrow. Of a compressed topic it may have more than COUNT rows, so none
        # of them count.
        await anext(aiter(consumer.arrow(max_rows=FIRST)))
        clock.start()
        rows = 0
        async for table in consumer.arrow():
            rows += table.num_rows
            if rows >= count:
                return clock.rate(rows)
    raise AssertionError("the consumer ended")


# aiokafka


async def aiokafka_produce(address: str, topic: str, count: int, size: int, codec: str) -> float:
    from aiokafka import AIOKafkaProducer

    value, clock = payload(size), Clock()
    producer = AIOKafkaProducer(
        bootstrap_servers=address,
        linger_ms=LINGER_MS,
        enable_idempotence=True,
        compression_type=None if codec == "none" else codec,
    )
    await producer.start()
    await producer.send_and_wait(topic, value)
    clock.start()
    for _ in range(count):
        last = await producer.send(topic, value)
    await producer.flush()
    await last
    rate = clock.rate(count)
    await producer.stop()
    return rate


async def aiokafka_consumer(address: str, topic: str):  # type: ignore[no-untyped-def]
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest")
    await consumer.start()
    await consumer._client.add_topic(topic)
    partitions = sorted(consumer.partitions_for_topic(topic))
    consumer.assign([TopicPartition(topic, each) for each in partitions])
    return consumer


async def aiokafka_consume(address: str, topic: str, count: int, size: int, codec: str) -> float:
    clock, consumer = Clock(), await aiokafka_consumer(address, topic)
    seen = 0
    async for message in consumer:
        assert message.value is not None
        seen += 1
        if seen == FIRST:
            clock.start()
        if seen - FIRST >= count:
            break
    rate = clock.rate(seen - FIRST)
    await consumer.stop()
    return rate


async def aiokafka_consume_lists(address: str, topic: str, count: int, size: int, codec: str) -> float:
    clock, consumer = Clock(), await aiokafka_consumer(address, topic)

    async def some() -> int:
        found = await consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=LIST_RECORDS)
        return sum(map(len, found.values()))

    first = seen = await some()
    clock.start()
    while seen - first < count:
        seen += await some()
    rate = clock.rate(seen - first)
    await consumer.stop()
    return rate


# confluent-kafka: librdkafka, which has threads of its own


async def confluent_produce(address: str, topic: str, count: int, size: int, codec: str) -> float:
    from confluent_kafka import Producer

    value, clock = payload(size), Clock()
    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": LINGER_MS,
            "enable.idempotence": True,
            "compression.type": codec,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.produce(topic, value)
    producer.flush()
    clock.start()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    producer.flush()
    return clock.rate(count)


async def confluent_consume_lists(address: str, topic: str, count: int, size: int, codec: str) -> float:
    """`consumer.consume(...)`: messages whose values nobody looks at stay in librdkafka's memory."""
    return confluent_consume(address, topic, count, values=False)


async def confluent_consume_values(address: str, topic: str, count: int, size: int, codec: str) -> float:
    """The same, and the value of each message is asked for, as whoever consumes does."""
    return confluent_consume(address, topic, count, values=True)


def confluent_consume(address: str, topic: str, count: int, *, values: bool) -> float:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    clock = Clock()
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
    first = seen = len(consumer.consume(1, POLL_S))
    clock.start()
    while seen - first < count:
        found = consumer.consume(LIST_RECORDS, POLL_S)
        seen += len(found)
        if values:
            for message in found:
                message.value()
    rate = clock.rate(seen - first)
    consumer.close()
    return rate


RUNS: dict[str, Callable[[str, str, int, int, str], Awaitable[float]]] = {
    run.__name__: run
    for run in (
        ours_produce,
        ours_produce_table,
        ours_consume,
        ours_consume_lists,
        ours_consume_arrow,
        aiokafka_produce,
        aiokafka_consume,
        aiokafka_consume_lists,
        confluent_produce,
        confluent_consume_lists,
        confluent_consume_values,
    )
}


def main() -> None:
    name, address, topic, count, size, codec, memory = sys.argv[1:]
    if memory == "kept":
        keep_freed_memory()

    async def run() -> float:
        return await RUNS[name](address, topic, int(count), int(size), codec)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(runner.run(run()))


if __name__ == "__main__":
    main()
