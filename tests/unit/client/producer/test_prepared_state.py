"""What a producer may do with a transaction that is prepared: complete it, commit it or abort it."""

from collections.abc import Callable

import pytest

from barnabas.client.errors import refused
from barnabas.client.producer.stamp import Identity
from barnabas.client.producer.transaction import NOTHING_PREPARED, PreparedTransaction
from barnabas.client.producer.transaction_errors import MustAbort, NoTransaction, TransactionOpen
from barnabas.client.producer.transaction_state import Phase, TransactionState
from barnabas.protocol.error_codes import ErrorCode

MINE = PreparedTransaction(7, 0)
OTHER = PreparedTransaction(7, 1)


def ready() -> TransactionState:
    state = TransactionState("orders-1", timeout_ms=1_000)
    state.initialized(Identity(7, 0))
    return state


def prepared() -> TransactionState:
    state = ready()
    state.begin(100, is_v2=True)
    state.may_exist = True
    state.flush("prepare")
    state.prepare()
    return state


def kept() -> TransactionState:
    """Prepared by a predecessor and kept by this producer."""
    state = TransactionState("orders-1", timeout_ms=1_000)
    state.initialized(Identity(7, 1))
    state.adopt_prepared(MINE, 100)
    return state


BOTH = pytest.mark.parametrize("made", [prepared, kept])
Made = Callable[[], TransactionState]


@BOTH
def test_a_prepared_transaction_has_producer_id_and_epoch_of_its_records(made: Made) -> None:
    assert made().prepared == MINE


@BOTH
def test_a_prepared_transaction_accepts_no_records(made: Made) -> None:
    state = made()

    assert not state.may_send
    for call in (
        lambda: state.check("send()"),
        lambda: state.flush("prepare"),
    ):
        with pytest.raises(NoTransaction, match="is prepared"):
            call()
    with pytest.raises(TransactionOpen):
        state.begin(200, is_v2=True)


@BOTH
def test_a_prepared_transaction_is_not_ended_implicitly(made: Made) -> None:
    assert not made().is_unended


@BOTH
def test_complete_commits_the_stored_transaction_and_aborts_any_other(made: Made) -> None:
    assert made().decides_commit(MINE)
    assert not made().decides_commit(OTHER)
    assert not made().decides_commit(NOTHING_PREPARED)


@BOTH
def test_a_prepared_transaction_is_committed_or_aborted_without_another_flush(made: Made) -> None:
    for end in (TransactionState.commit, TransactionState.abort):
        state = made()
        end(state)
        state.ended(Identity(7, 2))

        assert (state.phase, state.identity, state.prepared) == (
            Phase.READY,
            Identity(7, 2),
            NOTHING_PREPARED,
        )


@BOTH
def test_ending_a_prepared_transaction_needs_end_txn(made: Made) -> None:
    state = made()

    assert state.may_exist
    assert state.is_v2


def test_after_an_unknown_outcome_only_the_same_call_is_allowed() -> None:
    state = prepared()
    state.commit()
    assert state.decides_commit(MINE)
    with pytest.raises(NoTransaction):
        state.decides_commit(OTHER)

    state = prepared()
    state.abort()
    assert not state.decides_commit(OTHER)
    with pytest.raises(NoTransaction):
        state.decides_commit(MINE)


def test_complete_needs_a_prepared_transaction() -> None:
    state = ready()
    for stored in (MINE, NOTHING_PREPARED):
        with pytest.raises(NoTransaction, match="no transaction is open"):
            state.decides_commit(stored)
    state.begin(100, is_v2=True)
    with pytest.raises(NoTransaction, match="is open"):
        state.decides_commit(MINE)
    state.flush()
    state.commit()
    with pytest.raises(NoTransaction):
        state.decides_commit(NOTHING_PREPARED)


def test_an_empty_prepared_transaction_has_no_id() -> None:
    state = ready()
    state.begin(100, is_v2=True)
    state.flush("prepare")

    assert state.prepare() is NOTHING_PREPARED
    assert state.decides_commit(NOTHING_PREPARED)
    state.commit()
    state.ended()
    state.begin(200, is_v2=True)
    state.may_exist = True
    state.flush("prepare")

    assert state.prepare() == MINE


def test_a_prepared_transaction_that_the_coordinator_ended_cannot_be_committed() -> None:
    state = prepared()
    state.commit()

    state.must_abort(refused(ErrorCode.INVALID_TXN_STATE, about="x"), 200)

    with pytest.raises(NoTransaction, match="can only be aborted"):
        state.decides_commit(MINE)
    with pytest.raises(MustAbort):
        state.check("send()")
