"""What each refusal means for a transaction."""

import pytest

from barnabas.client.producer.transaction_verdicts import (
    Verdict,
    verdict_of_end,
    verdict_within,
    verdict_without_coordinator,
)
from barnabas.protocol.error_codes import ErrorCode

NOT_RETRIABLE = [code for code in ErrorCode if not code.retriable and code is not ErrorCode.NONE]


def test_who_is_fenced_in_version_1_is_at_its_end_and_in_version_2_the_abort_says() -> None:
    for code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH):
        assert verdict_within(code, is_v2=False) is Verdict.FENCED
        assert verdict_within(code, is_v2=True) is Verdict.ABORT
        for commit in (True, False):
            assert verdict_of_end(code, commit=commit, is_sure=True) is Verdict.FENCED


def test_what_nobody_has_thought_of_can_be_aborted() -> None:
    for is_v2 in (True, False):
        assert verdict_within(ErrorCode.UNKNOWN_SERVER_ERROR, is_v2=is_v2) is Verdict.ABORT


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_that_fails_for_unknown_reasons_may_have_been_done(commit: bool) -> None:
    assert verdict_of_end(ErrorCode.UNKNOWN_SERVER_ERROR, commit=commit, is_sure=True) is Verdict.UNKNOWN


def test_a_transaction_that_is_over_can_not_be_committed() -> None:
    code = ErrorCode.INVALID_TXN_STATE
    assert verdict_of_end(code, commit=True, is_sure=True) is Verdict.ABORT
    assert verdict_of_end(code, commit=False, is_sure=True) is Verdict.BROKEN
    # It was never begun, as far as anybody said.
    assert verdict_of_end(code, commit=False, is_sure=False) is Verdict.DONE


@pytest.mark.parametrize("code", NOT_RETRIABLE, ids=lambda code: code.name)
def test_only_the_coordinator_can_say_that_nothing_was_committed(code: ErrorCode) -> None:
    assert verdict_without_coordinator(code) in (Verdict.UNKNOWN, Verdict.BROKEN)


def test_without_the_right_to_it_there_is_no_end() -> None:
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert verdict_without_coordinator(code) is Verdict.BROKEN
    assert verdict_within(code, is_v2=True) is Verdict.BROKEN
    assert verdict_of_end(code, commit=True, is_sure=True) is Verdict.BROKEN
