"""What our producer does with each refusal in a transaction: abort and go on, or give up."""

import asyncio

import pytest

from barnabas.client.errors import Refused
from barnabas.client.group.errors import CommitFailed
from barnabas.client.group.offsets import Committer
from barnabas.client.producer.errors import DeliveryTimedOut, RecordTooLarge
from barnabas.client.producer.producer import Producer
from barnabas.client.producer.transaction_errors import (
    MustAbort,
    OutcomeUnknown,
    ProducerFenced,
    Remedy,
    SequenceLost,
    TransactionAborted,
    TransactionError,
    TransactionsFailed,
    TransactionTimedOut,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.our_client.worlds import ORDERS, Arrival, Break, Reaction, Refuse, Take, TakeSilently
from support.txn.worlds import (
    BOTH,
    FIRST_ID,
    OURS,
    DoSilently,
    Say,
    TransactionalBrokers,
    tell,
    transact,
    transacting,
)

ABORTABLE = (
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
FINAL = (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
OFFSETS = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ErrorCode.INVALID_TXN_STATE,
    *ABORTABLE,
)
NOT_THE_MEMBER = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.FENCED_MEMBER_EPOCH,
)


def by_code(*codes: ErrorCode) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("code", codes, ids=lambda code: code.name)


def refuse_once(brokers: TransactionalBrokers, reaction: Reaction, value: bytes = b"a") -> None:
    left = [reaction]

    def script(arrival: Arrival) -> Reaction:
        return left.pop() if left and arrival.values[0] == value else Take()

    brokers.script = script


async def is_over(producer: Producer, kind: type[TransactionError]) -> None:
    """Whatever is asked of it, it says the same."""
    for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
        with pytest.raises(kind) as error:
            await call()
        assert error.value.remedy is Remedy.GIVE_UP
    with pytest.raises(kind):
        await producer.send("orders", b"more")


# Records


@BOTH
@by_code(*ABORTABLE, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_RECORD)
def test_a_batch_that_is_refused_makes_the_transaction_abortable(version: int, code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        refuse_once(brokers, Refuse(code))
        async with transacting(world) as producer:
            await producer.begin_transaction()
            good = await producer.send("orders", b"b", partition=1)
            await good
            bad = await producer.send("orders", b"a", partition=0)
            with pytest.raises(MustAbort) as trouble:
                await producer.commit_transaction()
            assert trouble.value.remedy is Remedy.ABORT
            assert (trouble.value.tp, trouble.value.records) == (ORDERS, 1)
            assert isinstance(trouble.value.because, Refused)
            assert trouble.value.because.code is code
            assert bad.exception() is trouble.value.because
            with pytest.raises(MustAbort):
                await producer.send("orders", b"more")
            await producer.abort_transaction()
            await transact(producer, b"c", b"d", b"e")

    assert tell(story, version).values() == [b"c", b"d", b"e"]


@BOTH
def test_in_a_block_it_is_aborted_and_said(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        refuse_once(brokers, Refuse(ErrorCode.INVALID_RECORD))
        async with transacting(world) as producer:
            with pytest.raises(TransactionAborted) as aborted:
                await transact(producer, b"a", b"b")
            assert aborted.value.remedy is Remedy.BEGIN_AGAIN
            assert isinstance(aborted.value.because, MustAbort)
            assert "1 records for orders-0" in str(aborted.value)
            await transact(producer, b"c")

    assert tell(story, version).values() == [b"c"]


@BOTH
@by_code(*FINAL)
def test_a_batch_without_transactional_authorization_is_fatal(version: int, code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        refuse_once(brokers, Refuse(code))
        async with transacting(world) as producer:
            with pytest.raises(TransactionsFailed) as failed:
                await transact(producer, b"a", b"b")
            assert isinstance(failed.value.because, Refused)
            await is_over(producer, TransactionsFailed)

    assert tell(story, version).values() == []


def test_the_abort_distinguishes_a_late_batch_from_a_fenced_producer() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world, transaction_timeout_ms=10_000) as producer:
            await producer.begin_transaction()
            await (await producer.send("orders", b"a", partition=0))
            await asyncio.sleep(11)
            brokers.abort_by_timeout()
            await producer.send("orders", b"b", partition=0)
            with pytest.raises(TransactionTimedOut) as late:
                await producer.commit_transaction()
            assert (late.value.tp, late.value.timeout_ms) == (ORDERS, 10_000)
            assert late.value.open_ms >= 11_000
            await producer.abort_transaction()
            await transact(producer, b"c")

            # The same answer to the batch, and another one to the abort.
            await producer.begin_transaction()
            brokers.epoch += 2
            await producer.send("orders", b"d", partition=0)
            with pytest.raises(MustAbort):
                await producer.commit_transaction()
            with pytest.raises(ProducerFenced):
                await producer.abort_transaction()
            await is_over(producer, ProducerFenced)

    assert tell(story).values() == [b"c"]


def test_a_commit_after_the_transaction_timeout_is_reported() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world, transaction_timeout_ms=10_000) as producer:
            await producer.begin_transaction()
            await (await producer.send("orders", b"a", partition=0))
            await asyncio.sleep(11)
            brokers.abort_by_timeout()
            with pytest.raises(TransactionTimedOut):
                await producer.commit_transaction()
            await producer.abort_transaction()
            await transact(producer, b"b")

    assert tell(story).values() == [b"b"]


@BOTH
def test_a_record_that_is_not_even_taken_counts(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            await producer.send("orders", b"a")
            with pytest.raises(RecordTooLarge):
                await producer.send("orders", b"x" * 2_000_000)
            with pytest.raises(MustAbort) as trouble:
                await producer.commit_transaction()
            assert isinstance(trouble.value.because, RecordTooLarge)
            await producer.abort_transaction()

    assert tell(story, version).values() == []


@BOTH
def test_a_record_that_takes_too_long_aborts_and_is_not_seen_later(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        brokers.script = lambda arrival: TakeSilently() if arrival.values[0] == b"a" else Take()
        async with transacting(
            world, delivery_timeout_ms=5_000, request_timeout_ms=4_000, retry_backoff_ms=10
        ) as producer:
            with pytest.raises(TransactionAborted) as aborted:
                await transact(producer, b"a", b"b")
            assert isinstance(aborted.value.because, MustAbort)
            assert isinstance(aborted.value.because.because, DeliveryTimedOut)
            await transact(producer, b"c", b"d")

    brokers = tell(story, version)
    assert brokers.values() == [b"c", b"d"]
    # In version 1 another epoch is asked for, so that a late copy of it is refused.
    assert brokers.epoch == (1 if version == 1 else 2)


@BOTH
def test_a_sequence_gap_on_the_broker_aborts_the_transaction(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            await (await producer.send("orders", b"a", partition=0))
            refuse_once(brokers, Refuse(ErrorCode.UNKNOWN_PRODUCER_ID), b"b")
            await producer.send("orders", b"b", partition=0)
            with pytest.raises(MustAbort) as trouble:
                await producer.commit_transaction()
            assert isinstance(trouble.value.because, SequenceLost)
            await producer.abort_transaction()
            await transact(producer, b"c", b"d", b"e")

    assert tell(story, version).values() == [b"c", b"d", b"e"]


def test_after_a_failed_batch_version_1_requests_the_next_epoch() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        refuse_once(brokers, Break())
        async with transacting(
            world, delivery_timeout_ms=1_000, request_timeout_ms=900, linger_ms=0
        ) as producer:
            brokers.script = lambda arrival: Break() if arrival.values[0] == b"a" else Take()
            with pytest.raises(TransactionAborted):
                await transact(producer, b"a")
            await transact(producer, b"b")

    brokers = tell(story, version=1)
    asked = [
        (body.producer_id, body.producer_epoch)
        for body in brokers.bodies
        if hasattr(body, "transaction_timeout_ms")
    ]
    assert asked == [(-1, -1), (FIRST_ID, 0)]
    assert brokers.values() == [b"b"]


# Partitions and offsets


@by_code(*ABORTABLE, ErrorCode.UNKNOWN_PRODUCER_ID)
@pytest.mark.parametrize(
    "key", [ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN], ids=lambda key: key.name
)
def test_a_partition_that_cannot_be_added_aborts_the_transaction(key: ApiKey, code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            brokers.on(key, Say(code))
            with pytest.raises((TransactionAborted, MustAbort)):
                await transact(producer, b"a", offset=1)
            await transact(producer, b"b", offset=2)

    brokers = tell(story, version=1)
    assert (brokers.values(), brokers.offsets) == ([b"b"], {("billing", ORDERS): 2})


@by_code(*FENCED)
@pytest.mark.parametrize(
    "key",
    [
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.END_TXN,
    ],
    ids=lambda key: key.name,
)
def test_a_fenced_producer_of_version_1_can_only_be_closed(key: ApiKey, code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            brokers.on(key, Say(code))
            with pytest.raises(ProducerFenced):
                await transact(producer, b"a", offset=1)
            await is_over(producer, ProducerFenced)

    assert tell(story, version=1).values() == []


@by_code(*FENCED)
def test_in_version_2_the_end_says_whether_it_is_fenced(code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            brokers.on(ApiKey.TXN_OFFSET_COMMIT, Say(code))
            with pytest.raises(MustAbort):
                await transact(producer, b"a", offset=1)
            await transact(producer, b"b", offset=2)
            brokers.on(ApiKey.TXN_OFFSET_COMMIT, Say(code))
            brokers.on(ApiKey.END_TXN, Say(code))
            with pytest.raises(ProducerFenced):
                await transact(producer, b"c", offset=3)
            await is_over(producer, ProducerFenced)

    assert tell(story).values() == [b"b"]


@BOTH
@by_code(*OFFSETS)
def test_offsets_that_are_refused_abort(version: int, code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            brokers.on(ApiKey.TXN_OFFSET_COMMIT, Say(code))
            with pytest.raises(MustAbort) as trouble:
                await transact(producer, b"a", offset=1)
            assert isinstance(trouble.value.because, Refused)
            assert trouble.value.because.code is code
            await transact(producer, b"b", offset=2)

    brokers = tell(story, version)
    assert (brokers.values(), brokers.offsets) == ([b"b"], {("billing", ORDERS): 2})


@BOTH
@by_code(*NOT_THE_MEMBER)
def test_offsets_of_a_former_member_fail_with_the_partitions(version: int, code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            brokers.on(ApiKey.TXN_OFFSET_COMMIT, Say(code))
            await producer.begin_transaction()
            with pytest.raises(MustAbort) as trouble:
                await producer.send_offsets_to_transaction({ORDERS: 1}, Committer("billing", 3, "me", "one"))
            assert isinstance(trouble.value.because, CommitFailed)
            assert trouble.value.because.tps == {ORDERS}
            await producer.abort_transaction()

    brokers = tell(story, version)
    asked = next(body for body in brokers.bodies if hasattr(body, "generation_id"))
    assert (asked.generation_id, asked.member_id, asked.group_instance_id) == (3, "me", "one")


# The end


@BOTH
@by_code(ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE)
def test_a_commit_that_is_refused_is_not_done(version: int, code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            brokers.on(ApiKey.END_TXN, Say(code))
            with pytest.raises(TransactionAborted):
                await transact(producer, b"a")
            await transact(producer, b"b")

    assert tell(story, version).values() == [b"b"]


@BOTH
@by_code(*FINAL)
@pytest.mark.parametrize("commit", [True, False])
def test_an_end_that_is_not_allowed_is_the_end_of_the_producer(
    version: int, code: ErrorCode, commit: bool
) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            await (await producer.send("orders", b"a"))
            brokers.on(ApiKey.END_TXN, Say(code))
            with pytest.raises(TransactionsFailed):
                await (producer.commit_transaction if commit else producer.abort_transaction)()
            await is_over(producer, TransactionsFailed)

    assert tell(story, version).values() == []


@BOTH
@pytest.mark.parametrize("where", [ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT], ids=lambda key: key.name)
def test_a_producer_that_the_coordinator_has_forgotten_begins_anew(version: int, where: ApiKey) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await transact(producer, b"a")
            brokers.on(where, Say(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
            ends = brokers.requests().count(ApiKey.END_TXN)
            with pytest.raises((TransactionAborted, MustAbort)):
                await transact(producer, b"b", offset=1)
            # It is not asked for an end of what it does not know.
            assert brokers.requests().count(ApiKey.END_TXN) == ends + (where is ApiKey.END_TXN)
            assert brokers.requests()[-1] is ApiKey.INIT_PRODUCER_ID
            await transact(producer, b"c")

    assert tell(story, version).values() == [b"a", b"c"]


@BOTH
def test_an_end_that_fails_for_unknown_reasons_is_asked_again(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            brokers.on(ApiKey.END_TXN, DoSilently(), Say(ErrorCode.UNKNOWN_SERVER_ERROR))
            with pytest.raises(OutcomeUnknown) as unknown:
                await transact(producer, b"a")
            assert unknown.value.remedy is Remedy.ASK_AGAIN
            await transact(producer, b"b")
            await producer.begin_transaction()
            await (await producer.send("orders", b"c"))
            brokers.on(ApiKey.END_TXN, Say(ErrorCode.UNKNOWN_SERVER_ERROR))
            with pytest.raises(OutcomeUnknown):
                await producer.abort_transaction()
            await producer.abort_transaction()
            await transact(producer, b"d")

    assert tell(story, version).values() == [b"a", b"b", b"d"]


@BOTH
@by_code(*FINAL, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
def test_an_outcome_that_cannot_be_determined_is_reported_as_in_doubt(version: int, code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            brokers.on(ApiKey.END_TXN, DoSilently(), Say(code))
            with pytest.raises(TransactionsFailed) as failed:
                await transact(producer, b"a")
            assert failed.value.in_doubt

    assert tell(story, version).values() == [b"a"]


@BOTH
def test_not_coordinator_does_not_decide_a_commit(version: int) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            await (await producer.send("orders", b"a"))
            brokers.on(ApiKey.END_TXN, DoSilently())
            brokers.on(ApiKey.FIND_COORDINATOR, Say(ErrorCode.TRANSACTION_ABORTABLE))
            with pytest.raises(OutcomeUnknown):
                await producer.commit_transaction()
            await producer.commit_transaction()

    assert tell(story, version).values() == [b"a"]


# The beginning


@by_code(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.INVALID_TRANSACTION_TIMEOUT)
def test_a_beginning_that_is_refused_may_be_tried_again(code: ErrorCode) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            brokers.on(ApiKey.INIT_PRODUCER_ID, Say(code))
            with pytest.raises(Refused) as refused:
                await producer.begin_transaction()
            assert refused.value.code is code
            assert OURS in str(refused.value)
            await transact(producer, b"a")

    assert tell(story).values() == [b"a"]
