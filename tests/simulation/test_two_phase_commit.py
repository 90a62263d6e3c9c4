"""InitProducerId version 6 on the wire: a transaction is kept over a restart of its producer. (KIP-939)"""

import asyncio

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.stories import Client, connect, told
from support.txn.wire import TxnProducer, seen

ONE_BROKER = {"transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1}
SPOKEN = {**ONE_BROKER, "unstable.api.versions.enable": "true"}
ALLOWED = {**ONE_BROKER, "transaction.two.phase.commit.enable": "true"}
# Longer than transaction.max.timeout.ms allows for others.
LONG_S = 3 * 900
UNTIL_MS = 2 * 1000 * LONG_S


async def init(client: Client, *, keep: bool = False) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id="invoices", transaction_timeout_ms=0, enable2_pc=True, keep_prepared_txn=keep
    )
    while True:
        answer: InitProducerIdResponse = await client.asked(request, 6)
        if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
            return answer
        await asyncio.sleep(0.05)


async def prepared(broker: Broker) -> TxnProducer:
    """One record is written and not decided about, and its producer is gone."""
    producer = await TxnProducer.of(broker, "invoices")
    given = await init(producer.client)
    producer.id, producer.epoch = given.producer_id, given.producer_epoch
    assert await producer.send("orders", b"one") is ErrorCode.NONE
    return producer


@told({**SPOKEN, **ALLOWED}, until_ms=UNTIL_MS)
async def test_a_prepared_transaction_has_no_timeout_and_the_next_producer_commits_it(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    before = await prepared(broker)
    await asyncio.sleep(LONG_S)
    before.client = await connect(broker)

    after = TxnProducer(await connect(broker), "invoices")
    given = await init(after.client, keep=True)

    assert (given.ongoing_txn_producer_id, given.ongoing_txn_producer_epoch) == (before.id, before.epoch)
    assert await before.end(commit=True) is ErrorCode.PRODUCER_FENCED
    after.id, after.epoch = given.producer_id, given.producer_epoch
    assert await after.end(commit=True) is ErrorCode.NONE
    assert await seen(after.client, "orders") == [b"one"]


@told({**SPOKEN, **ALLOWED}, until_ms=UNTIL_MS)
async def test_a_producer_without_keep_prepared_aborts_the_transaction(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await prepared(broker)

    after = TxnProducer(await connect(broker), "invoices")
    given = await init(after.client)

    assert (given.error_code, given.ongoing_txn_producer_id) == (ErrorCode.NONE, -1)
    after.id, after.epoch = given.producer_id, given.producer_epoch
    assert await after.send("orders", b"two") is ErrorCode.NONE
    assert await after.end(commit=True) is ErrorCode.NONE
    assert await seen(after.client, "orders") == [b"two"]


@told(ALLOWED)
async def test_version_6_is_not_spoken_unless_unstable_versions_are(
    world: World, broker: Broker, client: Client
) -> None:
    other = await connect(broker)
    other.ask(InitProducerIdRequest(transactional_id="invoices", enable2_pc=True), 6)

    assert await other.is_closed()


@told(SPOKEN)
async def test_it_is_refused_where_two_phase_commit_is_off(
    world: World, broker: Broker, client: Client
) -> None:
    await TxnProducer.of(broker, "invoices")

    assert (await init(client)).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
