"""What a producer may do with a transaction that is prepared: complete it, commit it or abort it."""

from collections.abc import Callable

import pytest

from barnabas.client.errors import refused
from barnabas.client.producer.prepared import NOTHING_PREPARED, PreparedTransaction
from barnabas.client.producer.stamp import Identity
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
    """By a producer that came after the one that prepared it."""
    state = TransactionState("orders-1", timeout_ms=1_000)
    state.initialized(Identity(7, 1))
    state.keep(MINE, 100)
    return state


BOTH = pytest.mark.parametrize("made", [prepared, kept])
Made = Callable[[], TransactionState]


@BOTH
def test_it_is_named_by_the_numbers_its_records_have(made: Made) -> None:
    assert made().prepared == MINE


@BOTH
def test_nothing_more_goes_into_it(made: Made) -> None:
    state = made()

    assert not state.sends
    for call in (
        lambda: state.check("send()"),
        lambda: state.flush("prepare"),
    ):
        with pytest.raises(NoTransaction, match="is prepared"):
            call()
    with pytest.raises(TransactionOpen):
        state.begin(200, is_v2=True)


@BOTH
def test_nobody_ends_it_unasked(made: Made) -> None:
    assert not made().is_unended


@BOTH
def test_it_is_committed_if_it_is_what_was_stored_and_aborted_if_not(made: Made) -> None:
    assert made().decides_commit(MINE)
    assert not made().decides_commit(OTHER)
    assert not made().decides_commit(NOTHING_PREPARED)


@BOTH
def test_it_is_committed_without_another_flush_or_aborted(made: Made) -> None:
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
def test_the_coordinator_is_told_of_its_end(made: Made) -> None:
    state = made()

    assert state.may_exist
    assert state.is_v2


def test_who_was_not_told_asks_the_same_again_and_nothing_else() -> None:
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


def test_what_is_not_prepared_is_not_completed() -> None:
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


def test_one_with_nothing_in_it_has_no_name_because_the_next_has_the_same_numbers() -> None:
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


def test_one_that_the_coordinator_has_ended_can_not_be_committed() -> None:
    state = prepared()
    state.commit()

    state.must_abort(refused(ErrorCode.INVALID_TXN_STATE, about="x"), 200)

    with pytest.raises(NoTransaction, match="can only be aborted"):
        state.decides_commit(MINE)
    with pytest.raises(MustAbort):
        state.check("send()")
