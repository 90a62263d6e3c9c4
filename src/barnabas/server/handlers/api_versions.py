"""ApiVersions (key 18), versions 0-4.

Supported: the keys and versions of the API table; supported and finalized features. The dispatcher answers an
unsupported version, in version 0.
v1 throttle_time_ms; v3 client software name and version, features; v4 features with minimum level 0
(KIP-584).
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from barnabas.controller.facts import SUPPORTED_FEATURES
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.cluster import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from barnabas.server.requests.api import Answer, Api, Context

_SOFTWARE_FROM: Final = 3
# Clients that use older versions reject a feature whose minimum level is 0.
_LEVEL_ZERO_FROM: Final = 4
# A client's software name or version. It becomes part of metrics, so only these characters are allowed.
# (KIP-511)
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def answer(ctx: Context, request: Request, rows: list[ApiVersion]) -> Answer:
    """The response of a listener that supports `rows`."""
    body: ApiVersionsRequest = request.body
    if request.version >= _SOFTWARE_FROM and not _is_presentable(body):
        return refuse(body, request.version, ErrorCode.INVALID_REQUEST)
    image = ctx.broker.image
    return ApiVersionsResponse(
        api_keys=rows,
        supported_features=_supported(is_zero_allowed=request.version >= _LEVEL_ZERO_FROM),
        finalized_features_epoch=image.offset,
        finalized_features=_finalized(image),
    )


def _is_presentable(body: ApiVersionsRequest) -> bool:
    return (
        _SOFTWARE.fullmatch(body.client_software_name) is not None
        and _SOFTWARE.fullmatch(body.client_software_version) is not None
    )


def handle(ctx: Context, request: Request) -> Answer:
    return answer(ctx, request, _spoken(unstable=ctx.broker.settings.now.unstable_api_versions_enable))


@cache
def _spoken(*, unstable: bool) -> list[ApiVersion]:
    """The API table as clients see it."""
    # Imported here because the table imports this module.
    from barnabas.server.handlers.table import spoken

    return advertised(spoken(unstable=unstable))


def advertised(apis: Iterable[Api]) -> list[ApiVersion]:
    rows = []
    for row in sorted(apis, key=lambda row: row.key):
        versions = row.versions if row.advertised is None else row.advertised
        rows.append(ApiVersion(api_key=row.key, min_version=versions.start, max_version=versions.stop - 1))
    return rows


@cache
def _supported(*, is_zero_allowed: bool) -> list[SupportedFeatureKey]:
    return [
        SupportedFeatureKey(name=name, min_version=levels.least, max_version=levels.most)
        for name, levels in sorted(SUPPORTED_FEATURES.items())
        if levels.least > 0 or is_zero_allowed
    ]


def _finalized(image: MetadataImage) -> list[FinalizedFeatureKey]:
    return [
        FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
        for name, level in sorted(image.features.items())
    ]


def refuse(body: ApiVersionsRequest, version: int, code: ErrorCode) -> object:
    return ApiVersionsResponse(error_code=code)


API = Api(ApiKey.API_VERSIONS, versions=range(5), handle=handle, refuse=refuse)
