"""DescribeTransactions (key 65), version 0; ListTransactions (66), versions 0-2.

Supported: the transactions of the shards that this broker leads, by transactional id or all.
ListTransactions: v1 duration_filter; v2 transactional_id_pattern.
"""

from collections.abc import Iterator
from typing import Any

from barnabas.base.re2_patterns import NotRe2
from barnabas.base.re2_work import TooManyPatterns
from barnabas.coordinators.decision.outcome import Now
from barnabas.coordinators.runtime.host import ShardHost
from barnabas.coordinators.txn.admin import TransactionFilter, transactions_of
from barnabas.coordinators.txn.admin import describe as describe_transaction
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
)
from barnabas.server.coordination.transactions import TxnHost
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import AT_ONCE, Slices


def describe(ctx: Context, request: Request) -> Answer:
    body: DescribeTransactionsRequest = request.body
    return DescribeTransactionsResponse(
        transaction_states=[_described(ctx, transactional_id) for transactional_id in body.transactional_ids]
    )


def _described(ctx: Context, transactional_id: str) -> DescribeTransactionsResponseTransactionState:
    if not transactional_id:
        return _not_described(transactional_id, ErrorCode.INVALID_REQUEST)
    host = ctx.broker.transactions.host_of(transactional_id)
    if not isinstance(host, ShardHost):
        return _not_described(transactional_id, host)
    return describe_transaction(host.shard.table, transactional_id)


def _not_described(transactional_id: str, code: ErrorCode) -> DescribeTransactionsResponseTransactionState:
    return DescribeTransactionsResponseTransactionState(
        error_code=code, transactional_id=transactional_id, transaction_state="", topics=[]
    )


def refuse_describe(
    body: DescribeTransactionsRequest, version: int, code: ErrorCode
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_not_described(one, code) for one in body.transactional_ids]
    )


def list_all(ctx: Context, request: Request) -> Answer:
    body: ListTransactionsRequest = request.body
    hosts = ctx.broker.transactions.shards.active_hosts()
    if isinstance(hosts, ErrorCode):
        return refuse_list(body, request.version, hosts)
    if not body.transactional_id_pattern and sum(len(host.shard) for host in hosts) <= AT_ONCE:
        wanted = TransactionFilter(body)
        return ListTransactionsResponse(
            unknown_state_filters=wanted.unknown_states,
            transaction_states=[one for one in _rows(ctx, hosts, wanted) if one is not None],
        )
    return _list_many(ctx, hosts, body)


def _rows(
    ctx: Context, hosts: list[TxnHost], wanted: TransactionFilter
) -> Iterator[ListTransactionsResponseTransactionState | None]:
    clock = ctx.broker.clock
    return transactions_of(
        [host.shard.table for host in hosts], wanted, Now(clock.now_ms(), clock.monotonic_ms())
    )


async def _list_many(
    ctx: Context, hosts: list[TxnHost], body: ListTransactionsRequest
) -> ListTransactionsResponse:
    """List in slices, and match the pattern off the loop, while other requests are served."""
    wanted = TransactionFilter(body)
    try:
        pattern = await _pattern(ctx, body.transactional_id_pattern)
        found = await ctx.broker.long_requests.collect(_rows(ctx, hosts, wanted))
        rows = [one for one in found if one is not None]
        if pattern is not None:
            ids = [one.transactional_id for one in rows]
            matching = frozenset(await ctx.broker.groups.pattern_work.match(pattern, ids))
            rows = [one for one in rows if one.transactional_id in matching]
    except NotRe2:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    except TooManyPatterns:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return ListTransactionsResponse(unknown_state_filters=wanted.unknown_states, transaction_states=rows)


async def _pattern(ctx: Context, text: str | None) -> Any:
    """The compiled pattern, None without one. NotRe2 if it is invalid."""
    return await ctx.broker.groups.pattern_work.compile(text) if text else None


def refuse_list(body: ListTransactionsRequest, version: int, code: ErrorCode) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=code, unknown_state_filters=[], transaction_states=[])


APIS = (
    Api(
        ApiKey.DESCRIBE_TRANSACTIONS,
        versions=range(1),
        handle=describe,
        refuse=refuse_describe,
        slices=(Slices("transactional_ids", "transaction_states"),),
    ),
    Api(
        ApiKey.LIST_TRANSACTIONS,
        versions=range(3),
        handle=list_all,
        refuse=refuse_list,
        long_lists=(("transaction_states",),),
    ),
)
