"""What a producer may do in each phase of a transaction."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.errors import refused
from barnabas.client.producer.stamp import Identity
from barnabas.client.producer.transaction_errors import (
    MustAbort,
    NoTransaction,
    ProducerFenced,
    TransactionOpen,
    TransactionTimedOut,
)
from barnabas.client.producer.transaction_state import Phase, TransactionState
from barnabas.protocol.error_codes import ErrorCode

ME = Identity(7, 0)
ORDERS = TopicPartition("orders", 0)


def ready() -> TransactionState:
    state = TransactionState("orders-1", timeout_ms=1_000)
    state.initialized(ME)
    return state


def opened(*, is_v2: bool = True) -> TransactionState:
    state = ready()
    state.begin(100, is_v2=is_v2)
    return state


def test_a_transaction_is_begun_flushed_committed_and_followed_by_the_next() -> None:
    state = opened()
    state.check("send()")

    state.flush()
    with pytest.raises(NoTransaction, match="being committed"):
        state.check("send()")
    assert state.may_send
    state.commit()
    assert not state.may_send
    state.ended(Identity(7, 1))

    assert (state.phase, state.identity, state.number) == (Phase.READY, Identity(7, 1), 1)
    state.begin(200, is_v2=True)
    assert state.number == 2


def test_begin_resets_the_state_of_the_previous_transaction() -> None:
    state = opened()
    state.partitions.add(ORDERS)
    state.groups.add("billing")
    state.may_exist = state.exists = state.in_doubt = True
    state.abort()
    state.ended()

    state.begin(200, is_v2=False)

    assert (state.partitions, state.groups) == (set(), set())
    assert (state.may_exist, state.exists, state.in_doubt) == (False, False, False)


def test_one_transaction_at_a_time() -> None:
    with pytest.raises(TransactionOpen):
        opened().begin(200, is_v2=True)


def test_a_cancelled_flush_reopens_the_transaction() -> None:
    state = opened()
    state.flush()

    state.unflush()

    assert state.phase is Phase.OPEN


def test_only_the_first_error_is_kept() -> None:
    state = opened()
    first = state.must_abort(ValueError("first"), 200, tp=ORDERS, records=3)

    second = state.must_abort(ValueError("second"), 300)

    assert second is first
    assert (first.tp, first.records) == (ORDERS, 3)
    assert "3 records for orders-0" in str(first)
    with pytest.raises(MustAbort, match="first"):
        state.check("send()")
    with pytest.raises(MustAbort):
        state.flush()


def test_an_abort_clears_the_error() -> None:
    state = opened()
    state.must_abort(ValueError("no"), 200)
    state.abort()
    state.ended(Identity(7, 1))

    state.begin(300, is_v2=True)

    state.check("send()")


@pytest.mark.parametrize(
    ("code", "at_ms", "kind"),
    [
        (ErrorCode.INVALID_PRODUCER_EPOCH, 1_100, TransactionTimedOut),
        (ErrorCode.INVALID_TXN_STATE, 1_100, TransactionTimedOut),
        (ErrorCode.INVALID_PRODUCER_EPOCH, 1_099, MustAbort),
        (ErrorCode.MESSAGE_TOO_LARGE, 1_100, MustAbort),
    ],
)
def test_a_late_transaction_that_the_broker_ended_is_reported_as_timed_out(
    code: ErrorCode, at_ms: int, kind: type[MustAbort]
) -> None:
    assert type(opened().must_abort(refused(code, about="x"), at_ms)) is kind


def test_needs_epoch_requires_a_new_epoch_before_the_next_transaction() -> None:
    state = opened(is_v2=False)
    state.needs_epoch = True
    state.abort()
    state.ended()
    assert state.phase is Phase.NEW

    state.initialized(Identity(7, 1))

    assert (state.phase, state.needs_epoch) == (Phase.READY, False)


def test_the_epoch_of_the_end_txn_response_satisfies_needs_epoch() -> None:
    state = opened()
    state.needs_epoch = True
    state.abort()

    state.ended(Identity(7, 1))

    assert state.phase is Phase.READY


def test_every_call_on_a_fenced_producer_raises_producer_fenced() -> None:
    state = opened()
    error = state.fence(500)
    assert (error.open_ms, error.in_doubt) == (400, False)

    for call in (
        lambda: state.check("send()"),
        lambda: state.begin(600, is_v2=True),
        state.abort,
        state.flush,
    ):
        with pytest.raises(ProducerFenced):
            call()


def test_an_unanswered_commit_is_in_doubt_and_an_abort_is_not() -> None:
    for commit in (True, False):
        state = opened()
        if commit:
            state.flush()
            state.commit()
        else:
            state.abort()
        state.in_doubt = True

        assert state.fence(500).in_doubt == commit
