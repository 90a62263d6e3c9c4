"""FindCoordinator (key 10), versions 0-6.

Does: says that no coordinator is available, because groups and transactions are not built yet. Clients know
that answer and ask again. It is spoken already because librdkafka takes it for the sign of a broker that
knows lz4, and would send lz4 batches uncompressed without it.
v1 key_type; v4 several keys at once; v6 share groups.
"""

from typing import Final

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.classic_groups import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.server.api import Answer, Api, Context

_SEVERAL_FROM: Final = 4
_SHARE_FROM: Final = 6
GROUP, TRANSACTION, SHARE = 0, 1, 2


def handle(_ctx: Context, request: Request) -> Answer:
    body: FindCoordinatorRequest = request.body
    known = (GROUP, TRANSACTION, SHARE) if request.version >= _SHARE_FROM else (GROUP, TRANSACTION)
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE if body.key_type in known else ErrorCode.INVALID_REQUEST
    return refuse(body, request.version, code)


def refuse(body: FindCoordinatorRequest, version: int, code: ErrorCode) -> FindCoordinatorResponse:
    if version < _SEVERAL_FROM:
        return FindCoordinatorResponse(error_code=code, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code)
            for key in body.coordinator_keys
        ]
    )


API = Api(ApiKey.FIND_COORDINATOR, versions=range(7), handle=handle, refuse=refuse)
