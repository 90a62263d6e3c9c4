"""Right use of every public package. It is not run: test_type_checkers.py shows it to type checkers."""

import asyncio
from collections.abc import Mapping

from barnabas.base.ids import TopicPartition
from barnabas.client import (
    Admin,
    ClientError,
    Consumer,
    Delivered,
    EndOfPartition,
    Message,
    Producer,
    blocking,
)
from barnabas.client.blocking import Delivery
from barnabas.testing import (
    Broker,
    WaitTimedOut,
    records_async,
    wait_for_records,
    wait_until,
    wait_until_async,
)


async def asynchronous(bootstrap: str) -> int:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topic("orders", partitions=3)
        listed = await admin.list_topics()
        count: int = listed["orders"].partitions
    async with Producer({"bootstrap.servers": bootstrap}, linger_ms=5) as producer:
        delivery = await producer.send("orders", b"value", key=b"key", headers=[("trace", b"1")])
        delivered: Delivered = await delivery
        offset: int = delivered.offset
        async with producer.transaction() as transaction:
            await transaction.send_offsets({("orders", 0): 1}, "group")
    async with Consumer(bootstrap_servers=bootstrap, group_id="g") as consumer:
        await consumer.subscribe(["orders"])
        async for message in consumer:
            value: bytes | None = message.value
            assert value is not None
            await consumer.commit()
            break
        batch = await consumer.batch(10, timeout_ms=100)
        lengths = [len(one.value or b"") for one in batch]
        ends: Mapping[TopicPartition, int] = await consumer.end_offsets([("orders", 0)])
    return count + offset + sum(lengths) + len(ends)


def plain(bootstrap: str) -> list[bytes | None]:
    found: list[bytes | None] = []
    with blocking.Producer(bootstrap_servers=bootstrap) as producer:
        delivery: Delivery = producer.send("orders", b"value")
        where: Delivered = delivery.result(timeout=10)
        found.append(str(where.offset).encode())
        producer.flush(1.5)
        with producer.transaction() as transaction:
            transaction.send_offsets({("orders", 0): 1}, "group")
    with blocking.Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([("orders", 0), TopicPartition("orders", 1)])
        for message in consumer:
            found.append(message.value)
            break
        for batch in consumer.batches(100):
            found.extend(one.value for one in batch)
            break
    with blocking.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic("orders", partitions=3)
        partitions: int = admin.list_topics()["orders"].partitions
        found.append(bytes(partitions))
    return found


def in_a_test(barnabas_broker: Broker, barnabas_topic: str) -> None:
    with barnabas_broker.producer(linger_ms=0) as producer:
        producer.send(barnabas_topic, b"value")
    [message] = barnabas_broker.wait_for_records(barnabas_topic)
    kept: Message = message
    try:
        wait_for_records(barnabas_broker.bootstrap, barnabas_topic, 2, timeout_s=0.1)
    except WaitTimedOut as error:
        print(error, kept.headers)
    length: int = wait_until(lambda: len(barnabas_broker.records(barnabas_topic)))
    print(length)


async def in_an_async_test() -> None:
    async with Broker({"num.partitions": 3}, topics={"orders": 1}, storage="memory") as broker:
        found: list[Message] = await records_async(broker.bootstrap, "orders")
        count: int = await wait_until_async(lambda: len(found))
        print(count)


try:
    asyncio.run(asynchronous("localhost:9092"))
except ClientError as failed:
    print(failed)
_ = EndOfPartition
