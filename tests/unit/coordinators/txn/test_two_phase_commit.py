"""Externally coordinated transactions: kept over a restart of their producer, which ends them. (KIP-939)"""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.state import TWO_PHASE_TIMEOUT_MS, TxnState
from barnabas.coordinators.txn.table import TxnSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import InitProducerIdResponse
from support.txn.model import FIRST_ID, TxnWorld, codes, given_to, refused

pytestmark = pytest.mark.kernel

FIRST = FIRST_ID + 1
ORDERS = TopicPartition("orders", 0)
ENABLED = TxnSettings(two_phase_commit=True)
WEEKS_MS = 5 * 604_800_000


def prepared(*, epoch: int = 0) -> TxnWorld:
    """A producer at this epoch has prepared its transaction, and is gone."""
    world = TxnWorld(ENABLED)
    producer_id, _ = given_to(world.init(version=6, two_phase=True))
    world.given(world.txn()._replace(producer_epoch=epoch))
    world.add((producer_id, epoch), ORDERS, version=5)
    return world


def kept(world: TxnWorld, was: tuple[int, int] = (-1, -1)) -> InitProducerIdResponse:
    return world.init(version=6, two_phase=True, keep=True, was=was)


# Who may


def test_it_is_off_unless_it_is_switched_on() -> None:
    world = TxnWorld()

    answer = world.init(version=6, two_phase=True)
    assert refused(answer) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert refused(world.init(version=6, keep=True)) is ErrorCode.UNSUPPORTED_VERSION
    assert len(world.shard) == 0


def test_it_needs_an_epoch_for_each_transaction() -> None:
    world = TxnWorld(TxnSettings(two_phase_commit=True, transaction_version=1))

    assert refused(world.init(version=6, keep=True)) is ErrorCode.UNSUPPORTED_VERSION


def test_its_transactions_have_no_timeout() -> None:
    world = TxnWorld(ENABLED)
    producer = given_to(world.init(version=6, two_phase=True, timeout_ms=0))
    world.add(producer, ORDERS, version=5)

    world.pass_time(WEEKS_MS)

    assert (world.txn().state, world.txn().timeout_ms) == (TxnState.ONGOING, TWO_PHASE_TIMEOUT_MS)


# Keeping


def test_a_restarted_producer_gets_its_ongoing_transaction() -> None:
    world = prepared(epoch=4)

    assert kept(world) == InitProducerIdResponse(
        producer_id=FIRST, producer_epoch=5, ongoing_txn_producer_id=FIRST, ongoing_txn_producer_epoch=4
    )
    assert (world.txn().state, world.txn().partitions) == (TxnState.ONGOING, {ORDERS})
    assert world.desk.asked == []


def test_without_a_transaction_nothing_is_ongoing() -> None:
    world = TxnWorld(ENABLED)

    for epoch in (0, 1):
        assert kept(world) == InitProducerIdResponse(
            producer_id=FIRST,
            producer_epoch=epoch,
            ongoing_txn_producer_id=-1,
            ongoing_txn_producer_epoch=-1,
        )


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("crashes", [True, False])
def test_a_kept_transaction_is_ended_with_the_returned_id_and_epoch(commit: bool, crashes: bool) -> None:
    world = prepared(epoch=4)
    owner = given_to(kept(world))
    if crashes:
        world.crash()

    assert given_to(world.end(owner, commit=commit)) == (FIRST, 6)

    ended = world.desk.asked[0]
    # Above the epoch of its records, and not that of any request.
    assert (ended.producer_id, ended.producer_epoch, ended.commit) == (FIRST, 5, commit)
    world.mark_all()
    assert (world.txn().producer_id, world.txn().producer_epoch) == (FIRST, 6)
    assert given_to(world.end(owner, commit=commit)) == (FIRST, 6)
    assert codes(world.add((FIRST, 6), ORDERS, version=5)) == [ErrorCode.NONE]


def test_every_restart_fences_the_one_before() -> None:
    world = prepared(epoch=4)
    first = given_to(kept(world))

    answer = kept(world)

    assert given_to(answer) == (FIRST, 6)
    assert answer.ongoing_txn_producer_epoch == 4
    assert refused(world.end(first)) is ErrorCode.PRODUCER_FENCED
    assert refused(world.end((FIRST, 4))) is ErrorCode.PRODUCER_FENCED
    assert given_to(world.end((FIRST, 6))) == (FIRST, 7)


