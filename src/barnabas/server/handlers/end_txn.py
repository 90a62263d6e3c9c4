"""EndTxn (key 26), versions 0-5.

Supported: commits or aborts a transaction. The response is sent when the decision is committed to the log;
the markers follow.
v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE; v5 returns the bumped epoch of the next
transaction.
"""

from functools import partial

from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo
from barnabas.coordinators.txn.shard import TxnShard
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.transactions import EndTxnRequest, EndTxnResponse
from barnabas.server.coordination.calls import ask_with_new_id
from barnabas.server.requests.api import Answer, Api, Context


def handle(ctx: Context, request: Request) -> Answer:
    body: EndTxnRequest = request.body
    if not body.transactional_id:
        return refuse(body, request.version, ErrorCode.INVALID_REQUEST)

    def act(shard: TxnShard, new_id: int | None, to: ReplyTo, now: Now) -> Outcome:
        return shard.end(body, request.version, new_id, to, now)

    return ask_with_new_id(ctx, body.transactional_id, partial(refuse, body, request.version), act)


def refuse(body: EndTxnRequest, version: int, code: ErrorCode) -> EndTxnResponse:
    return EndTxnResponse(error_code=code)


API = Api(ApiKey.END_TXN, versions=range(6), handle=handle, refuse=refuse)
