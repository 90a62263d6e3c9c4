"""Group consumers of ours with Apache Kafka 4.3: alone, with confluent-kafka's and with Java's in one group.

tests/scenario/test_group_sharing.py is the same with our broker, but for Java.
"""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from barnabas.client import Admin, Consumer, Producer
from support.group.sharing import BROKER_SETTINGS, CASES, CLASSIC, PARTITIONS, share, until
from support.kafka.broker import KafkaBroker
from support.kafka.tools import KafkaTools, kafka_tools

JAVA = "org.apache.kafka.clients.consumer."
JAVA_NAMES = {
    "range": f"{JAVA}RangeAssignor",
    "roundrobin": f"{JAVA}RoundRobinAssignor",
    "sticky": f"{JAVA}StickyAssignor",
    "cooperative-sticky": f"{JAVA}CooperativeStickyAssignor",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    kafka = KafkaBroker(kafka_tools(), tmp_path_factory.mktemp("kafka"), settings=BROKER_SETTINGS)
    kafka.format()
    with kafka.running() as address:
        yield address


@pytest.mark.parametrize("case", CASES)
def test_members_share_partitions_while_others_join_and_leave(address: str, case: str) -> None:
    share(address, case)


@contextmanager
def java_member(
    tools: KafkaTools, address: str, name: str, strategy: str
) -> "Iterator[subprocess.Popen[str]]":
    """Kafka's console consumer as a member of the group of that name, on the topic of that name."""
    properties = {
        "partition.assignment.strategy": JAVA_NAMES[strategy],
        "heartbeat.interval.ms": "300",
        "session.timeout.ms": "10000",
        "auto.offset.reset": "earliest",
    }
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", tools.classpath]
    command += ["org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", address]
    command += ["--topic", name, "--group", name]
    for key, value in properties.items():
        command += ["--command-property", f"{key}={value}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


async def prepare(address: str, name: str) -> None:
    async with Admin(bootstrap_servers=address) as admin:
        await admin.create_topic(name, partitions=PARTITIONS)
    async with Producer(bootstrap_servers=address) as producer:
        for partition in range(PARTITIONS):
            await producer.send(name, b"one", partition=partition)


def ours(address: str, name: str, strategy: str) -> Consumer:
    return Consumer(
        bootstrap_servers=address, group_id=name, partition_assignment_strategy=strategy, **CLASSIC
    )


@pytest.mark.parametrize("strategy", JAVA_NAMES)
def test_a_leader_of_ours_shares_out_to_a_member_in_java(address: str, strategy: str) -> None:
    name = f"java-{time.time_ns()}"

    async def story() -> None:
        await prepare(address, name)
        async with ours(address, name, strategy) as consumer:
            await consumer.subscribe([name])
            await until(lambda: len(consumer.assignment) == PARTITIONS, "all is ours")
            with java_member(kafka_tools(), address, name, strategy):
                await until(lambda: len(consumer.assignment) == PARTITIONS // 2, "half is Java's")
            await until(lambda: len(consumer.assignment) == PARTITIONS, "all is ours again")

    asyncio.run(story())


@pytest.mark.parametrize("strategy", JAVA_NAMES)
def test_a_leader_in_java_shares_out_to_a_member_of_ours(address: str, strategy: str) -> None:
    name = f"java-{time.time_ns()}"

    async def story() -> None:
        await prepare(address, name)
        with java_member(kafka_tools(), address, name, strategy) as java:
            assert java.stdout is not None
            # It has joined, and leads.
            assert await asyncio.to_thread(java.stdout.readline) == "one\n"
            async with ours(address, name, strategy) as consumer:
                await consumer.subscribe([name])
                await until(lambda: len(consumer.assignment) == PARTITIONS // 2, "half is ours")

    asyncio.run(story())
