"""Transactions of our producer when requests and answers get lost, late, or are refused for a while.

The broker is a script that keeps transactions by Kafka's rules: see support/txn/worlds.py.
"""

import asyncio

import pyarrow as pa
import pytest

from barnabas.client.errors import Refused
from barnabas.client.producer.errors import BufferFull
from barnabas.client.producer.producer import Producer
from barnabas.client.producer.transaction_errors import (
    MustAbort,
    NoTransaction,
    NotTransactional,
    OutcomeUnknown,
    ProducerFenced,
    TransactionAborted,
    TransactionOpen,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.our_client.worlds import ORDERS, Refuse, Take, Wait, producing
from support.txn.worlds import (
    BOTH,
    FIRST_ID,
    Do,
    Doing,
    DoLater,
    DoSilently,
    Lose,
    Say,
    TransactionalBrokers,
    tell,
    transact,
    transacting,
)

IN_V1 = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.PRODUCE,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
)
IN_V2 = tuple(key for key in IN_V1 if key not in (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN))
EACH = [(1, key) for key in IN_V1] + [(2, key) for key in IN_V2]
each_request = pytest.mark.parametrize(("version", "key"), EACH, ids=[f"{v}-{key.name}" for v, key in EACH])


# The usual


@BOTH
def test_records_and_offsets_are_committed_together(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await transact(producer, b"a", b"b", offset=7)
            await transact(producer, b"c", offset=8)

    brokers = tell(story, version)

    assert brokers.values() == [b"a", b"b", b"c"]
    assert brokers.offsets == {("billing", ORDERS): 8}
    assert set(brokers.requests()) == set(IN_V1 if version == 1 else IN_V2)


@BOTH
def test_an_error_in_the_block_aborts_and_the_producer_continues(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            await (await producer.send("orders", b"a"))
            await producer.send_offsets_to_transaction({ORDERS: 3}, "billing")
            unsent = await producer.send("orders", b"b")
            await producer.abort_transaction()
            assert isinstance(unsent.exception(), TransactionAborted)
            with pytest.raises(KeyError):
                await failing(producer)
            await transact(producer, b"c")

    async def failing(producer: Producer) -> None:
        async with producer.transaction():
            await (await producer.send("orders", b"d"))
            raise KeyError

    brokers = tell(story, version)
    assert brokers.values() == [b"c"]
    assert brokers.offsets == {}


@pytest.mark.parametrize("offset", [-1, 1 << 63])
def test_an_invalid_offset_is_not_sent(offset: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            with pytest.raises(ValueError, match=f"offset {offset} of orders-0"):
                await producer.send_offsets_to_transaction({ORDERS: offset}, "billing")
            await producer.send_offsets_to_transaction({ORDERS: 3}, "billing")
            await producer.commit_transaction()

    assert tell(story, 2).offsets == {("billing", ORDERS): 3}


@pytest.mark.parametrize("commit", [True, False])
def test_a_block_may_end_its_transaction_itself(commit: bool) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            async with producer.transaction():
                await (await producer.send("orders", b"a"))
                await (producer.commit_transaction if commit else producer.abort_transaction)()
            with pytest.raises(KeyError):
                await ended_and_failing(producer)
            await transact(producer, b"b")

    async def ended_and_failing(producer: Producer) -> None:
        async with producer.transaction():
            await producer.commit_transaction()
            raise KeyError

    assert tell(story).values() == ([b"a", b"b"] if commit else [b"b"])


def test_a_transaction_without_anything_asks_for_nothing() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await transact(producer)

    assert ApiKey.END_TXN not in tell(story).requests()


def test_the_epoch_of_the_answer_is_that_of_the_next_transaction() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        brokers.epoch_max = 2
        async with transacting(world) as producer:
            for number in range(5):
                await transact(producer, b"%d" % number)
        seen = [(each.header.producer_id, each.header.producer_epoch) for each in brokers.arrivals]
        assert seen == [(FIRST_ID, 0), (FIRST_ID, 1), (FIRST_ID, 2), (FIRST_ID + 1, 0), (FIRST_ID + 1, 1)]
        assert {each.header.base_sequence for each in brokers.arrivals} == {0}

    assert tell(story).values() == [b"0", b"1", b"2", b"3", b"4"]


def test_outside_of_a_transaction_nothing_is_taken() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            with pytest.raises(NoTransaction):
                await producer.send("orders", b"a")
            with pytest.raises(NoTransaction):
                producer.try_send("orders", b"a")
            with pytest.raises(NoTransaction):
                await producer.commit_transaction()
            await producer.begin_transaction()
            with pytest.raises(TransactionOpen):
                await producer.begin_transaction()
            await producer.abort_transaction()
            with pytest.raises(NoTransaction):
                await producer.abort_transaction()
        async with producing(world) as plain:
            with pytest.raises(NotTransactional):
                await plain.begin_transaction()

    assert tell(story).arrivals == []


@BOTH
def test_a_batch_that_is_too_large_is_split_within_the_transaction(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        brokers.script = lambda arrival: (
            Refuse(ErrorCode.MESSAGE_TOO_LARGE) if len(arrival.values) > 1 else Take()
        )
        async with transacting(world, linger_ms=10, delivery_timeout_ms=31_000) as producer:
            await transact(producer, b"a", b"b", b"c", b"d", b"e")

    assert tell(story, version).values() == [b"a", b"b", b"c", b"d", b"e"]


@BOTH
def test_tables_go_with_the_transaction(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world, delivery_timeout_ms=31_000) as producer:
            async with producer.transaction():
                await producer.send_table("orders", pa.table({"value": [b"a", b"b"], "partition": [0, 1]}))
            with pytest.raises(NoTransaction):
                await producer.send_table("orders", pa.table({"value": [b"c"]}))

    assert tell(story, version).values() == [b"a", b"b"]


def test_a_part_of_a_table_is_not_committed() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        table = pa.table({"value": [b"a" * 600, b"b" * 600], "partition": [0, 1]})
        async with transacting(world, buffer_memory=1_000, max_block_ms=1_000) as producer:
            await producer.begin_transaction()
            brokers.script = lambda arrival: Wait(5.0)
            with pytest.raises(BufferFull):
                await producer.send_table("orders", table)
            with pytest.raises(MustAbort):
                await producer.commit_transaction()
            await producer.abort_transaction()
            brokers.script = lambda arrival: Take()
            # Whoever is cancelled has also sent a part at most.
            await producer.begin_transaction()
            brokers.script = lambda arrival: Wait(0.5)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(producer.send_table("orders", table), 0.3)
            with pytest.raises(MustAbort):
                await producer.commit_transaction()
            await producer.abort_transaction()

    assert tell(story).values() == []


# Lost requests and answers


@each_request
@pytest.mark.parametrize(
    "doing", [Lose(), DoSilently(), DoSilently(stalls=True)], ids=["lost", "unanswered", "silence"]
)
@pytest.mark.parametrize("times", [1, 3])
def test_lost_requests_and_responses_are_retried_with_one_effect(
    version: int, key: ApiKey, doing: Doing, times: int
) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world, max_block_ms=300_000, request_timeout_ms=5_000) as producer:
            brokers.on(key, *[doing] * times)
            await transact(producer, b"a", b"b", offset=1)
            brokers.on(key, Do(), doing)
            await transact(producer, b"c", b"d", offset=2)
            await transact(producer, b"e", offset=3)

    brokers = tell(story, version)
    assert brokers.values() == [b"a", b"b", b"c", b"d", b"e"]
    assert brokers.offsets == {("billing", ORDERS): 3}


@each_request
def test_an_abort_with_lost_messages_leaves_no_visible_record(version: int, key: ApiKey) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world, max_block_ms=300_000, request_timeout_ms=5_000) as producer:
            brokers.on(key, DoSilently(), Lose())
            await producer.begin_transaction()
            await producer.send("orders", b"a")
            await asyncio.sleep(0.01)
            await producer.abort_transaction()
            await transact(producer, b"b", offset=1)

    assert tell(story, version).values() == [b"b"]


@each_request
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
def test_temporary_refusals_are_retried(version: int, key: ApiKey, code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        refusals = iter([True, True])
        brokers.script = lambda arrival: (
            Refuse(code) if key is ApiKey.PRODUCE and next(refusals, False) else Take()
        )
        brokers.on(key, Say(code), Say(code))
        async with transacting(world) as producer:
            await transact(producer, b"a", b"b", offset=1)

    assert tell(story, version).values() == [b"a", b"b"]


@BOTH
def test_a_commit_without_an_answer_is_asked_again_by_the_next_call(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world, max_block_ms=3_000, request_timeout_ms=1_000) as producer:
            await producer.begin_transaction()
            await producer.send("orders", b"a")
            brokers.on(ApiKey.END_TXN, DoSilently(), *[Lose()] * 50)
            with pytest.raises(OutcomeUnknown) as unknown:
                await producer.commit_transaction()
            assert unknown.value.commit
            with pytest.raises(NoTransaction):
                await producer.send("orders", b"b")
            # It may have been committed, so it can not be aborted.
            with pytest.raises(NoTransaction):
                await producer.abort_transaction()
            brokers.doings.clear()
            await producer.commit_transaction()
            await transact(producer, b"c")

    assert tell(story, version).values() == [b"a", b"c"]


@BOTH
def test_the_next_transaction_first_resolves_the_outcome_of_the_last(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world, max_block_ms=3_000, request_timeout_ms=1_000) as producer:
            brokers.on(ApiKey.END_TXN, *[Lose()] * 50)
            with pytest.raises(OutcomeUnknown):
                await transact(producer, b"a")
            with pytest.raises(OutcomeUnknown):
                await producer.begin_transaction()
            brokers.doings.clear()
            await transact(producer, b"b")

    assert tell(story, version).values() == [b"a", b"b"]


@pytest.mark.parametrize("unanswered", [True, False])
def test_fenced_after_a_commit_without_an_answer_is_in_doubt(unanswered: bool) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            await producer.send("orders", b"a")
            await producer.flush()
            first: Doing = DoSilently() if unanswered else Say(ErrorCode.CONCURRENT_TRANSACTIONS)
            brokers.on(ApiKey.END_TXN, first, Say(ErrorCode.PRODUCER_FENCED))
            with pytest.raises(ProducerFenced) as fenced:
                await producer.commit_transaction()
            assert fenced.value.in_doubt == unanswered
            assert ("is unknown" in str(fenced.value)) == unanswered

    tell(story)


def test_an_unavailable_broker_fails_the_call_at_its_timeout() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        brokers.on(ApiKey.FIND_COORDINATOR, *[Say(ErrorCode.COORDINATOR_NOT_AVAILABLE)] * 1_000)
        async with transacting(world, max_block_ms=2_000) as producer:
            began = world.clock.monotonic_ms()
            with pytest.raises(Refused, match="COORDINATOR_NOT_AVAILABLE"):
                await producer.begin_transaction()
            assert world.clock.monotonic_ms() - began <= 2_100
            brokers.doings.clear()
            await transact(producer, b"a")

    assert tell(story).values() == [b"a"]


def test_a_transaction_unknown_to_the_coordinator_is_aborted_locally() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            brokers.on(ApiKey.ADD_PARTITIONS_TO_TXN, *[Lose()] * 100)
            await producer.send("orders", b"a")
            await asyncio.sleep(1)
            await producer.abort_transaction()
            brokers.doings.clear()
            # Perhaps it will be reached yet: then under an epoch that is over.
            assert brokers.epoch == 1
            await transact(producer, b"b")

    assert tell(story, version=1).values() == [b"b"]


# Order


def test_commit_waits_for_all_that_was_sent() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        brokers.script = lambda arrival: Wait(2.0)
        async with transacting(world) as producer:
            await transact(producer, b"a", b"b")

    brokers = tell(story)
    assert brokers.requests()[-2:] == [ApiKey.PRODUCE, ApiKey.END_TXN]
    assert brokers.values() == [b"a", b"b"]


@BOTH
def test_abort_waits_for_requests_in_flight(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        answered = []
        async with transacting(world) as producer:
            await producer.begin_transaction()
            brokers.script = lambda arrival: Wait(2.0)
            delivery = await producer.send("orders", b"a")
            delivery.add_done_callback(lambda _: answered.append(ApiKey.END_TXN in brokers.requests()))
            while not brokers.arrivals:
                await asyncio.sleep(0.1)
            await producer.abort_transaction()
            assert answered == [False]
            assert delivery.exception() is None

    assert tell(story, version).values() == []


def test_a_partition_is_added_before_its_first_batch_goes() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            brokers.on(ApiKey.ADD_PARTITIONS_TO_TXN, DoLater(1.0))
            await transact(producer, b"a", b"b", b"c")
        assert {each.version for each in brokers.arrivals} == {11}

    brokers = tell(story, version=1)
    assert brokers.values() == [b"a", b"b", b"c"]
    assert brokers.requests().index(ApiKey.ADD_PARTITIONS_TO_TXN) < brokers.requests().index(ApiKey.PRODUCE)


def test_a_send_waiting_for_buffer_space_does_not_join_the_next_transaction() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world, buffer_memory=500, max_block_ms=60_000) as producer:
            await producer.begin_transaction()
            brokers.script = lambda arrival: Wait(2.0)
            await producer.send("orders", b"a" * 300)
            late = asyncio.ensure_future(producer.send("orders", b"b" * 300))
            await asyncio.sleep(0.1)
            brokers.script = lambda arrival: Take()
            await producer.commit_transaction()
            await producer.begin_transaction()
            with pytest.raises(NoTransaction):
                await late
            await producer.commit_transaction()

    assert tell(story).values() == [b"a" * 300]


def test_a_send_that_finds_no_room_must_not_be_forgotten() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world, buffer_memory=500, max_block_ms=1_000) as producer:
            await producer.begin_transaction()
            brokers.script = lambda arrival: Wait(5.0)
            await producer.send("orders", b"a" * 300)
            with pytest.raises(BufferFull):
                await producer.send("orders", b"b" * 300)
            with pytest.raises(MustAbort) as trouble:
                await producer.commit_transaction()
            assert isinstance(trouble.value.because, BufferFull)
            await producer.abort_transaction()

    assert tell(story).values() == []


def test_closing_a_producer_aborts_its_open_transaction() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            await (await producer.send("orders", b"a"))

    brokers = tell(story)
    assert (brokers.state, brokers.values()) == ("CompleteAbort", [])


def test_closing_ends_without_a_reachable_broker() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world, max_block_ms=5_000) as producer:
            await producer.begin_transaction()
            await (await producer.send("orders", b"a"))
            brokers.on(ApiKey.END_TXN, *[Lose()] * 1_000)
            began = world.clock.monotonic_ms()
        assert world.clock.monotonic_ms() - began <= 6_000

    assert tell(story).state == "Ongoing"
