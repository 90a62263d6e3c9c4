"""Two-phase commit: what is prepared outlives producer and broker, and is completed by what was stored.

A broker in a process of its own, and our client. (KIP-939, experimental)
"""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import (
    Admin,
    Consumer,
    EndOfPartition,
    MustAbort,
    NoTransaction,
    OutcomeUnknown,
    Producer,
    ProducerFenced,
    Refused,
    UnsupportedByBroker,
)
from barnabas.client.admin import TransactionState
from barnabas.client.blocking import Producer as BlockingProducer
from barnabas.client.producer.transaction import NOTHING_PREPARED, PreparedTransaction
from barnabas.client.producer.transaction_errors import TransactionOpen, TwoPhaseCommitOff
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    InitProducerIdRequest,
)
from support.process.our_broker import OurBroker
from support.wire.client import WireClient

SMALL = {
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}
UNSTABLE = {"unstable.api.versions.enable": "true"}
TWO_PHASE = {**SMALL, **UNSTABLE, "transaction.two.phase.commit.enable": "true"}
UNLIMITED_MS = 2**31 - 1
WAIT_S_MAX = 30.0
names = (f"orders-{number}" for number in count())

PREPARES = """
import asyncio, sys
from barnabas.client import Producer

async def main(address, topic):
    settings = {"transactional.id": topic, "transaction.two.phase.commit.enable": True}
    async with Producer(settings, bootstrap_servers=address) as producer:
        async with producer.transaction() as transaction:
            for number in range(20):
                await producer.send(topic, b"%02d" % number, partition=number % 2)
            print(await transaction.prepare(), flush=True)
            await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""
SENT = [b"%02d" % number for number in range(20)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    """For all who do not stop it."""
    broker = OurBroker(tmp_path_factory.mktemp("broker"), settings=TWO_PHASE)
    with broker.running():
        yield broker


def producer_of(address: str, topic: str, **more: object) -> Producer:
    return Producer(
        bootstrap_servers=address,
        transactional_id=topic,
        transaction_two_phase_commit_enable=True,
        **more,
    )


async def new_topic(address: str) -> str:
    name = next(names)
    async with Admin(bootstrap_servers=address) as admin:
        await admin.create_topic(name, partitions=2)
    return name


async def values(address: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """What is in all partitions, sorted. Who reads committed records comes as far as the first open one."""
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


async def until_seen(address: str, topic: str, expected: list[bytes]) -> None:
    """Markers are written after the answer to an end, so it may take a moment."""
    deadline = time.monotonic() + WAIT_S_MAX
    while (found := await values(address, topic)) != expected:
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.05)


async def goes_on(producer: Producer, address: str, topic: str, expected: list[bytes]) -> None:
    """The next transaction is an ordinary one, and shows that nothing is in the way of readers."""
    async with producer.transaction():
        for partition in (0, 1):
            await producer.send(topic, b"next", partition=partition)
    await until_seen(address, topic, sorted([*expected, b"next", b"next"]))


async def left_by_the_dead(broker: OurBroker, topic: str) -> PreparedTransaction:
    """Prepared by a process that is killed, and kept by a broker that is killed."""
    command = [sys.executable, "-c", PREPARES, broker.address, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        stored = PreparedTransaction.parse(process.stdout.readline().decode().strip())
        process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(broker.kill)
    await asyncio.to_thread(broker.start)
    return stored


async def prepared(producer: Producer, topic: str, *sent: bytes) -> PreparedTransaction:
    async with producer.transaction() as transaction:
        for value in sent:
            await producer.send(topic, value)
        return await transaction.prepare()


def told(broker: OurBroker, story: Coroutine[Any, Any, None]) -> None:
    broker.start()
    try:
        asyncio.run(story)
        broker.stop()
    finally:
        broker.kill()


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_prepared_transaction_of_a_dead_worker_is_completed_from_storage(
    tmp_path: Path, is_stored: bool
) -> None:
    broker = OurBroker(tmp_path, settings=TWO_PHASE)

    async def story() -> None:
        topic = await new_topic(broker.address)
        of_the_dead = await left_by_the_dead(broker, topic)
        assert of_the_dead
        stored = of_the_dead if is_stored else PreparedTransaction(of_the_dead.producer_id, 99)
        assert await values(broker.address, topic) == []
        assert await values(broker.address, topic, "read_uncommitted") == SENT

        async with producer_of(broker.address, topic) as producer:
            found = await producer.init_transactions(keep_prepared=True)
            assert found == of_the_dead
            assert await values(broker.address, topic) == []
            await producer.complete_transaction(stored)

            expected = SENT if is_stored else []
            await until_seen(broker.address, topic, expected)
            await goes_on(producer, broker.address, topic, expected)

    told(broker, story())


def test_the_next_worker_completes_the_transaction_of_a_killed_one(tmp_path: Path) -> None:
    broker = OurBroker(tmp_path, settings=TWO_PHASE)

    async def story() -> None:
        topic = await new_topic(broker.address)
        stored = await left_by_the_dead(broker, topic)
        async with (
            producer_of(broker.address, topic) as first,
            producer_of(broker.address, topic) as second,
        ):
            assert await first.init_transactions(keep_prepared=True) == stored
            # By now the id of who decides is another than that of the records.
            assert first._transactions().state.identity != (stored.producer_id, stored.epoch)
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)
            assert await second.init_transactions(keep_prepared=True) == stored

            with pytest.raises(ProducerFenced):
                await first.complete_transaction(NOTHING_PREPARED)
            assert await values(broker.address, topic) == []
            await second.complete_transaction(str(stored))
            await until_seen(broker.address, topic, SENT)
            await goes_on(second, broker.address, topic, SENT)

    told(broker, story())


async def completed(producer: Producer, stored: PreparedTransaction) -> None:
    """Ask until the broker answers: max.block.ms is short, and the broker has just been started."""
    async with asyncio.timeout(WAIT_S_MAX):
        while True:
            with suppress(OutcomeUnknown):
                return await producer.complete_transaction(stored)


def test_a_broker_that_is_away_is_asked_again_by_the_same_call(tmp_path: Path) -> None:
    broker = OurBroker(tmp_path, settings=TWO_PHASE)

    async def story() -> None:
        for commit in (True, False):
            topic = await new_topic(broker.address)
            async with producer_of(broker.address, topic, max_block_ms=2_000) as producer:
                mine = await prepared(producer, topic, b"a", b"b")
                stored = mine if commit else NOTHING_PREPARED
                await asyncio.to_thread(broker.kill)
                with pytest.raises(OutcomeUnknown):
                    await producer.complete_transaction(stored)
                # It has been asked for: there is no other way now.
                with pytest.raises(NoTransaction):
                    await producer.complete_transaction(NOTHING_PREPARED if commit else mine)
                await asyncio.to_thread(broker.start)
                await completed(producer, stored)
                await goes_on(producer, broker.address, topic, [b"a", b"b"] if commit else [])

    told(broker, story())


def test_init_transactions_aborts_a_prepared_transaction(broker: OurBroker) -> None:
    async def story() -> None:
        topic = await new_topic(broker.address)
        async with producer_of(broker.address, topic) as older:
            await prepared(older, topic, b"a", b"b")
        async with producer_of(broker.address, topic) as newer:
            assert await newer.init_transactions() == NOTHING_PREPARED
            with pytest.raises(NoTransaction):
                await newer.complete_transaction(NOTHING_PREPARED)
            await goes_on(newer, broker.address, topic, [])

    asyncio.run(story())


def test_keep_prepared_finds_no_completed_transaction(broker: OurBroker) -> None:
    async def story() -> None:
        topic = await new_topic(broker.address)
        async with producer_of(broker.address, topic) as first:
            assert not await first.init_transactions(keep_prepared=True)
            mine = await prepared(first, topic, b"a")
            await first.complete_transaction(mine)
        # It was committed, and whoever was killed before it knew finds nothing left to do.
        async with producer_of(broker.address, topic) as second:
            assert not await second.init_transactions(keep_prepared=True)
            with pytest.raises(NoTransaction):
                await second.complete_transaction(mine)
            await goes_on(second, broker.address, topic, [b"a"])

    asyncio.run(story())


def test_an_open_unprepared_transaction_is_kept_and_matches_no_stored_state(broker: OurBroker) -> None:
    async def story() -> None:
        topic = await new_topic(broker.address)
        older, newer = producer_of(broker.address, topic), producer_of(broker.address, topic)
        async with older, newer:
            stored = await prepared(older, topic, b"a")
            await older.complete_transaction(stored)
            await older.begin_transaction()
            await (await older.send(topic, b"open"))

            found = await newer.init_transactions(keep_prepared=True)
            assert found
            assert found != stored
            await newer.complete_transaction(stored)
            await goes_on(newer, broker.address, topic, [b"a"])
            with pytest.raises(ProducerFenced):
                await older.commit_transaction()

    asyncio.run(story())


async def until_aborted(address: str, transactional_id: str) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    async with Admin(bootstrap_servers=address) as admin:
        while True:
            state = (await admin.describe_transactions([transactional_id]))[transactional_id].state
            if state is TransactionState.COMPLETE_ABORT:
                return
            assert time.monotonic() < deadline, state
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("two_phase", [True, False])
def test_no_time_ends_it(broker: OurBroker, two_phase: bool) -> None:
    """Without two-phase commit it is over after half a second: else this would show nothing."""

    def opened_for_half_a_second(topic: str) -> None:
        with WireClient(broker.address) as client:
            asked = FindCoordinatorRequest(key_type=1, coordinator_keys=[topic])
            while client.ask(asked, 4).coordinators[0].error_code:
                time.sleep(0.05)
            given = client.ask(
                InitProducerIdRequest(
                    transactional_id=topic, transaction_timeout_ms=500, enable2_pc=two_phase
                ),
                6,
            )
            assert given.error_code == 0
            added = client.ask(
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=topic,
                    v3_and_below_producer_id=given.producer_id,
                    v3_and_below_producer_epoch=given.producer_epoch,
                    v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
                ),
                3,
            )
            (row,) = added.results_by_topic_v3_and_below[0].results_by_partition
            assert row.partition_error_code == 0

    async def story() -> None:
        topic = await new_topic(broker.address)
        await asyncio.to_thread(opened_for_half_a_second, topic)
        async with Admin(bootstrap_servers=broker.address) as admin:
            described = (await admin.describe_transactions([topic]))[topic]
            assert described.timeout_ms == (UNLIMITED_MS if two_phase else 500)
        if two_phase:
            await asyncio.sleep(1.5)
        else:
            await until_aborted(broker.address, topic)
        async with producer_of(broker.address, topic) as producer:
            assert bool(await producer.init_transactions(keep_prepared=True)) == two_phase

    asyncio.run(story())


def test_our_producer_asks_for_no_end_by_time(broker: OurBroker) -> None:
    async def story() -> None:
        topic = await new_topic(broker.address)
        async with (
            producer_of(broker.address, topic) as producer,
            producer_of(broker.address, topic) as successor,
            Admin(bootstrap_servers=broker.address) as admin,
        ):
            await prepared(producer, topic, b"a")
            assert (await admin.describe_transactions([topic]))[topic].timeout_ms == UNLIMITED_MS
            assert await successor.init_transactions(keep_prepared=True)
            assert (await admin.describe_transactions([topic]))[topic].timeout_ms == UNLIMITED_MS

    asyncio.run(story())


def test_block_end_error_and_close_do_not_end_a_prepared_transaction(broker: OurBroker) -> None:
    async def story() -> None:
        for how in ("end", "error", "cancelled"):
            topic = await new_topic(broker.address)
            async with producer_of(broker.address, topic) as producer:
                mine = NOTHING_PREPARED
                with suppress(KeyError, asyncio.CancelledError):
                    async with producer.transaction() as transaction:
                        await producer.send(topic, b"a")
                        mine = await transaction.prepare()
                        if how == "error":
                            raise KeyError
                        if how == "cancelled":
                            raise asyncio.CancelledError
                with pytest.raises(TransactionOpen):
                    await producer.begin_transaction()
            async with producer_of(broker.address, topic) as successor:
                assert await successor.init_transactions(keep_prepared=True) == mine, how
                await successor.commit_transaction()
                await goes_on(successor, broker.address, topic, [b"a"])

    asyncio.run(story())


def test_after_prepare_nothing_goes_into_it(broker: OurBroker) -> None:
    async def story() -> None:
        topic = await new_topic(broker.address)
        async with producer_of(broker.address, topic) as producer:
            await producer.begin_transaction()
            await producer.send(topic, b"a")
            await producer.send_offsets_to_transaction({(topic, 0): 7}, topic)
            mine = await producer.prepare_transaction()

            for call in (
                producer.send(topic, b"late"),
                producer.send_offsets_to_transaction({(topic, 0): 8}, topic),
                producer.prepare_transaction(),
            ):
                with pytest.raises(NoTransaction, match="is prepared"):
                    await call
            with pytest.raises(NoTransaction):
                producer.try_send(topic, b"late")
            await producer.complete_transaction(mine)
            await until_seen(broker.address, topic, [b"a"])
            async with Consumer(bootstrap_servers=broker.address, group_id=topic) as consumer:
                committed = await consumer.committed([(topic, 0)])
                assert [at and at.offset for at in committed.values()] == [7]

    asyncio.run(story())


def test_an_empty_transaction_is_not_mistaken_for_the_next(broker: OurBroker) -> None:
    async def story() -> None:
        topic = await new_topic(broker.address)
        async with producer_of(broker.address, topic) as producer:
            stored = await prepared(producer, topic)
            await producer.complete_transaction(stored)
            await prepared(producer, topic, b"never stored")
        async with producer_of(broker.address, topic) as successor:
            assert await successor.init_transactions(keep_prepared=True)
            await successor.complete_transaction(stored)
            await goes_on(successor, broker.address, topic, [])

    asyncio.run(story())


def test_a_transaction_with_a_failed_write_cannot_be_prepared(broker: OurBroker) -> None:
    async def story() -> None:
        topic = await new_topic(broker.address)
        async with Admin(bootstrap_servers=broker.address) as admin:
            await admin.delete_topics([topic])
            await admin.create_topic(topic, partitions=2, settings={"max.message.bytes": 2_000})
        async with producer_of(broker.address, topic) as producer:
            await producer.begin_transaction()
            await producer.send(topic, b"small", partition=0)
            await producer.send(topic, b"x" * 5_000, partition=1)
            with pytest.raises(MustAbort):
                await producer.prepare_transaction()
            await producer.abort_transaction()
            await goes_on(producer, broker.address, topic, [])

    asyncio.run(story())


def test_a_producer_without_the_setting_neither_prepares_nor_keeps(broker: OurBroker) -> None:
    async def story() -> None:
        topic = await new_topic(broker.address)
        async with Producer(bootstrap_servers=broker.address, transactional_id=topic) as producer:
            with pytest.raises(TwoPhaseCommitOff, match=r"transaction\.two\.phase\.commit\.enable"):
                await producer.init_transactions(keep_prepared=True)
            await producer.begin_transaction()
            await producer.send(topic, b"a")
            with pytest.raises(TwoPhaseCommitOff):
                await producer.prepare_transaction()
            await producer.commit_transaction()
            await until_seen(broker.address, topic, [b"a"])

    asyncio.run(story())


@pytest.mark.parametrize("unstable", [True, False])
def test_a_broker_that_does_not_allow_it_says_so_and_nothing_is_changed(
    tmp_path: Path, unstable: bool
) -> None:
    broker = OurBroker(tmp_path, settings=SMALL | UNSTABLE if unstable else SMALL)

    async def story() -> None:
        topic = await new_topic(broker.address)
        async with (
            Producer(bootstrap_servers=broker.address, transactional_id=topic) as older,
            producer_of(broker.address, topic) as newer,
        ):
            await older.begin_transaction()
            await older.send(topic, b"a")
            for keep in (True, False):
                with pytest.raises((UnsupportedByBroker, Refused)) as said:
                    await newer.init_transactions(keep_prepared=keep)
                if unstable:
                    assert isinstance(said.value, Refused)
                    assert said.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                    assert "transaction.two.phase.commit.enable" in str(said.value)
                else:
                    assert isinstance(said.value, UnsupportedByBroker)
                    assert "unstable.api.versions.enable" in str(said.value)
            # It was not fenced.
            await older.commit_transaction()
            await until_seen(broker.address, topic, [b"a"])

    told(broker, story())


def test_the_blocking_producer_has_it_too(broker: OurBroker) -> None:
    topic = asyncio.run(new_topic(broker.address))
    settings = {"transactional.id": topic, "transaction.two.phase.commit.enable": True}
    with BlockingProducer(settings, bootstrap_servers=broker.address) as producer:
        with producer.transaction() as transaction:
            producer.send(topic, b"a")
            mine = transaction.prepare()
        assert asyncio.run(values(broker.address, topic)) == []
        producer.complete_transaction(mine)
        producer.begin_transaction()
        producer.send(topic, b"b")
        stored = producer.prepare_transaction()
    with BlockingProducer(settings, bootstrap_servers=broker.address) as successor:
        assert successor.init_transactions(keep_prepared=True) == stored
        successor.complete_transaction(str(stored))
    asyncio.run(until_seen(broker.address, topic, [b"a", b"b"]))
