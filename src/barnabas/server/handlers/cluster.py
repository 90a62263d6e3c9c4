"""UpdateFeatures (key 57), versions 0-2, DescribeCluster (60), 0-2, and UnregisterBroker (64), version 0.

Supported: the brokers with their addresses on the client's listener; forwarding to the controller, which
updates all features or none, and removes an unregistered broker from all its partitions. The timeout of
UpdateFeatures is ignored. Not supported: controllers, which handlers/controller.py describes.
DescribeCluster: v1 endpoint_type; v2 fenced brokers on request.
UpdateFeatures: v1 validate_only, upgrade_type; v2 no results of single features. allow_downgrade of v0 is
ignored: as in Kafka, a downgrade needs an upgrade_type, which v1 introduced.
"""

from collections.abc import Awaitable
from typing import Final

from barnabas.controller.refusals import refusal
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.acls import NOT_ASKED, OF_CLUSTER
from barnabas.protocol.messages.brokers import UnregisterBrokerRequest, UpdateFeaturesRequest
from barnabas.protocol.messages.cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.server.cluster.brokers import alive_brokers, some_controller
from barnabas.server.requests.api import Answer, Api, Context

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def update_features(ctx: Context, request: Request) -> Awaitable[object]:
    body: UpdateFeaturesRequest = request.body
    for update in body.feature_updates:
        update.allow_downgrade = False
    return ctx.broker.controller.call(body)


def describe_cluster(ctx: Context, request: Request) -> Answer:
    body: DescribeClusterRequest = request.body
    if body.endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER",
        )
    if body.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {body.endpoint_type}",
        )
    brokers = _brokers(ctx, with_fenced=body.include_fenced_brokers)
    controller_id = some_controller(alive_brokers(ctx.broker.image), ctx.broker.rng)
    return DescribeClusterResponse(
        cluster_id=ctx.broker.cluster_id,
        # The client cannot use a controller whose address is not in the response.
        controller_id=controller_id if any(one.broker_id == controller_id for one in brokers) else -1,
        brokers=brokers,
        cluster_authorized_operations=OF_CLUSTER if body.include_cluster_authorized_operations else NOT_ASKED,
    )


def _brokers(ctx: Context, *, with_fenced: bool) -> list[DescribeClusterBroker]:
    """The brokers that have the client's listener, sorted by id."""
    found = []
    for _, broker in sorted(ctx.broker.image.brokers.items()):
        where = broker.endpoint(ctx.listener)
        if where is not None and (with_fenced or not broker.fenced):
            found.append(
                DescribeClusterBroker(
                    broker_id=broker.id,
                    host=where[0],
                    port=where[1],
                    rack=broker.registration.rack,
                    is_fenced=broker.fenced,
                )
            )
    return found


def refuse_describe(body: DescribeClusterRequest, version: int, code: ErrorCode) -> object:
    return DescribeClusterResponse(error_code=code)


def unregister_broker(ctx: Context, request: Request) -> Awaitable[object]:
    return ctx.broker.controller.call(request.body)


def refuse(body: UnregisterBrokerRequest | UpdateFeaturesRequest, version: int, code: ErrorCode) -> object:
    return refusal(body, code)


APIS = (
    Api(ApiKey.UPDATE_FEATURES, versions=range(3), handle=update_features, refuse=refuse),
    Api(ApiKey.DESCRIBE_CLUSTER, versions=range(3), handle=describe_cluster, refuse=refuse_describe),
    Api(ApiKey.UNREGISTER_BROKER, versions=range(1), handle=unregister_broker, refuse=refuse),
)
