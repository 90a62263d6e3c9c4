"""UpdateFeatures (key 57), versions 0-2.

Supported: forwarded to the controller, which updates all features or none. The timeout is ignored.
v1 validate_only, upgrade_type; v2 no results of single features. allow_downgrade of v0 is ignored: as in
Kafka, a downgrade needs an upgrade_type, which v1 introduced.
"""

from collections.abc import Awaitable

from barnabas.controller.refusals import refusal
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.brokers import UpdateFeaturesRequest
from barnabas.server.requests.api import Api, Context


def handle(ctx: Context, request: Request) -> Awaitable[object]:
    body: UpdateFeaturesRequest = request.body
    for update in body.feature_updates:
        update.allow_downgrade = False
    return ctx.broker.controller.call(body)


def refuse(body: UpdateFeaturesRequest, version: int, code: ErrorCode) -> object:
    return refusal(body, code)


API = Api(ApiKey.UPDATE_FEATURES, versions=range(3), handle=handle, refuse=refuse)
