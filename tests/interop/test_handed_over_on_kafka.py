"""Transactions that begin in one client and end in another, with Apache Kafka 4.3, in both versions of them.

What is asked here is what Kafka's coordinator and leaders say to it; the rules of our client are tested in
tests/simulation, with a broker of a script that says the same.
"""

import asyncio
import pickle
from collections.abc import Iterator
from itertools import count

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client import Admin, Consumer, EndOfPartition, Producer
from barnabas.client.producer.transaction import OpenTransaction
from barnabas.client.producer.transaction_errors import ProducerFenced, TransactionError, TransactionNotOpen
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools

SETTINGS = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 3,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    "group.initial.rebalance.delay.ms": 0,
}
SHORT_MS = 1_000
COMMIT_OR_ABORT = pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
names = (f"topic-{number}" for number in count())


@pytest.fixture(scope="module", params=[1, 2], ids=["version1", "version2"])
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(kafka_tools(), tmp_path_factory.mktemp("kafka"), settings=SETTINGS)
    broker.format("--feature", f"transaction.version={request.param}")
    with broker.running():
        yield broker


@pytest.fixture
def is_v2(kafka: KafkaBroker, request: pytest.FixtureRequest) -> bool:
    return "version2" in request.node.name


async def new_topic(address: str) -> str:
    """With two partitions; the transactional ids are called as the topics."""
    name = next(names)
    async with Admin(bootstrap_servers=address) as admin:
        await admin.create_topic(name, partitions=2)
    return name


def producer_of(address: str, topic: str, **settings: object) -> Producer:
    return Producer(bootstrap_servers=address, transactional_id=topic, **settings)


async def handed_over(address: str, topic: str, *values: bytes, **settings: object) -> OpenTransaction:
    async with producer_of(address, topic, **settings) as producer:
        await producer.begin_transaction()
        for number, value in enumerate(values):
            await producer.send(topic, value, partition=number % 2)
        opened = await producer.hand_over_transaction()
    assert opened is not None
    # As another process gets it.
    again: OpenTransaction = pickle.loads(pickle.dumps(opened))
    return again


async def write(address: str, opened: OpenTransaction, topic: str, partition: int, *values: bytes) -> None:
    async with producer_of(address, topic) as producer:
        await producer.join_transaction(opened)
        for value in values:
            await producer.send(topic, value, partition=partition)
        assert await producer.hand_over_transaction() == opened


async def end(address: str, *opened: OpenTransaction, commit: bool = True) -> None:
    async with Admin(bootstrap_servers=address) as admin:
        await admin.end_transactions(opened, commit=commit)


async def values(address: str, topic: str) -> list[bytes]:
    """What is committed in all partitions, sorted."""
    found: list[bytes] = []
    async with Consumer(
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        enable_partition_eof=True,
    ) as consumer:
        left = set(await consumer.assign_topic(topic))
        async for message in consumer:
            if isinstance(message, EndOfPartition):
                left.discard(message.tp)
                if not left:
                    break
            else:
                found.append(message.value or b"")
    return sorted(found)


async def until_visible(address: str, topic: str, expected: list[bytes]) -> None:
    """Markers are written after the answer to a commit, so it may take a moment."""
    for _ in range(100):
        if (found := await values(address, topic)) == expected:
            return
        await asyncio.sleep(0.1)
    assert found == expected


@COMMIT_OR_ABORT
def test_a_handed_over_transaction_is_ended_by_another_client(kafka: KafkaBroker, commit: bool) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        opened = await handed_over(kafka.address, topic, b"a", b"b")
        assert await values(kafka.address, topic) == []

        await end(kafka.address, opened, commit=commit)
        # Asked once more, as after a lost answer, it says the same; and not the opposite.
        await end(kafka.address, opened, commit=commit)
        with pytest.raises(TransactionNotOpen):
            await end(kafka.address, opened, commit=not commit)

        async with producer_of(kafka.address, topic) as next_one, next_one.transaction():
            await next_one.send(topic, b"c", partition=0)
        await until_visible(kafka.address, topic, [b"a", b"b", b"c"] if commit else [b"c"])

    asyncio.run(story())


@COMMIT_OR_ABORT
def test_records_of_several_writers_become_visible_together_or_never(
    kafka: KafkaBroker, commit: bool
) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with producer_of(kafka.address, topic) as opener:
            # In version 1 this uses up the first numbers of its epoch.
            async with opener.transaction():
                await opener.send(topic, b"a", partition=0)
            opened = await opener.open_transaction_for_others()
        many = [b"%04d" % number for number in range(500)]
        await asyncio.gather(
            write(kafka.address, opened, topic, 0, b"b"), write(kafka.address, opened, topic, 1, *many)
        )
        assert await values(kafka.address, topic) == [b"a"]

        await end(kafka.address, opened, commit=commit)

        await until_visible(kafka.address, topic, sorted([b"a", b"b", *many]) if commit else [b"a"])

    asyncio.run(story())


def test_a_joined_producer_sends_offsets_commits_and_continues(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        tp = TopicPartition(topic, 0)
        async with producer_of(kafka.address, topic) as opener:
            opened = await opener.open_transaction_for_others()
        await write(kafka.address, opened, topic, 0, b"a")
        async with producer_of(kafka.address, topic) as driver:
            await driver.join_transaction(opened)
            await driver.send_offsets_to_transaction({tp: 7}, topic)
            await driver.commit_transaction()
            async with driver.transaction():
                await driver.send(topic, b"b", partition=0)
        await until_visible(kafka.address, topic, [b"a", b"b"])
        async with Admin(bootstrap_servers=kafka.address) as admin:
            committed = await admin.list_group_offsets(topic)
        assert [at and at.offset for at in committed.values()] == [7]

    asyncio.run(story())


def test_a_newer_producer_fences_the_transaction_and_its_members(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        opened = await handed_over(kafka.address, topic, b"a")
        async with producer_of(kafka.address, topic) as newer:
            await newer.init_transactions()
            for commit in (True, False):
                with pytest.raises(ProducerFenced, match=f"{topic} .*another producer"):
                    await end(kafka.address, opened, commit=commit)
            with pytest.raises(TransactionError):
                await write(kafka.address, opened, topic, 1, b"late")
            async with newer.transaction():
                await newer.send(topic, b"new", partition=1)
        await until_visible(kafka.address, topic, [b"new"])

    asyncio.run(story())


def test_a_transaction_past_its_timeout_is_aborted_and_cannot_be_committed(
    kafka: KafkaBroker, is_v2: bool
) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        opened = await handed_over(kafka.address, topic, b"late", transaction_timeout_ms=SHORT_MS)
        await asyncio.sleep(3 * SHORT_MS / 1000)
        with pytest.raises(TransactionNotOpen if is_v2 else ProducerFenced):
            await end(kafka.address, opened)
        assert await values(kafka.address, topic) == []

    asyncio.run(story())


def test_one_with_nothing_in_it_can_not_be_committed(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with producer_of(kafka.address, topic) as opener:
            opened = await opener.open_transaction_for_others()
        with pytest.raises(TransactionNotOpen, match="nothing is in it"):
            await end(kafka.address, opened)

    asyncio.run(story())
