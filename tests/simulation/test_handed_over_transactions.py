"""Transactions that begin in one client and end in another, when answers get lost or say no.

The broker is a script that keeps transactions by Kafka's rules: see support/txn/worlds.py.
"""

import asyncio
import pickle

import pytest

from barnabas.client.admin.end_transactions import AT_ONCE
from barnabas.client.errors import Refused
from barnabas.client.producer.transaction import OpenTransaction
from barnabas.client.producer.transaction_errors import (
    MustAbort,
    NoTransaction,
    OutcomeUnknown,
    ProducerFenced,
    Remedy,
    TransactionError,
    TransactionNotOpen,
    TransactionsFailed,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.our_client.admin_worlds import new_admin
from support.our_client.worlds import Refuse
from support.txn.worlds import (
    BOTH,
    FIRST_ID,
    OURS,
    Do,
    DoSilently,
    Lose,
    Say,
    TransactionalBrokers,
    tell,
    transact,
    transacting,
)

COMMIT_OR_ABORT = pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
FIRST = OpenTransaction(OURS, FIRST_ID, 0)


async def handed_over(world: World, *values: bytes, **settings: object) -> OpenTransaction:
    """What a producer has left open that is closed by now."""
    async with transacting(world, **settings) as producer:
        await producer.begin_transaction()
        for number, value in enumerate(values):
            await producer.send("orders", value, partition=number % 2)
        opened = await producer.hand_over_transaction()
    assert opened is not None
    return opened


async def end(world: World, *opened: OpenTransaction, commit: bool = True, **settings: object) -> None:
    async with new_admin(world, **settings) as admin:
        await admin.end_transactions(opened, commit=commit)


# Handed over, and ended


@BOTH
@COMMIT_OR_ABORT
def test_a_handed_over_transaction_is_ended_by_another_client(version: int, commit: bool) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await handed_over(world, b"a", b"b")
        # Closing has not ended it, and nothing of it can be seen.
        assert ApiKey.END_TXN not in brokers.requests()
        assert (brokers.state, brokers.values()) == ("Ongoing", [])

        await end(world, pickle.loads(pickle.dumps(opened)), commit=commit)

        async with transacting(world) as next_one:
            await transact(next_one, b"c")

    assert tell(story, version).values() == ([b"a", b"b", b"c"] if commit else [b"c"])


def test_an_open_transaction_has_a_readable_text() -> None:
    assert str(FIRST) == f"transaction of {OURS} (producer id {FIRST_ID}, epoch 0)"


@BOTH
def test_after_handing_over_a_producer_can_only_be_closed(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            async with producer.transaction():
                await producer.send("orders", b"a")
                opened = await producer.hand_over_transaction()
            assert opened == FIRST
            for call in (
                producer.init_transactions,
                producer.begin_transaction,
                producer.commit_transaction,
                producer.abort_transaction,
                producer.hand_over_transaction,
                producer.open_transaction_for_others,
                lambda: producer.join_transaction(FIRST),
                lambda: producer.send("orders", b"b"),
            ):
                with pytest.raises(NoTransaction, match="handed over"):
                    await call()
        assert brokers.state == "Ongoing"
        await end(world, FIRST)

    brokers = tell(story, version)
    assert brokers.values() == [b"a"]
    assert brokers.requests().count(ApiKey.INIT_PRODUCER_ID) == 1


@BOTH
def test_nothing_is_handed_over_if_nothing_is_in_it(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            assert await producer.hand_over_transaction() is None
            await transact(producer, b"a")

    brokers = tell(story, version)
    assert brokers.values() == [b"a"]
    assert brokers.requests().count(ApiKey.END_TXN) == 1


@BOTH
def test_a_transaction_with_a_failed_write_is_not_handed_over(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        brokers.script = lambda arrival: Refuse(ErrorCode.INVALID_RECORD)
        async with transacting(world) as producer:
            await producer.begin_transaction()
            await producer.send("orders", b"a")
            with pytest.raises(MustAbort):
                await producer.hand_over_transaction()
            await producer.abort_transaction()
        assert brokers.state != "Ongoing"

    assert tell(story, version).values() == []


def test_handing_over_that_is_cancelled_leaves_it_open_here() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        brokers.on(ApiKey.PRODUCE, DoSilently(stalls=True))
        async with transacting(world, request_timeout_ms=2_000) as producer:
            await producer.begin_transaction()
            await producer.send("orders", b"a", partition=0)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(producer.hand_over_transaction(), 1)
            await producer.send("orders", b"b", partition=0)
            await producer.commit_transaction()

    assert tell(story).values() == [b"a", b"b"]


# What may go wrong at its end


@BOTH
@COMMIT_OR_ABORT
@pytest.mark.parametrize("lost", [DoSilently(), DoSilently(stalls=True), Lose()], ids=repr)
def test_a_lost_response_is_retried_and_has_one_outcome(
    version: int, commit: bool, lost: DoSilently | Lose
) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await handed_over(world, b"a")
        brokers.on(ApiKey.END_TXN, lost, lost)

        await end(world, opened, commit=commit, request_timeout_ms=1_000)

        # Whoever asks once more hears the same.
        await end(world, opened, commit=commit)
        with pytest.raises(TransactionNotOpen):
            await end(world, opened, commit=not commit)

    assert tell(story, version).values() == ([b"a"] if commit else [])


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    ],
    ids=lambda code: code.name,
)
def test_temporary_errors_are_retried(code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await handed_over(world, b"a")
        brokers.on(ApiKey.END_TXN, Say(code), Say(code))
        brokers.on(ApiKey.FIND_COORDINATOR, Lose())
        await end(world, opened)

    assert tell(story).values() == [b"a"]


@BOTH
@COMMIT_OR_ABORT
def test_a_newer_producer_of_the_id_fences_it(version: int, commit: bool) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await handed_over(world, b"a")
        async with transacting(world) as newer:
            await newer.begin_transaction()
            await newer.send("orders", b"b", partition=0)
            await newer.flush()

            with pytest.raises(ProducerFenced, match=f"{OURS} .*epoch 0.*another producer") as fenced:
                await end(world, opened, commit=commit)

            assert fenced.value.remedy is Remedy.GIVE_UP
            assert not fenced.value.in_doubt
            assert ("exceeded its transaction.timeout.ms" in str(fenced.value)) == (version == 1)
            await newer.commit_transaction()

    assert tell(story, version).values() == [b"b"]


@BOTH
def test_a_transaction_past_its_timeout_is_not_committed(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await handed_over(world, b"a")
        brokers.abort_by_timeout()
        with pytest.raises(TransactionError) as late:
            await end(world, opened)
        # Only version 2 tells it from a newer producer.
        assert isinstance(late.value, TransactionNotOpen if version == 2 else ProducerFenced)
        assert ("by timeout" if version == 2 else "timeout.ms") in str(late.value)

    assert tell(story, version).values() == []


def test_fenced_after_a_lost_answer_it_may_have_been_committed() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await handed_over(world, b"a")
        brokers.on(ApiKey.END_TXN, DoSilently(), Say(ErrorCode.PRODUCER_FENCED))
        with pytest.raises(ProducerFenced, match="may have succeeded") as fenced:
            await end(world, opened)
        assert fenced.value.in_doubt

    assert tell(story).values() == [b"a"]


def test_without_an_answer_in_time_the_outcome_is_not_known() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await handed_over(world, b"a")
        brokers.chance = lambda key: DoSilently() if key is ApiKey.END_TXN else Do()
        began = asyncio.get_running_loop().time()
        with pytest.raises(OutcomeUnknown, match=OURS) as unknown:
            await end(world, opened, default_api_timeout_ms=3_000, request_timeout_ms=1_000)
        assert unknown.value.remedy is Remedy.ASK_AGAIN
        assert asyncio.get_running_loop().time() - began < 4
        brokers.chance = lambda key: Do()
        await end(world, opened)

    assert tell(story).values() == [b"a"]


def test_a_fatal_error_is_raised_unchanged() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await handed_over(world, b"a")
        for key in (ApiKey.END_TXN, ApiKey.FIND_COORDINATOR):
            brokers.on(key, Say(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            with pytest.raises(TransactionsFailed, match="AUTHORIZATION") as failed:
                await end(world, opened)
            assert isinstance(failed.value.because, Refused)

    assert tell(story).values() == []


def test_all_are_tried_and_the_first_error_names_the_others() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        opened = await handed_over(world, b"a")
        gone = [OpenTransaction(OURS, FIRST_ID, epoch) for epoch in range(10, 40)]
        with pytest.raises(ProducerFenced, match="epoch 10") as first:
            # Who is named twice is ended once.
            await end(world, *gone, opened, opened)
        notes = first.value.__notes__
        assert "epoch 11" in notes[0]
        assert notes[-1] == "and 9 more transactions were not ended"
        assert len([key for key in brokers.requests() if key is ApiKey.END_TXN]) == len(gone) + 1

    assert tell(story).values() == [b"a"]


def test_the_number_of_transactions_per_request_is_limited() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        many = [OpenTransaction(OURS, FIRST_ID, epoch) for epoch in range(3 * AT_ONCE)]
        brokers.chance = lambda key: DoSilently(stalls=True) if key is ApiKey.END_TXN else Do()
        ending = asyncio.ensure_future(end(world, *many, default_api_timeout_ms=2_000))

        await asyncio.sleep(1)

        assert brokers.requests().count(ApiKey.END_TXN) == AT_ONCE
        with pytest.raises(OutcomeUnknown):
            await ending

    tell(story)


def test_of_nothing_nothing_is_asked() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        await end(world)

    assert tell(story).requests() == []
