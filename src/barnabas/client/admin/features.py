"""Features: supported and finalized levels (ApiVersions), and UpdateFeatures."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.base.values import value
from barnabas.client.admin.call import Call, NegotiatedApi, Outcome, all_of, check, outcome_of
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.protocol.messages.cluster import ApiVersionsRequest, ApiVersionsResponse

_FEATURES_FROM: Final = 3
_UPGRADE_TYPES_FROM, _NO_RESULTS_FROM = 1, 2
_NO_EPOCH: Final = -1
_CLIENT_NAME, _CLIENT_VERSION = "barnabas", "admin"


class LevelRange(NamedTuple):
    first: int
    last: int


@value(kw_only=True)
class FeaturesDescription:
    """Levels by feature: supported by the broker that answered, and finalized as of an epoch."""

    supported: Mapping[str, LevelRange]
    finalized: Mapping[str, LevelRange]
    epoch: int | None


class UpgradeType(IntEnum):
    """Allowed direction of a change. Downgrades must be requested explicitly."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@value(kw_only=True)
class FeatureUpdate:
    """The new finalized level. Level 0 disables the feature."""

    level: int
    type: UpgradeType = UpgradeType.UPGRADE


async def describe_features(call: Call, broker: int | None) -> FeaturesDescription:
    def make(api: NegotiatedApi) -> object:
        api.require(_FEATURES_FROM, "features")
        return ApiVersionsRequest(client_software_name=_CLIENT_NAME, client_software_version=_CLIENT_VERSION)

    async def attempt() -> FeaturesDescription:
        answer: ApiVersionsResponse = await call.ask(ApiKey.API_VERSIONS, make, broker)
        check(answer.error_code, about="features")
        return FeaturesDescription(
            supported={
                entry.name: LevelRange(entry.min_version, entry.max_version)
                for entry in sorted(answer.supported_features, key=lambda entry: entry.name)
            },
            finalized={
                entry.name: LevelRange(entry.min_version_level, entry.max_version_level)
                for entry in sorted(answer.finalized_features, key=lambda entry: entry.name)
            },
            epoch=None if answer.finalized_features_epoch == _NO_EPOCH else answer.finalized_features_epoch,
        )

    return await call.retry_single("API_VERSIONS", attempt)


async def update_features(call: Call, updates: Mapping[str, FeatureUpdate], *, validate_only: bool) -> None:
    """Update features, all or none."""
    version = 0

    def make(api: NegotiatedApi) -> object:
        nonlocal version
        version = api.version
        if validate_only:
            api.require(_UPGRADE_TYPES_FROM, "validate_only")
        return UpdateFeaturesRequest(
            timeout_ms=call.request_timeout_ms,
            feature_updates=[_key(api, name, one) for name, one in updates.items()],
            validate_only=validate_only,
        )

    async def attempt() -> dict[str, Outcome[None]]:
        answer = await call.ask(ApiKey.UPDATE_FEATURES, make)
        check(answer.error_code, about="features", message=answer.error_message)
        if version >= _NO_RESULTS_FROM:
            return dict.fromkeys(updates)
        return {
            entry.feature: outcome_of(
                entry.error_code, None, about=f"feature {entry.feature}", message=entry.error_message
            )
            for entry in answer.results
        }

    all_of(await call.retry_single("UPDATE_FEATURES", attempt))


def _key(api: NegotiatedApi, name: str, update: FeatureUpdate) -> FeatureUpdateKey:
    if api.version >= _UPGRADE_TYPES_FROM:
        return FeatureUpdateKey(feature=name, max_version_level=update.level, upgrade_type=update.type)
    if update.type is UpgradeType.UNSAFE_DOWNGRADE:
        api.require(_UPGRADE_TYPES_FROM, "unsafe downgrades")
    is_down = update.type is not UpgradeType.UPGRADE
    return FeatureUpdateKey(feature=name, max_version_level=update.level, allow_downgrade=is_down)
