"""Meaning of each error code for a transaction."""

import pytest

from barnabas.client.producer.transaction_errors import (
    Verdict,
    verdict_of_end,
    verdict_within,
    verdict_without_coordinator,
)
from barnabas.protocol.error_codes import ErrorCode

NOT_RETRIABLE = [code for code in ErrorCode if not code.retriable and code is not ErrorCode.NONE]


def test_a_fencing_code_is_final_in_version_1_and_requires_an_abort_in_version_2() -> None:
    for code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH):
        assert verdict_within(code, is_v2=False) is Verdict.FENCED
        assert verdict_within(code, is_v2=True) is Verdict.ABORT
        for commit in (True, False):
            assert verdict_of_end(code, commit=commit, is_sure=True) is Verdict.FENCED


def test_an_unexpected_code_requires_an_abort() -> None:
    for is_v2 in (True, False):
        assert verdict_within(ErrorCode.UNKNOWN_SERVER_ERROR, is_v2=is_v2) is Verdict.ABORT


@pytest.mark.parametrize("commit", [True, False])
def test_an_unexpected_code_of_end_txn_leaves_the_outcome_unknown(commit: bool) -> None:
    assert verdict_of_end(ErrorCode.UNKNOWN_SERVER_ERROR, commit=commit, is_sure=True) is Verdict.UNKNOWN


def test_a_transaction_that_has_ended_cannot_be_committed() -> None:
    code = ErrorCode.INVALID_TXN_STATE
    assert verdict_of_end(code, commit=True, is_sure=True) is Verdict.ABORT
    assert verdict_of_end(code, commit=False, is_sure=True) is Verdict.BROKEN
    # The coordinator never confirmed the transaction.
    assert verdict_of_end(code, commit=False, is_sure=False) is Verdict.DONE


@pytest.mark.parametrize("code", NOT_RETRIABLE, ids=lambda code: code.name)
def test_without_a_coordinator_the_outcome_is_unknown(code: ErrorCode) -> None:
    assert verdict_without_coordinator(code) in (Verdict.UNKNOWN, Verdict.BROKEN)


def test_authorization_errors_of_end_txn_break_the_producer() -> None:
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert verdict_without_coordinator(code) is Verdict.BROKEN
    assert verdict_within(code, is_v2=True) is Verdict.BROKEN
    assert verdict_of_end(code, commit=True, is_sure=True) is Verdict.BROKEN
