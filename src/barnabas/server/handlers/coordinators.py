"""FindCoordinator (key 10), versions 0-6.

Supported: the coordinators of groups and transactional ids; their internal topics are created on first use.
Not supported: share groups. Clients get COORDINATOR_NOT_AVAILABLE and retry.
v1 key_type; v4 several keys; v6 share groups.
"""

from typing import Final

from barnabas.coordinators.runtime.shards import partition_of
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.classic_groups import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from barnabas.server.coordination.transactions import TRANSACTION_TOPIC
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import Slices

_SEVERAL_FROM: Final = 4
_SHARE_FROM: Final = 6
GROUP, TRANSACTION, SHARE = 0, 1, 2
_NOBODY: Final = -1
# The response format with a single coordinator requires a message; Kafka's message for success is this.
_ALL_WELL: Final = "NONE"
_WHY: Final = {
    ErrorCode.INVALID_REQUEST: "key_type must be 0 (group), 1 (transaction) or, from version 6 on, 2 (share)",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "no coordinator is available",
}


def handle(ctx: Context, request: Request) -> Answer:
    body: FindCoordinatorRequest = request.body
    known = (GROUP, TRANSACTION, SHARE) if request.version >= _SHARE_FROM else (GROUP, TRANSACTION)
    if body.key_type not in known:
        return refuse(body, request.version, ErrorCode.INVALID_REQUEST)
    if body.key_type == SHARE:
        return refuse(body, request.version, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    topic = OFFSETS_TOPIC if body.key_type == GROUP else TRANSACTION_TOPIC
    if topic not in ctx.broker.image.topics:
        return _create_first(ctx, request, topic)
    return _find(ctx, request, topic)


async def _create_first(ctx: Context, request: Request, topic: str) -> Answer:
    broker = ctx.broker
    await (broker.offsets_topic if topic == OFFSETS_TOPIC else broker.transaction_topic).create()
    return _find(ctx, request, topic)


def _find(ctx: Context, request: Request, topic: str) -> FindCoordinatorResponse:
    body: FindCoordinatorRequest = request.body
    if request.version >= _SEVERAL_FROM:
        found = [_coordinator_of(ctx, key, topic) for key in body.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    return _alone(_coordinator_of(ctx, body.key, topic))


def _alone(found: Coordinator) -> FindCoordinatorResponse:
    """Convert to the response format with a single coordinator."""
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message or _ALL_WELL,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator_of(ctx: Context, key: str, name: str) -> Coordinator:
    image = ctx.broker.image
    topic = image.topics.get(name)
    if topic is not None:
        leader = topic.partitions[partition_of(key, len(topic.partitions))].leader
        broker = image.brokers.get(leader)
        endpoint = None if broker is None or broker.fenced else broker.endpoint(ctx.listener)
        if endpoint is not None:
            return Coordinator(key=key, node_id=leader, host=endpoint[0], port=endpoint[1])
    return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _nobody(key: str, code: ErrorCode) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=_NOBODY,
        host="",
        port=_NOBODY,
        error_code=code,
        error_message=_WHY.get(code, code.name),
    )


def refuse(body: FindCoordinatorRequest, version: int, code: ErrorCode) -> FindCoordinatorResponse:
    if version < _SEVERAL_FROM:
        return _alone(_nobody(body.key, code))
    return FindCoordinatorResponse(coordinators=[_nobody(key, code) for key in body.coordinator_keys])


API = Api(
    ApiKey.FIND_COORDINATOR,
    versions=range(7),
    handle=handle,
    refuse=refuse,
    slices=(Slices("coordinator_keys", "coordinators"),),
)