def test_a_late_end_does_not_end_the_next_transaction() -> None:
    world = prepared(epoch=4)
    owner = given_to(kept(world))
    world.end(owner)
    world.mark_all()
    world.add((FIRST, 6), ORDERS, version=5)

    assert refused(world.end(owner)) is ErrorCode.PRODUCER_FENCED
    assert world.txn().state is TxnState.ONGOING


def test_no_partition_is_added_to_a_kept_transaction() -> None:
    world = prepared(epoch=4)
    owner = given_to(kept(world))

    assert codes(world.add(owner, ORDERS, version=5)) == [ErrorCode.INVALID_TXN_STATE]
    assert codes(world.add((FIRST, 4), ORDERS, version=5)) == [ErrorCode.PRODUCER_FENCED]
    assert refused(world.end(owner, version=4)) is ErrorCode.INVALID_TXN_STATE


def test_init_without_keep_prepared_aborts_the_transaction() -> None:
    world = prepared(epoch=4)
    owner = given_to(kept(world))

    assert refused(world.init()) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (world.desk.asked[0].producer_epoch, world.desk.asked[0].commit) == (5, False)
    world.mark_all()

    assert refused(world.end(owner)) is ErrorCode.INVALID_TXN_STATE
    assert given_to(world.init()) == (FIRST, 7)


def test_another_producer_does_not_get_the_kept_transaction() -> None:
    world = prepared(epoch=4)

    assert refused(kept(world, was=(FIRST, 3))) is ErrorCode.PRODUCER_FENCED
    assert given_to(kept(world, was=(FIRST, 4))) == (FIRST, 5)
    assert refused(kept(world, was=(FIRST, 4))) is ErrorCode.PRODUCER_FENCED


def test_while_it_is_prepared_to_end_it_is_not_kept() -> None:
    world = prepared()
    world.end((FIRST, 0))

    assert refused(kept(world)) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_kept_transaction_with_a_timeout_is_aborted_after_it() -> None:
    world = TxnWorld(ENABLED)
    producer = given_to(world.init(timeout_ms=5_000))
    world.add(producer, ORDERS, version=5)
    owner = given_to(world.init(version=6, keep=True))

    world.pass_time(10_000)
    world.mark_all()

    assert world.txn().state is TxnState.COMPLETE_ABORT
    assert refused(world.end(owner)) is ErrorCode.INVALID_TXN_STATE
    assert given_to(world.end(owner, commit=False)) == (FIRST, 2)


# Exhausted epochs


@pytest.mark.parametrize("commit", [True, False])
def test_after_the_last_epoch_it_is_kept_with_a_new_id(commit: bool) -> None:
    world = prepared(epoch=32_766)

    answer = kept(world)
    assert given_to(answer) == (FIRST + 1, 0)
    assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == (FIRST, 32_766)

    assert given_to(world.end((FIRST + 1, 0), commit=commit)) == (FIRST + 1, 1)
    ended = world.desk.asked[0]
    assert (ended.producer_id, ended.producer_epoch) == (FIRST, 32_767)
    world.mark_all()
    assert given_to(world.end((FIRST + 1, 0), commit=commit)) == (FIRST + 1, 1)


def test_the_last_epoch_that_it_is_kept_with_is_followed_by_a_new_id() -> None:
    world = prepared(epoch=4)
    kept(world)
    world.given(world.txn()._replace(next_producer_epoch=32_766))
    owner = FIRST, 32_766

    assert given_to(world.end(owner)) == (FIRST + 1, 0)
    assert world.desk.asked[0].producer_epoch == 5
    world.mark_all()

    assert given_to(world.end(owner)) == (FIRST + 1, 0)


def test_the_last_epoch_that_it_is_kept_with_may_time_out() -> None:
    world = TxnWorld(ENABLED)
    producer = given_to(world.init(timeout_ms=5_000))
    world.add(producer, ORDERS, version=5)
    world.init(version=6, keep=True)
    world.given(world.txn()._replace(next_producer_epoch=32_766))

    world.pass_time(10_000)
    world.mark_all()

    # None of the epochs that were given before counts again.
    assert (world.txn().producer_id, world.txn().producer_epoch) == (FIRST, 32_767)
    assert given_to(world.end((FIRST, 32_766), commit=False)) == (FIRST + 1, 0)
