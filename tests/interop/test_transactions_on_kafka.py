"""Transactions of our producer with Apache Kafka 4.3, in both versions of them (transaction.version 1 and 2).

What a consumer sees that reads committed records is compared with what was committed; nothing else counts.
"""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client import Admin, CommitFailed, Consumer, EndOfPartition, Producer, Refused
from barnabas.client.blocking import Consumer as BlockingConsumer
from barnabas.client.blocking import Producer as BlockingProducer
from barnabas.client.producer.transaction_errors import (
    MustAbort,
    ProducerFenced,
    TransactionAborted,
    TransactionTimedOut,
)
from barnabas.protocol.error_codes import ErrorCode
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools

SETTINGS = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 3,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    "group.initial.rebalance.delay.ms": 0,
}
# A transaction that only its time-out can end; the broker looks every 200 ms.
SHORT_MS = 1_000
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


async def new_topic(address: str, partitions: int = 2, **settings: object) -> str:
    name = next(names)
    async with Admin(bootstrap_servers=address) as admin:
        await admin.create_topic(name, partitions=partitions, settings=settings or None)
    return name


async def values(address: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """What is in all partitions, sorted."""
    found: list[bytes] = []
    async with Consumer(
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        isolation_level=isolation,
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


async def transact(
    producer: Producer,
    records: list[tuple[str, bytes, int | None]],
    *,
    wait: bool = False,
    sleep_ms: int = 0,
    then: list[tuple[str, bytes, int | None]] | None = None,
    raises: Exception | None = None,
) -> None:
    """One transaction in a block; `wait` for each delivery, sleep, send more, raise."""
    async with producer.transaction():
        for topic, value, partition in records:
            delivery = await producer.send(topic, value, partition=partition)
            if wait:
                await delivery
        await asyncio.sleep(sleep_ms / 1000)
        for topic, value, partition in then or []:
            await producer.send(topic, value, partition=partition)
        if raises is not None:
            raise raises


async def until_visible(address: str, topic: str, expected: list[bytes]) -> None:
    """Markers are written after the answer to a commit, so it may take a moment."""
    for _ in range(100):
        if (found := await values(address, topic)) == expected:
            return
        await asyncio.sleep(0.1)
    assert found == expected


def test_committed_records_are_visible_and_aborted_ones_are_not(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with Producer(bootstrap_servers=kafka.address, transactional_id=topic) as producer:
            await transact(producer, [(topic, b"a", 0), (topic, b"b", 1)])
            with pytest.raises(KeyError):
                await transact(producer, [(topic, b"not this", 0)], wait=True, raises=KeyError())
            async with producer.transaction():
                await producer.send_table(topic, pa.table({"value": [b"c", b"d"]}))
        await until_visible(kafka.address, topic, [b"a", b"b", b"c", b"d"])
        assert b"not this" in await values(kafka.address, topic, "read_uncommitted")

    asyncio.run(story())


def test_many_transactions_in_a_row(kafka: KafkaBroker, is_v2: bool) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with Producer(bootstrap_servers=kafka.address, transactional_id=topic) as producer:
            epochs = []
            for number in range(100):
                await producer.begin_transaction()
                delivery = await producer.send(topic, b"%03d" % number, partition=number % 2)
                if number % 3:
                    await producer.commit_transaction()
                else:
                    await delivery
                    await producer.abort_transaction()
                epochs.append(producer._transactions().state.identity.epoch)  # type: ignore[union-attr]
        assert epochs == ([*range(1, 101)] if is_v2 else [0] * 100)
        committed = [b"%03d" % number for number in range(100) if number % 3]
        await until_visible(kafka.address, topic, committed)

    asyncio.run(story())


def test_of_two_producers_with_one_id_the_older_is_fenced(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with (
            Producer(bootstrap_servers=kafka.address, transactional_id=topic) as older,
            Producer(bootstrap_servers=kafka.address, transactional_id=topic) as newer,
        ):
            await older.begin_transaction()
            await (await older.send(topic, b"old", partition=0))
            async with newer.transaction():
                await newer.send(topic, b"new", partition=0)

            with pytest.raises(ProducerFenced):
                await older.commit_transaction()
            with pytest.raises(ProducerFenced):
                await older.begin_transaction()
            async with newer.transaction():
                await newer.send(topic, b"new too", partition=1)
        await until_visible(kafka.address, topic, [b"new", b"new too"])

    asyncio.run(story())


def test_a_fenced_producer_finds_out_when_it_sends(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with (
            Producer(bootstrap_servers=kafka.address, transactional_id=topic) as older,
            Producer(bootstrap_servers=kafka.address, transactional_id=topic) as newer,
        ):
            await older.init_transactions()
            await newer.init_transactions()
            with pytest.raises(ProducerFenced):
                await transact(older, [(topic, b"old", None)])
        assert await values(kafka.address, topic) == []

    asyncio.run(story())


def test_a_transaction_that_takes_too_long_is_aborted(kafka: KafkaBroker, is_v2: bool) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with Producer(
            bootstrap_servers=kafka.address, transactional_id=topic, transaction_timeout_ms=SHORT_MS
        ) as producer:
            with pytest.raises(TransactionAborted if is_v2 else ProducerFenced) as aborted:
                await transact(producer, [(topic, b"late", 0)], wait=True, sleep_ms=3 * SHORT_MS)
            if is_v2:
                assert isinstance(aborted.value, TransactionAborted)
                assert isinstance(aborted.value.because, TransactionTimedOut)
                async with producer.transaction():
                    await producer.send(topic, b"in time", partition=0)
            else:
                # The answer is the same as for one that is fenced; how long it was open is the only hint.
                assert "took" in str(aborted.value)
        await until_visible(kafka.address, topic, [b"in time"] if is_v2 else [])

    asyncio.run(story())


def test_a_send_after_the_timeout_is_reported_and_the_producer_continues(
    kafka: KafkaBroker, is_v2: bool
) -> None:
    if not is_v2:
        pytest.skip("in version 1 the producer is fenced")

    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with Producer(
            bootstrap_servers=kafka.address, transactional_id=topic, transaction_timeout_ms=SHORT_MS
        ) as producer:
            for partition in (0, 1):
                with pytest.raises(TransactionAborted) as aborted:
                    await transact(
                        producer,
                        [(topic, b"early", 0)],
                        wait=True,
                        sleep_ms=3 * SHORT_MS,
                        then=[(topic, b"late", partition)],
                    )
                assert isinstance(aborted.value.because, TransactionTimedOut)
                assert aborted.value.because.tp == (topic, partition)
            await producer.begin_transaction()
            await (await producer.send(topic, b"early", partition=0))
            await asyncio.sleep(3 * SHORT_MS / 1000)
            with pytest.raises(TransactionTimedOut):
                await producer.send_offsets_to_transaction({(topic, 0): 1}, topic)
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send(topic, b"in time", partition=0)
        await until_visible(kafka.address, topic, [b"in time"])

    asyncio.run(story())


def test_a_record_that_is_refused_aborts_all_of_it(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address, **{"max.message.bytes": 2_000})
        async with Producer(bootstrap_servers=kafka.address, transactional_id=topic) as producer:
            await producer.begin_transaction()
            await (await producer.send(topic, b"small", partition=0))
            await producer.send(topic, b"x" * 5_000, partition=1)
            with pytest.raises(MustAbort) as trouble:
                await producer.commit_transaction()
            assert (trouble.value.tp, trouble.value.records) == (TopicPartition(topic, 1), 1)
            assert isinstance(trouble.value.because, Refused)
            assert trouble.value.because.code is ErrorCode.MESSAGE_TOO_LARGE
            with pytest.raises(MustAbort):
                await producer.send(topic, b"more", partition=0)
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send(topic, b"fine", partition=1)
        await until_visible(kafka.address, topic, [b"fine"])

    asyncio.run(story())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consume_transform_produce(kafka: KafkaBroker, protocol: str) -> None:
    async def story() -> None:
        source, sink = await new_topic(kafka.address), await new_topic(kafka.address)
        async with Producer(bootstrap_servers=kafka.address) as producer:
            for number in range(100):
                await producer.send(source, b"%02d" % number)
        # Twice: the second one goes on where the first has committed, though it was stopped in the middle.
        for limit in (40, 60):
            await transform(source, sink, protocol, limit)
        await until_visible(kafka.address, sink, [b"%02d!" % number for number in range(100)])

    async def transform(source: str, sink: str, protocol: str, limit: int) -> None:
        async with (
            Producer(bootstrap_servers=kafka.address, transactional_id=sink) as producer,
            Consumer(
                bootstrap_servers=kafka.address,
                group_id=source,
                group_protocol=protocol,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                isolation_level="read_committed",
            ) as consumer,
        ):
            await consumer.subscribe([source])
            done = 0
            while done < limit:
                messages = await consumer.batch(10, timeout_ms=10_000)
                if done == 20:
                    await producer.begin_transaction()
                    await producer.send(sink, b"half")
                    await producer.send_offsets_to_transaction(consumer.delivered, consumer)
                    await producer.abort_transaction()
                async with producer.transaction() as transaction:
                    for message in messages:
                        await producer.send(sink, (message.value or b"") + b"!")
                    await transaction.send_offsets(consumer.delivered, consumer)
                done += len(messages)
            committed = await consumer.committed(consumer.assignment)
            assert {tp: at.offset for tp, at in committed.items() if at} == {
                tp: at.offset for tp, at in consumer.delivered.items()
            }

    asyncio.run(story())


def test_offsets_of_a_generation_that_is_over_are_not_taken(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with (
            Producer(bootstrap_servers=kafka.address, transactional_id=topic) as producer,
            Consumer(
                bootstrap_servers=kafka.address, group_id=topic, isolation_level="read_committed"
            ) as consumer,
        ):
            await consumer.subscribe([topic])
            await consumer.batch(1, timeout_ms=2_000)
            now = consumer.group_metadata()
            assert now.generation > 0
            await producer.begin_transaction()
            with pytest.raises(MustAbort) as trouble:
                await producer.send_offsets_to_transaction(
                    {(topic, 0): 7}, now._replace(generation=now.generation - 1)
                )
            assert isinstance(trouble.value.because, CommitFailed)
            await producer.abort_transaction()
            async with producer.transaction() as transaction:
                await transaction.send_offsets({(topic, 1): 9}, consumer)
            committed = await consumer.committed([(topic, 0), (topic, 1)])
            assert [at and at.offset for at in committed.values()] == [None, 9]

    asyncio.run(story())


DIES = """
import asyncio, sys
from barnabas.client import Producer

async def main(address, topic):
    async with Producer(bootstrap_servers=address, transactional_id=topic) as producer:
        await producer.begin_transaction()
        for partition in (0, 1):
            await (await producer.send(topic, b"of the dead", partition=partition))
        print("written", flush=True)
        await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_successor_aborts_the_transaction_of_a_killed_process(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        command = [sys.executable, "-c", DIES, kafka.address, topic]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"written\n"
            process.send_signal(signal.SIGKILL)
        async with Producer(bootstrap_servers=kafka.address, transactional_id=topic) as successor:
            await transact(successor, [(topic, b"of the living", 0)])
        await until_visible(kafka.address, topic, [b"of the living"])
        assert (await values(kafka.address, topic, "read_uncommitted")).count(b"of the dead") == 2

    asyncio.run(story())


def test_closing_aborts_an_open_transaction(kafka: KafkaBroker) -> None:
    async def story() -> None:
        topic = await new_topic(kafka.address)
        async with Producer(bootstrap_servers=kafka.address, transactional_id=topic) as producer:
            await producer.begin_transaction()
            await (await producer.send(topic, b"open", partition=0))
            await producer.send(topic, b"not sent", partition=1)
        began = time.monotonic()
        # Nobody waits for the time-out: what comes after it is seen at once.
        async with Producer(bootstrap_servers=kafka.address) as plain:
            await plain.send(topic, b"after", partition=0)
        await until_visible(kafka.address, topic, [b"after"])
        assert time.monotonic() - began < 30

    asyncio.run(story())


def test_the_blocking_producer_has_transactions_too(kafka: KafkaBroker) -> None:
    topic = asyncio.run(new_topic(kafka.address))
    with (
        BlockingProducer(bootstrap_servers=kafka.address, transactional_id=topic) as producer,
        BlockingConsumer(
            bootstrap_servers=kafka.address, group_id=topic, isolation_level="read_committed"
        ) as consumer,
    ):
        with producer.transaction() as transaction:
            for number in range(10):
                producer.send(topic, b"%d" % number)
            transaction.send_offsets({(topic, 0): 3}, consumer)
        with suppress(KeyError), producer.transaction():
            producer.send(topic, b"not this")
            raise KeyError
        producer.begin_transaction()
        delivery = producer.send(topic, b"x" * 2_000_000)
        with pytest.raises(MustAbort):
            producer.commit_transaction()
        assert delivery.exception() is not None
        producer.abort_transaction()
        committed = consumer.committed([(topic, 0)])
        assert [at and at.offset for at in committed.values()] == [3]
    asyncio.run(until_visible(kafka.address, topic, [b"%d" % number for number in range(10)]))


@pytest.mark.parametrize("version", [1, 2])
def test_transactions_while_the_broker_is_killed_and_restarted(tmp_path: Path, version: int) -> None:
    broker = KafkaBroker(kafka_tools(), tmp_path, settings=SETTINGS)
    broker.format("--feature", f"transaction.version={version}")

    async def story() -> None:
        topic = await new_topic(broker.address)
        committed: list[bytes] = []
        restart: asyncio.Task[None] | None = None
        async with Producer(
            bootstrap_servers=broker.address, transactional_id=topic, max_block_ms=120_000
        ) as producer:
            for number in range(60):
                if number == 20:
                    restart = asyncio.create_task(asyncio.to_thread(again))
                mine = [b"%02d-%d" % (number, partition) for partition in (0, 1)]
                try:
                    async with producer.transaction():
                        for partition, value in enumerate(mine):
                            await producer.send(topic, value, partition=partition)
                except TransactionAborted:
                    continue
                committed += mine
        assert restart is not None
        await restart
        assert len(committed) > 80
        await until_visible(broker.address, topic, committed)

    def again() -> None:
        broker.kill()
        broker.start()

    broker.start()
    try:
        asyncio.run(story())
    finally:
        broker.stop()
