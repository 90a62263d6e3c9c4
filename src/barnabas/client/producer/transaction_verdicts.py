"""Maps error codes of the coordinator to consequences for a transaction. Pure.

Retriable codes are not handled here: the request is repeated until the deadline. A code in no set means that
the transaction must be aborted; if the producer is unusable, the abort fails. For EndTxn such a code means
that the outcome is unknown.
"""

from enum import Enum
from typing import Final

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode


class Verdict(Enum):
    ABORT = "the transaction can only be aborted"
    FORGOTTEN = "the coordinator no longer knows the producer: there is nothing to abort"
    FENCED = "another producer uses the id"
    BROKEN = "the producer is unusable"
    # Only for EndTxn.
    DONE = "there is nothing to abort"
    UNKNOWN = "the outcome is unknown"


FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_FORGOTTEN: Final = frozenset({ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_PRODUCER_ID})
# A repeated commit that had succeeded returns NONE. INVALID_TXN_STATE: aborted after its timeout.
_NOT_COMMITTED: Final = frozenset({ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE})
_BROKEN: Final = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)


def verdict_within(code: ErrorCode, *, is_v2: bool) -> Verdict:
    """For requests that add to a transaction, and for Produce."""
    if code in FENCED:
        # A transaction that timed out has the same code. In version 2 EndTxn tells the two apart, and the
        # producer can continue; in version 1 it cannot.
        return Verdict.ABORT if is_v2 else Verdict.FENCED
    if code in _FORGOTTEN:
        return Verdict.FORGOTTEN
    if code in _BROKEN:
        return Verdict.BROKEN
    return Verdict.ABORT


def verdict_without_coordinator(code: ErrorCode) -> Verdict:
    """For EndTxn if FindCoordinator failed."""
    return Verdict.BROKEN if code in _BROKEN else Verdict.UNKNOWN


def verdict_of_end(code: ErrorCode, *, commit: bool, is_sure: bool) -> Verdict:
    """For EndTxn. `is_sure`: the coordinator has confirmed that the transaction exists."""
    if code in FENCED:
        return Verdict.FENCED
    if code in _FORGOTTEN:
        return Verdict.FORGOTTEN
    if code is ErrorCode.INVALID_TXN_STATE and not commit and not is_sure:
        # The request that would have begun the transaction never reached the coordinator.
        return Verdict.DONE
    if commit and code in _NOT_COMMITTED:
        return Verdict.ABORT
    if code in _BROKEN or code is ErrorCode.INVALID_TXN_STATE:
        return Verdict.BROKEN
    return Verdict.UNKNOWN


# Last versions of these requests that use version 1 of transactions; later ones use version 2.
V1_UNTIL: Final = {ApiKey.PRODUCE: 11, ApiKey.END_TXN: 4, ApiKey.TXN_OFFSET_COMMIT: 4}
# Last version for clients; later ones are for brokers.
ADD_PARTITIONS_UNTIL: Final = 3
