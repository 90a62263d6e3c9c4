"""Transactions that several producers write into: opened by one, joined by others, ended by anybody."""

import pytest

from barnabas.client.producer.producer import Producer
from barnabas.client.producer.transaction import OpenTransaction
from barnabas.client.producer.transaction_errors import MustAbort, NoTransaction, TransactionError
from barnabas.protocol.api_keys import ApiKey
from barnabas.sim.world import World
from support.our_client.admin_worlds import new_admin
from support.our_client.worlds import ORDERS, producer_of
from support.txn.worlds import BOTH, FIRST_ID, OURS, TransactionalBrokers, tell, transact, transacting

COMMIT_OR_ABORT = pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])


def one_of_several(world: World) -> Producer:
    """With others beside it, so what it leaves behind is not looked at."""
    return producer_of(world, transactional_id=OURS, linger_ms=0)


async def opened_for_others(world: World) -> OpenTransaction:
    async with transacting(world) as producer:
        return await producer.open_transaction_for_others()


async def end(world: World, *opened: OpenTransaction, commit: bool = True) -> None:
    async with new_admin(world) as admin:
        await admin.end_transactions(opened, commit=commit)


async def write(producer: Producer, opened: OpenTransaction, partition: int, *values: bytes) -> None:
    await producer.join_transaction(opened)
    for value in values:
        await producer.send("orders", value, partition=partition)
    assert await producer.hand_over_transaction() == opened


@BOTH
@COMMIT_OR_ABORT
def test_records_of_all_writers_become_visible_together_or_never(version: int, commit: bool) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await opened_for_others(world)
        async with one_of_several(world) as one, one_of_several(world) as other:
            await write(one, opened, 0, b"a", b"b")
            await write(other, opened, 1, b"c")
        # Whoever has handed it over and closed has not ended it.
        assert (brokers.state, brokers.values()) == ("Ongoing", [])

        await end(world, opened, opened, commit=commit)

        async with transacting(world) as next_one:
            await transact(next_one, b"d", b"e")

    brokers = tell(story, version)
    assert brokers.values() == ([b"a", b"b", b"c"] if commit else []) + [b"d", b"e"]


@BOTH
def test_a_joined_producer_may_send_offsets_and_end_the_transaction(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await opened_for_others(world)
        async with transacting(world) as writer:
            await write(writer, opened, 0, b"a")
        async with transacting(world) as driver:
            await driver.join_transaction(opened)
            await driver.send_offsets_to_transaction({ORDERS: 7}, "batches")
            assert (brokers.values(), brokers.offsets) == ([], {})

            await driver.commit_transaction()

            assert brokers.offsets == {("batches", ORDERS): 7}
            # The partition has sequences of the writer under the epoch that was joined.
            await transact(driver, b"b")

    brokers = tell(story, version)
    assert brokers.values() == [b"a", b"b"]
    assert {each.header.base_sequence for each in brokers.arrivals} == {0}
    assert len({each.header.producer_epoch for each in brokers.arrivals}) == 2


@BOTH
def test_a_joined_producer_commits_records_of_others(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await opened_for_others(world)
        async with one_of_several(world) as writer, one_of_several(world) as driver:
            await write(writer, opened, 0, b"a")
            await driver.join_transaction(opened)
            await driver.commit_transaction()

    assert tell(story, version).values() == [b"a"]


@BOTH
def test_closing_a_joined_producer_aborts_the_transaction_for_all(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await opened_for_others(world)
        async with one_of_several(world) as one:
            await one.join_transaction(opened)
            await (await one.send("orders", b"a", partition=0))
            async with one_of_several(world) as other:
                await other.join_transaction(opened)
                await (await other.send("orders", b"b", partition=1))
            with pytest.raises(TransactionError):
                await one.commit_transaction()

    assert tell(story, version).values() == []


@BOTH
def test_a_transaction_opened_for_others_has_an_unused_epoch(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await transact(producer, b"a", b"b")
            opened = await producer.open_transaction_for_others()
        assert opened == OpenTransaction(OURS, FIRST_ID, 1)
        async with transacting(world) as other:
            # The same numbers as those of `a`, which the leader would take for it.
            await write(other, opened, 0, b"c")
        await end(world, opened)

    brokers = tell(story, version)
    assert brokers.values() == [b"a", b"b", b"c"]
    assert brokers.requests().count(ApiKey.INIT_PRODUCER_ID) == (2 if version == 1 else 1)


@BOTH
def test_one_with_nothing_in_it_can_be_joined_and_aborted(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await opened_for_others(world)
        async with transacting(world) as producer:
            await producer.join_transaction(opened)
            await producer.abort_transaction()
            await transact(producer, b"a")

    assert tell(story, version).values() == [b"a"]


# Bad input


@BOTH
def test_an_epoch_that_is_gone_takes_nothing(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await opened_for_others(world)
        async with one_of_several(world) as newer:
            await newer.init_transactions()
            async with one_of_several(world) as late:
                await late.join_transaction(opened)
                await late.send("orders", b"late")
                with pytest.raises(TransactionError):
                    await late.hand_over_transaction()
            await transact(newer, b"new")

    assert tell(story, version).values() == [b"new"]


def test_a_transaction_that_was_ended_takes_nothing() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await opened_for_others(world)
        async with one_of_several(world) as one, one_of_several(world) as late:
            await late.join_transaction(opened)
            await write(one, opened, 0, b"a")
            await end(world, opened)
            await late.send("orders", b"late", partition=1)
            with pytest.raises(MustAbort):
                await late.hand_over_transaction()

    assert tell(story).values() == [b"a"]


def test_only_the_transaction_of_the_same_id_is_joined() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            with pytest.raises(ValueError, match=f"transaction of another .*transactional.id {OURS}"):
                await producer.join_transaction(OpenTransaction("another", FIRST_ID, 0))
            for nobody in (OpenTransaction(OURS, -1, 0), OpenTransaction(OURS, FIRST_ID, -1)):
                with pytest.raises(ValueError, match="invalid producer id or epoch"):
                    await producer.join_transaction(nobody)
            await transact(producer, b"a")

    assert tell(story).values() == [b"a"]


def test_a_producer_that_was_initialised_joins_nothing() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = OpenTransaction(OURS, FIRST_ID, 0)
        async with transacting(world) as producer:
            await producer.init_transactions()
            with pytest.raises(NoTransaction, match="is already initialized"):
                await producer.join_transaction(opened)
            await producer.begin_transaction()
            with pytest.raises(NoTransaction, match="is open"):
                await producer.join_transaction(opened)

    tell(story)
