"""Errors of the transaction coordinator, and its responses to producers, with the codes of their version."""

from collections.abc import Callable
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import Outcome, Refused
from barnabas.coordinators.txn.state import NO_EPOCH, NO_ID
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    EndTxnResponse,
    InitProducerIdResponse,
)

# The first versions with PRODUCER_FENCED.
_INIT_KNOWS_FENCED_FROM: Final = 4
_OTHERS_KNOW_FENCED_FROM: Final = 2
_FENCED: Final = ErrorCode.PRODUCER_FENCED
# The decision needs an unused producer id. No state has changed: repeat the call with one.
NEEDS_PRODUCER_ID: Final = Outcome()


class TxnError(Refused):
    """A refused request: Kafka's error code and a message."""


class NeedsProducerId(BarnabasError):
    """Raised within a decision, whose outcome is then NEEDS_PRODUCER_ID."""

    def __init__(self) -> None:
        super().__init__("a new producer id is required")


def init_refused(code: ErrorCode, version: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=_code_for(code, version, _INIT_KNOWS_FENCED_FROM),
        producer_id=NO_ID,
        producer_epoch=NO_EPOCH,
    )


def end_refused(code: ErrorCode, version: int) -> EndTxnResponse:
    return EndTxnResponse(error_code=_code_for(code, version, _OTHERS_KNOW_FENCED_FROM))


def offsets_answer(code: ErrorCode, version: int) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=_code_for(code, version, _OTHERS_KNOW_FENCED_FROM))


def partitions_answer(
    asked: AddPartitionsToTxnTransaction, code: ErrorCode, version: int
) -> AddPartitionsToTxnResult:
    """The same code for all partitions: they are added together or not at all."""
    supported = _code_for(code, version, _OTHERS_KNOW_FENCED_FROM)
    return AddPartitionsToTxnResult(
        transactional_id=asked.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(partition_index=one, partition_error_code=supported)
                    for one in topic.partitions
                ],
            )
            for topic in asked.topics
        ],
    )


def result_of(
    asked: AddPartitionsToTxnTransaction, code_of: Callable[[TopicPartition], ErrorCode]
) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=asked.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=one,
                        partition_error_code=code_of(TopicPartition(topic.name, one)),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in asked.topics
        ],
    )


def _code_for(code: ErrorCode, version: int, knows_fenced_from: int) -> ErrorCode:
    if code is _FENCED and version < knows_fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
