"""EndTxn: of clients that keep their epoch (0-4), and of those that get one for each transaction (5)."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.answers import NEEDS_PRODUCER_ID
from barnabas.coordinators.txn.ending import decide_end
from barnabas.coordinators.txn.state import TxnState
from barnabas.coordinators.txn.table import TxnSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import EndTxnRequest, EndTxnResponse
from support.txn.model import FIRST_ID, Asked, TxnWorld, codes, given_to, refused

pytestmark = pytest.mark.kernel

FIRST = FIRST_ID + 1
ORDERS = TopicPartition("orders", 0)
BOTH = pytest.mark.parametrize("commit", [True, False])


def ongoing(world: TxnWorld, *, epoch: int = 0, version: int = 5) -> tuple[int, int]:
    """A producer at this epoch, with a transaction."""
    world.init()
    world.given(world.txn()._replace(producer_epoch=epoch))
    world.add((FIRST, epoch), ORDERS, version=version)
    return FIRST, epoch


def ended(world: TxnWorld, *, commit: bool, version: int = 5, epoch: int = 0) -> tuple[int, int]:
    """The same, and it has ended, with all its markers. Returns what it had."""
    producer = ongoing(world, epoch=epoch, version=version)
    world.end(producer, commit=commit, version=version)
    world.mark_all()
    return producer


# Any client


@pytest.mark.parametrize("version", [0, 4, 5])
def test_an_unknown_transactional_id_has_no_transaction(version: int) -> None:
    assert refused(TxnWorld().end((1, 0), version=version)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("version", [0, 4, 5])
def test_an_empty_transactional_id_is_invalid(version: int) -> None:
    answer = TxnWorld().end((1, 0), version=version, transactional_id="")

    assert refused(answer) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [2, 4, 5])
def test_another_id_or_epoch_does_not_end_it(version: int) -> None:
    world = TxnWorld()
    ongoing(world, epoch=3, version=version)
    written = len(world.log)

    assert refused(world.end((FIRST + 1, 3), version=version)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    for epoch in (2, 4):
        assert refused(world.end((FIRST, epoch), version=version)) is ErrorCode.PRODUCER_FENCED
    assert len(world.log) == written


@pytest.mark.parametrize("version", [0, 1])
def test_older_clients_get_invalid_producer_epoch_instead_of_fenced(version: int) -> None:
    world = TxnWorld()
    ongoing(world, version=0)

    assert refused(world.end((FIRST, 1), version=version)) is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(("version", "commit"), [(3, True), (3, False), (5, True)])
def test_without_a_transaction_there_is_nothing_to_end(version: int, commit: bool) -> None:
    world = TxnWorld()
    producer = given_to(world.init())

    answer = world.end(producer, commit=commit, version=version)

    assert refused(answer) is ErrorCode.INVALID_TXN_STATE


# Clients that keep their epoch


@BOTH
def test_an_old_client_keeps_its_epoch(commit: bool) -> None:
    world = TxnWorld()
    producer = ongoing(world, version=3)

    assert world.end(producer, commit=commit, version=4) == EndTxnResponse()

    asked = world.desk.asked[0]
    assert (asked.producer_id, asked.producer_epoch, asked.commit) == (*producer, commit)
    assert (asked.partitions, asked.transaction_version, asked.coordinator_epoch) == ({ORDERS}, 0, 1)
    world.mark_all()
    assert world.txn().producer_epoch == 0
    assert world.txn().state is (TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT)


@BOTH
def test_a_retry_of_an_old_client_gets_the_same_response(commit: bool) -> None:
    world = TxnWorld()
    producer = ended(world, commit=commit, version=3)
    written = len(world.log)

    assert world.end(producer, commit=commit, version=3) == EndTxnResponse()
    assert refused(world.end(producer, commit=not commit, version=3)) is ErrorCode.INVALID_TXN_STATE
    assert len(world.log) == written


@BOTH
def test_an_old_client_waits_until_the_markers_are_written(commit: bool) -> None:
    world = TxnWorld()
    producer = ongoing(world, version=3)
    world.end(producer, commit=commit, version=3)

    for again in (True, False):
        answer = world.end(producer, commit=again, version=3)
        assert refused(answer) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert refused(world.end((FIRST + 1, 0), version=3)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert refused(world.end((FIRST, 1), version=3)) is ErrorCode.PRODUCER_FENCED


# An epoch for each transaction


@BOTH
def test_the_epoch_goes_up_with_every_transaction(commit: bool) -> None:
    world = TxnWorld()
    producer = ongoing(world)

    assert given_to(world.end(producer, commit=commit)) == (FIRST, 1)

    asked = world.desk.asked[0]
    assert (asked.producer_id, asked.producer_epoch, asked.commit) == (FIRST, 1, commit)
    assert asked.transaction_version == 2
    world.mark_all()
    assert (world.txn().producer_id, world.txn().producer_epoch) == (FIRST, 1)


@BOTH
def test_a_retry_gets_the_epoch_of_the_lost_response(commit: bool) -> None:
    world = TxnWorld()
    producer = ended(world, commit=commit)
    written = len(world.log)

    assert given_to(world.end(producer, commit=commit)) == (FIRST, 1)
    assert refused(world.end(producer, commit=not commit)) is ErrorCode.INVALID_TXN_STATE
    assert len(world.log) == written


@BOTH
def test_a_prepared_transaction_answers_concurrent_transactions(commit: bool) -> None:
    world = TxnWorld()
    producer = ongoing(world)
    world.end(producer, commit=commit)

    for who in (producer, (FIRST, 1), (99, 9)):
        for again in (True, False):
            assert refused(world.end(who, commit=again)) is ErrorCode.CONCURRENT_TRANSACTIONS


@BOTH
def test_a_late_end_does_not_end_the_next_transaction(commit: bool) -> None:
    world = TxnWorld()
    producer = ended(world, commit=commit)
    world.add((FIRST, 1), ORDERS, version=5)

    assert refused(world.end(producer, commit=commit)) is ErrorCode.PRODUCER_FENCED
    assert refused(world.end(producer, commit=not commit)) is ErrorCode.PRODUCER_FENCED
    assert world.txn().state is TxnState.ONGOING


@pytest.mark.parametrize("before", [None, True, False])
def test_an_abort_without_a_transaction_bumps_the_epoch(before: bool | None) -> None:
    world = TxnWorld()
    if before is None:
        given_to(world.init())
        world.given(world.txn()._replace(producer_epoch=1))
    else:
        ended(world, commit=before)
    world.tick_ms = 50
    world.desk.asked.clear()

    assert given_to(world.end((FIRST, 1), commit=False)) == (FIRST, 2)

    assert world.desk.asked == []
    assert (world.txn().state, world.txn().start_ms) == (TxnState.COMPLETE_ABORT, world.now.ms)
    assert given_to(world.end((FIRST, 1), commit=False)) == (FIRST, 2)


@BOTH
def test_a_commit_without_a_transaction_is_refused(commit: bool) -> None:
    world = TxnWorld()
    ended(world, commit=commit)

    assert refused(world.end((FIRST, 1), commit=True)) is ErrorCode.INVALID_TXN_STATE


def test_a_transaction_without_partitions_is_complete_at_once() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.add(producer, version=5)

    assert given_to(world.end(producer)) == (FIRST, 1)
    assert world.txn().state is TxnState.COMPLETE_COMMIT
    assert world.desk.asked == []


def test_a_client_may_change_from_the_old_way_to_the_new() -> None:
    world = TxnWorld()
    producer = ended(world, commit=True, version=3)
    world.desk.asked.clear()
    world.add(producer, ORDERS, version=5)

    assert given_to(world.end(producer)) == (FIRST, 1)
    assert world.desk.asked[0].transaction_version == 2


# Exhausted epochs


@BOTH
def test_the_last_epoch_is_followed_by_a_new_id(commit: bool) -> None:
    world = TxnWorld()
    producer = ongoing(world, epoch=32_766)
    request = EndTxnRequest(transactional_id="t", producer_id=FIRST, producer_epoch=32_766, committed=commit)
    assert decide_end(world.shard.table, request, 5, None, Asked(), world.now) is NEEDS_PRODUCER_ID
    assert world.txn().state is TxnState.ONGOING

    assert given_to(world.end(producer, commit=commit)) == (FIRST + 1, 0)

    asked = world.desk.asked[0]
    assert (asked.producer_id, asked.producer_epoch) == (FIRST, 32_767)
    assert world.txn().next_producer_id == FIRST + 1
    world.mark_all()
    assert (world.txn().producer_id, world.txn().producer_epoch) == (FIRST + 1, 0)
    assert world.txn().next_producer_id == -1


@BOTH
def test_a_retry_gets_the_new_id_even_after_a_restart(commit: bool) -> None:
    world = TxnWorld()
    producer = ended(world, commit=commit, epoch=32_766)
    assert given_to(world.end(producer, commit=commit)) == (FIRST + 1, 0)
    world.crash()

    assert given_to(world.end(producer, commit=commit)) == (FIRST + 1, 0)
    assert refused(world.end(producer, commit=not commit)) is ErrorCode.INVALID_TXN_STATE


def test_the_old_producer_id_cannot_end_a_newer_transaction() -> None:
    world = TxnWorld()
    producer = ended(world, commit=True, epoch=32_766)
    world.add((FIRST + 1, 0), ORDERS, version=5)

    assert refused(world.end(producer)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.txn().state is TxnState.ONGOING


def test_the_reserved_epoch_cannot_commit() -> None:
    world = TxnWorld()
    producer = ongoing(world, epoch=32_767)

    assert refused(world.end(producer)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert given_to(world.end(producer, commit=False)) == (FIRST + 1, 0)


# Levels of the cluster


def test_records_of_level_0_know_no_epochs_of_transactions() -> None:
    world = TxnWorld(TxnSettings(transaction_version=0))
    producer = ongoing(world, version=3)

    assert refused(world.end(producer)) is ErrorCode.UNSUPPORTED_VERSION
    assert world.end(producer, version=4) == EndTxnResponse()
    world.mark_all()
    assert codes(world.add(producer, ORDERS, version=3)) == [ErrorCode.NONE]
