"""DescribeTransactions and ListTransactions."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from barnabas.coordinators.decision.outcome import Now
from barnabas.coordinators.txn.state import Txn, TxnState
from barnabas.coordinators.txn.table import TxnTable
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transaction_admin import (
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponseTransactionState,
    TopicData,
)

_STATES: Final = {state.title: state for state in TxnState}
# Kafka has these states only in memory, and never lists them.
_NEVER_LISTED: Final = frozenset({"Dead", "PrepareEpochFence"})


def describe(table: TxnTable, transactional_id: str) -> DescribeTransactionsResponseTransactionState:
    if not transactional_id:
        return DescribeTransactionsResponseTransactionState(
            transactional_id=transactional_id, error_code=ErrorCode.INVALID_REQUEST
        )
    txn = table.txns.get(transactional_id)
    if txn is None:
        return DescribeTransactionsResponseTransactionState(
            transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        )
    pending = table.pending_markers.get(transactional_id)
    # Partitions that have their marker are not listed.
    partitions = sorted(txn.partitions if pending is None else pending.missing)
    return DescribeTransactionsResponseTransactionState(
        transactional_id=transactional_id,
        transaction_state=txn.state.title,
        transaction_timeout_ms=txn.timeout_ms,
        transaction_start_time_ms=txn.start_ms,
        producer_id=txn.producer_id,
        producer_epoch=txn.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=[tp.partition for tp in those])
            for topic, those in groupby(partitions, key=lambda tp: tp.topic)
        ],
    )


class TransactionFilter:
    """The filter of a ListTransactions request, except its pattern, which is matched off the loop."""

    def __init__(self, request: ListTransactionsRequest) -> None:
        names = dict.fromkeys(request.state_filters)
        self.unknown_states: Final = [
            name for name in names if name not in _STATES and name not in _NEVER_LISTED
        ]
        self._states: Final = {_STATES[name] for name in names if name in _STATES} if names else None
        self._producer_ids: Final = frozenset(request.producer_id_filters)
        self._longer_than_ms: Final = request.duration_filter

    def has(self, txn: Txn, now_ms: int) -> bool:
        if self._producer_ids and txn.producer_id not in self._producer_ids:
            return False
        if self._states is not None and txn.state not in self._states:
            return False
        # A transaction that has not started counts as old, as in Kafka.
        return self._longer_than_ms < 0 or now_ms - txn.start_ms > self._longer_than_ms


def transactions_of(
    tables: Sequence[TxnTable], wanted: TransactionFilter, now: Now
) -> Iterator[ListTransactionsResponseTransactionState | None]:
    """Yield a row of ListTransactions, or None if filtered out, for each transaction of some shards.

    Iterates over a snapshot of the transactions of each shard."""
    for table in tables:
        for transactional_id, txn in list(table.txns.items()):
            if not wanted.has(txn, now.ms):
                yield None
                continue
            yield ListTransactionsResponseTransactionState(
                transactional_id=transactional_id,
                producer_id=txn.producer_id,
                transaction_state=txn.state.title,
            )
