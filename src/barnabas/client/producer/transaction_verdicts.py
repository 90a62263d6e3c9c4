"""What a refusal of the coordinator means for a transaction. Pure.

Codes that may go well later are not here: they are asked again until the deadline. What is in no set makes
the transaction abortable; if the producer can do no more, the abort says so. Of the end itself it leaves open
whether it was done.
"""

from enum import Enum
from typing import Final

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode


class Verdict(Enum):
    ABORT = "the transaction can only be aborted"
    FORGOTTEN = "it can not even be aborted: the coordinator does not know the producer any more"
    FENCED = "another producer has the id"
    BROKEN = "the producer can do no more"
    # Only of EndTxn.
    DONE = "there is nothing to abort"
    UNKNOWN = "whether it was done is not known"


FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_FORGOTTEN: Final = frozenset({ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_PRODUCER_ID})
# A commit that was done before would be answered with NONE. The first: it was aborted, it took too long.
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
    """Of a request that adds something to a transaction, and of a produce."""
    if code in FENCED:
        # A transaction that took too long is refused like that as well. In version 2 the end of it tells the
        # two apart, and the producer can go on; in version 1 it can not.
        return Verdict.ABORT if is_v2 else Verdict.FENCED
    if code in _FORGOTTEN:
        return Verdict.FORGOTTEN
    if code in _BROKEN:
        return Verdict.BROKEN
    return Verdict.ABORT


def verdict_without_coordinator(code: ErrorCode) -> Verdict:
    """Of an end that nobody could be asked for."""
    return Verdict.BROKEN if code in _BROKEN else Verdict.UNKNOWN


def verdict_of_end(code: ErrorCode, *, commit: bool, is_sure: bool) -> Verdict:
    """Of EndTxn. `is_sure`: the coordinator has said before that there is a transaction."""
    if code in FENCED:
        return Verdict.FENCED
    if code in _FORGOTTEN:
        return Verdict.FORGOTTEN
    if code is ErrorCode.INVALID_TXN_STATE and not commit and not is_sure:
        # What would have begun it was never answered, and did not reach it.
        return Verdict.DONE
    if commit and code in _NOT_COMMITTED:
        return Verdict.ABORT
    if code in _BROKEN or code is ErrorCode.INVALID_TXN_STATE:
        return Verdict.BROKEN
    return Verdict.UNKNOWN


# Up to these versions a request is one of version 1 of transactions, and from the next one on of version 2.
V1_UNTIL: Final = {ApiKey.PRODUCE: 11, ApiKey.END_TXN: 4, ApiKey.TXN_OFFSET_COMMIT: 4}
# Clients speak these; later ones are for brokers.
ADD_PARTITIONS_UNTIL: Final = 3
