"""Torn transactions: what late messages do to clients of each version of the protocol.

Jepsen found that transactions as Kafka first had them can be torn by a message that is late. An EndTxn that
was sent again, because its answer did not come, may arrive for a second time when the next transaction is
open, and end that one in the middle: nothing in the request tells them apart. With an epoch for each
transaction (KIP-890) it does not count any more. See docs/concepts/transactions.md.
"""

import asyncio

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import running
from support.stories import Client, client_of, partition_of, say_goodbye, told, until
from support.txn.torn_client import TornClient, torn
from support.txn.wire import V1, V2, TxnProducer, Versions, seen

SETTINGS = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 2,
}
SEEDS = range(25)
TRANSACTIONS = 12


@told(SETTINGS)
async def test_a_late_end_commits_half_of_the_next_transaction_of_an_old_client(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    producer = await TxnProducer.of(broker, "t", V1)
    await producer.begin_and_send("orders", b"first")
    await producer.commit()

    await producer.begin_and_send("orders", b"half")
    # The first commit was sent twice, and this is its second arrival.
    assert await producer.end(True) is ErrorCode.NONE
    await producer.begin_and_send("orders", b"the other half", partition=1)
    await producer.abort()

    await until(lambda: partition_of(broker, "orders", 1).log.last_stable_offset == 2)
    assert await seen(client, "orders") == [b"first", b"half"]
    assert await seen(client, "orders", partition=1) == []


@told(SETTINGS)
async def test_the_same_message_does_nothing_to_a_client_of_version_2(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    producer = await TxnProducer.of(broker, "t", V2)
    await producer.begin_and_send("orders", b"first")
    epoch = producer.epoch
    await producer.commit()

    await producer.begin_and_send("orders", b"half")
    assert await producer.end(True, epoch=epoch) is ErrorCode.PRODUCER_FENCED
    await producer.begin_and_send("orders", b"the other half", partition=1)
    await producer.abort()

    await until(lambda: partition_of(broker, "orders", 1).log.last_stable_offset == 2)
    assert await seen(client, "orders") == [b"first"]
    assert await seen(client, "orders", partition=1) == []


def lived(seed: int, versions: Versions) -> list[str]:
    """What is torn after a life with late messages."""
    wrong: list[str] = []

    async def story(world: World) -> None:
        async with running(world, SETTINGS) as broker, client_of(broker) as client:
            await client.create("orders", partitions=2)
            writer = TornClient(broker, versions, world.dice("torn"))
            await writer.run("orders", TRANSACTIONS)
            # What is still open is aborted by whoever comes next.
            await TxnProducer.of(broker, "torn", versions)
            await asyncio.sleep(1)
            for index in range(2):
                log = partition_of(broker, "orders", index).log
                assert log.last_stable_offset == log.end_offset, "the last stable offset is stuck"
            there = {
                value
                for index in range(2)
                for value in await seen(client, "orders", partition=index)
                if value is not None
            }
            wrong.extend(torn(writer.journal, there))
            say_goodbye(broker)

    with World(seed) as world:
        world.run(story(world))
    return wrong


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_torn_for_clients_of_version_2(seed: int) -> None:
    assert lived(seed, V2) == []


def test_the_search_finds_torn_transactions_of_old_clients() -> None:
    assert any("is torn" in what for seed in SEEDS for what in lived(seed, V1))
