"""The APIs of the controller listener, for other nodes and for tools that connect to controllers.

Supported: every request that the controller decides (controller.DECISIONS); DescribeCluster for controllers,
DescribeQuorum, ApiVersions. Not supported: requests between voters (Vote, Fetch and so on), because there is
only one voter.
"""

from functools import cache
from typing import Final

from barnabas.controller.controller import DECISIONS
from barnabas.controller.refusals import refusal
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.acls import NOT_ASKED, OF_CLUSTER
from barnabas.protocol.messages.cluster import (
    ApiVersion,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.protocol.schema.struct import schema_of
from barnabas.server.handlers import api_versions, cluster, quorum
from barnabas.server.requests.api import Answer, Api, Context

_CONTROLLERS: Final = 2


async def decide(ctx: Context, request: Request) -> object:
    return await ctx.broker.controller.call(request.body)


def _refuse(body: object, _version: int, code: ErrorCode) -> object:
    return refusal(body, code)


def describe_controllers(ctx: Context, request: Request) -> Answer:
    """DescribeCluster for controllers; cluster.py describes the brokers."""
    body: DescribeClusterRequest = request.body
    if body.endpoint_type != _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type CONTROLLER, "
            "but we wanted an endpoint of type BROKER",
            endpoint_type=_CONTROLLERS,
        )
    leader = ctx.broker.quorum.leader.leader
    return DescribeClusterResponse(
        cluster_id=ctx.broker.cluster_id,
        controller_id=-1 if leader is None else leader,
        endpoint_type=_CONTROLLERS,
        brokers=[
            DescribeClusterBroker(broker_id=node_id, host=one.host, port=one.port)
            for node_id, registered in sorted(ctx.broker.image.controllers.items())
            for one in registered.end_points
            if one.name == ctx.listener
        ],
        cluster_authorized_operations=OF_CLUSTER if body.include_cluster_authorized_operations else NOT_ASKED,
    )


def tell_versions(ctx: Context, request: Request) -> Answer:
    return api_versions.answer(ctx, request, _spoken())


@cache
def _spoken() -> list[ApiVersion]:
    return api_versions.advertised(APIS)


def _decided(message: type) -> Api:
    key = schema_of(message).key
    assert key is not None, f"{message.__name__} is not a request"
    spoken = api(ApiKey(key)).versions
    return Api(ApiKey(key), versions=spoken.all(), handle=decide, refuse=_refuse)


APIS: Final[tuple[Api, ...]] = (
    *(_decided(message) for message in DECISIONS),
    quorum.API,
    Api(ApiKey.API_VERSIONS, versions=range(5), handle=tell_versions, refuse=api_versions.refuse),
    Api(
        ApiKey.DESCRIBE_CLUSTER,
        versions=range(1, 3),
        handle=describe_controllers,
        refuse=cluster.refuse_describe,
    ),
)
