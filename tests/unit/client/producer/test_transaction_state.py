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
    assert state.sends
    state.commit()
    assert not state.sends
    state.ended(Identity(7, 1))

    assert (state.phase, state.identity, state.number) == (Phase.READY, Identity(7, 1), 1)
    state.begin(200, is_v2=True)
    assert state.number == 2


def test_what_was_noted_of_a_transaction_is_not_of_the_next() -> None:
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


def test_who_leaves_while_it_is_flushed_has_it_open_again() -> None:
    state = opened()
    state.flush()

    state.unflush()

    assert state.phase is Phase.OPEN


def test_only_the_first_trouble_counts() -> None:
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


def test_after_the_abort_the_trouble_is_over() -> None:
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
def test_it_timed_out_if_it_was_open_too_long_and_the_broker_says_that_it_is_over(
    code: ErrorCode, at_ms: int, kind: type[MustAbort]
) -> None:
    assert type(opened().must_abort(refused(code, about="x"), at_ms)) is kind


def test_another_epoch_is_needed_before_the_next_one_if_so_noted() -> None:
    state = opened(is_v2=False)
    state.needs_epoch = True
    state.abort()
    state.ended()
    assert state.phase is Phase.NEW

    state.initialized(Identity(7, 1))

    assert (state.phase, state.needs_epoch) == (Phase.READY, False)


def test_an_epoch_that_came_with_the_answer_is_enough() -> None:
    state = opened()
    state.needs_epoch = True
    state.abort()

    state.ended(Identity(7, 1))

    assert state.phase is Phase.READY


def test_a_fenced_producer_says_so_whatever_is_asked() -> None:
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


def test_a_commit_that_was_not_answered_is_in_doubt_and_an_abort_is_not() -> None:
    for commit in (True, False):
        state = opened()
        if commit:
            state.flush()
            state.commit()
        else:
            state.abort()
        state.in_doubt = True

        assert state.fence(500).in_doubt == commit
