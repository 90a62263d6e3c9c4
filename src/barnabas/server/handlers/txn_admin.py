"""DescribeTransactions (key 65), version 0; ListTransactions (66), versions 0-2.

Does: the transactions of the shards that are here, one by one or all.
ListTransactions: v1 duration_filter; v2 transactional_id_pattern.
"""

from barnabas.coordinators.decision.errors import Refused
from barnabas.coordinators.decision.outcome import Now
from barnabas.coordinators.txn.admin import transactions_of
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.server.api import Answer, Api, Context
from barnabas.server.slices import Slices


def describe(ctx: Context, request: Request) -> Answer:
    body: DescribeTransactionsRequest = request.body
    return DescribeTransactionsResponse(
        transaction_states=[_described(ctx, transactional_id) for transactional_id in body.transactional_ids]
    )


def _described(ctx: Context, transactional_id: str) -> DescribeTransactionsResponseTransactionState:
    if not transactional_id:
        return _not_described(transactional_id, ErrorCode.INVALID_REQUEST)
    try:
        host = ctx.broker.transactions.host_of(transactional_id)
    except Refused as error:
        return _not_described(transactional_id, error.code)
    return host.shard.describe(transactional_id)


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
    try:
        hosts = ctx.broker.transactions.shards.active_hosts()
    except Refused as error:
        return refuse_list(body, request.version, error.code)
    clock = ctx.broker.clock
    now = Now(clock.now_ms(), clock.monotonic_ms())
    return transactions_of([host.shard for host in hosts], body, now)


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
