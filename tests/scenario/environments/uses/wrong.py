"""Mistakes that a type checker finds. It is not run, and test_type_checkers.py reads its comments."""

from barnabas.client import Consumer, Producer, blocking
from barnabas.testing import Broker


async def in_coroutines() -> None:
    async with Producer(bootstrap_servers="localhost:9092") as producer:
        await producer.send("orders", "text")  # error: arg-type
        print(producer.send("orders", b"value").offset)  # error: attr-defined
    async with Consumer(bootstrap_servers="localhost:9092") as consumer:
        await consumer.assign(["orders"])  # error: list-item
    with Producer(bootstrap_servers="localhost:9092"):  # error: attr-defined
        pass


def in_scripts() -> None:
    with blocking.Producer(bootstrap_servers="localhost:9092") as producer:
        producer.send(b"orders", b"value")  # error: arg-type
        producer.flush("soon")  # error: arg-type
        offset: str = producer.send("orders", b"value").result().offset  # error: assignment
        print(offset)
    with blocking.Admin(bootstrap_servers="localhost:9092") as admin:
        admin.create_topic("orders", partition=3)  # error: call-arg
    with blocking.Consumer(bootstrap_servers="localhost:9092") as consumer:
        for message in consumer:
            print(message.payload)  # error: attr-defined


def in_tests() -> None:
    with Broker(storage="tape") as broker:  # error: arg-type
        broker.wait_for_record("orders")  # error: attr-defined
