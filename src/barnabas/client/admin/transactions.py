"""Transactions: ListTransactions at every broker, and DescribeTransactions at the coordinators.

transactions_ending.py aborts and fences, transactions_hanging.py finds hanging transactions.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.admin.call import Call, Outcome, Spoken, all_of, check, judged
from barnabas.client.admin.coordinators import TRANSACTION, ask_coordinators
from barnabas.client.errors import ClientError
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

_DURATION_FROM, _PATTERN_FROM = 1, 2
_ANY_DURATION: Final = -1


class TransactionState(StrEnum):
    """Transaction states as in responses. UNKNOWN: only known to newer brokers."""

    ONGOING = "Ongoing"
    PREPARE_ABORT = "PrepareAbort"
    PREPARE_COMMIT = "PrepareCommit"
    COMPLETE_ABORT = "CompleteAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    EMPTY = "Empty"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    UNKNOWN = "Unknown"


_STATES: Final = {state.value: state for state in TransactionState}


def state_of(text: str) -> TransactionState:
    return _STATES.get(text, TransactionState.UNKNOWN)


@value(kw_only=True)
class TransactionListing:
    """`coordinator` is the broker that listed it."""

    transactional_id: str
    producer_id: int
    state: TransactionState
    coordinator: int


@value(kw_only=True)
class TransactionDescription:
    """`partitions` are sorted. `start_time_ms` is that of the last transaction, None before the first."""

    transactional_id: str
    coordinator: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    partitions: tuple[TopicPartition, ...]


async def list_all(
    call: Call,
    *,
    states: Collection[TransactionState] = (),
    producer_ids: Collection[int] = (),
    longer_than_ms: int | None = None,
    pattern: str | None = None,
) -> dict[str, TransactionListing]:
    """List transactions, sorted by transactional id, that pass all filters."""

    def make(spoken: Spoken) -> object:
        if longer_than_ms is not None and longer_than_ms >= 0:
            spoken.needs(_DURATION_FROM, "filtering transactions by duration")
        if pattern:
            spoken.needs(_PATTERN_FROM, "filtering transactions by id pattern (KIP-1152)")
        return ListTransactionsRequest(
            state_filters=[state.value for state in states],
            producer_id_filters=list(producer_ids),
            duration_filter=_ANY_DURATION if longer_than_ms is None else longer_than_ms,
            # An empty pattern matches all, so it is not sent to older brokers.
            transactional_id_pattern=pattern or None,
        )

    async def ask(broker: int) -> Outcome[list[TransactionListing]]:
        try:
            answer: ListTransactionsResponse = await call.ask(ApiKey.LIST_TRANSACTIONS, make, broker)
            check(answer.error_code, about=f"the transactions of broker {broker}")
        except ClientError as error:
            return error
        return [_listing(entry, broker) for entry in answer.transaction_states]

    async def attempt(pending: list[int]) -> dict[int, Outcome[list[TransactionListing]]]:
        return dict(zip(pending, await asyncio.gather(*map(ask, pending)), strict=True))

    brokers = sorted((await call.single("the brokers", call.cluster.refresh)).nodes)
    shares = all_of(await call.settle("LIST_TRANSACTIONS", brokers, attempt))
    # An id whose coordinator moves meanwhile may be listed by two brokers.
    listed = {listing.transactional_id: listing for share in shares.values() for listing in share}
    return dict(sorted(listed.items()))


def _listing(entry: Any, broker: int) -> TransactionListing:
    return TransactionListing(
        transactional_id=entry.transactional_id,
        producer_id=entry.producer_id,
        state=state_of(entry.transaction_state),
        coordinator=broker,
    )


async def describe(call: Call, ids: Iterable[str]) -> dict[str, Outcome[TransactionDescription]]:
    async def ask(node: Node, share: list[str]) -> Mapping[str, Outcome[TransactionDescription]]:
        answer: DescribeTransactionsResponse = await call.ask(
            ApiKey.DESCRIBE_TRANSACTIONS,
            lambda _: DescribeTransactionsRequest(transactional_ids=share),
            node.id,
        )
        return {entry.transactional_id: _description(entry, node.id) for entry in answer.transaction_states}

    return await ask_coordinators(call, "DESCRIBE_TRANSACTIONS", ids, ask, TRANSACTION)


def _description(entry: Any, broker: int) -> Outcome[TransactionDescription]:
    partitions = {
        TopicPartition(each.topic, partition) for each in entry.topics for partition in each.partitions
    }
    found = TransactionDescription(
        transactional_id=entry.transactional_id,
        coordinator=broker,
        state=state_of(entry.transaction_state),
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        timeout_ms=entry.transaction_timeout_ms,
        start_time_ms=entry.transaction_start_time_ms if entry.transaction_start_time_ms >= 0 else None,
        partitions=tuple(sorted(partitions)),
    )
    return judged(entry.error_code, found, about=TRANSACTION.about(entry.transactional_id))
