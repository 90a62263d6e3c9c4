"""UpdateFeatures (key 57): change the feature levels of the cluster.

All updates of a request are made, or none. Every broker and controller must support a new level.
metadata.version is never downgraded: older levels cannot represent what the log may contain.
"""

from collections.abc import Sequence
from typing import Final

from barnabas.controller.decision import Decision, Refused
from barnabas.controller.effective import MIN_INSYNC_REPLICAS
from barnabas.controller.facts import (
    ELR_FEATURE,
    KRAFT_FEATURE,
    METADATA_VERSION_LATEST,
    ControllerSettings,
    Facts,
    FeatureRange,
)
from barnabas.metadata.image import ALL_BROKERS, BROKER_RESOURCE, METADATA_VERSION, MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas.protocol.stored.cluster_nodes import BrokerFeature, ControllerFeature, FeatureLevelRecord
from barnabas.protocol.stored.cluster_topics import ConfigRecord

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3

_NOT_SUPPORTED: Final = FeatureRange(0, 0)


def update_features(image: MetadataImage, request: UpdateFeaturesRequest, facts: Facts) -> Decision:
    records: list[object] = []
    # The last of several updates of one feature counts.
    for update in {one.feature: one for one in request.feature_updates}.values():
        try:
            records += _update(image, update, facts.settings)
        except Refused as refused:
            message = (
                "The update failed for all features since the following feature had an error: "
                f"{refused.message}"
            )
            return Decision((), UpdateFeaturesResponse(error_code=refused.code, error_message=message))
    # As in Kafka, the message is "NONE" here, unlike in other responses.
    results = [
        UpdatableFeatureResult(feature=one.feature, error_message="NONE") for one in request.feature_updates
    ]
    response = UpdateFeaturesResponse(error_message=None, results=results)
    return Decision(() if request.validate_only else tuple(records), response)


def elr_safety_records(image: MetadataImage, settings: ControllerSettings) -> list[ConfigRecord]:
    """Set min.insync.replicas for the whole cluster, which ELR requires."""
    records = []
    if MIN_INSYNC_REPLICAS not in image.config(ALL_BROKERS):
        value = settings.static_config.get(MIN_INSYNC_REPLICAS, "1")
        records.append(_min_isr("", value))
    for resource, values in image.configs.items():
        if resource.type == BROKER_RESOURCE and resource.name and MIN_INSYNC_REPLICAS in values:
            records.append(_min_isr(resource.name, None))
    return records


def _min_isr(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name=broker, name=MIN_INSYNC_REPLICAS, value=value
    )


def _update(image: MetadataImage, update: FeatureUpdateKey, settings: ControllerSettings) -> list[object]:
    name, level = update.feature, update.max_version_level
    # Version 0 of the request has a flag instead of the type, which Kafka ignores.
    kind = update.upgrade_type
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    reason = _reason_not_supported(image, name, level, settings)
    if reason is not None:
        raise _invalid(update, reason)
    current = image.features.get(name, 0)
    if level < current and kind == UPGRADE:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade.",
        )
    if level > current and kind != UPGRADE:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        return _metadata_version(current, level, kind)
    if name == KRAFT_FEATURE:
        return []
    if level > 0 and image.metadata_version < METADATA_VERSION_LATEST:
        raise _invalid(update, f"metadata.version has to be {METADATA_VERSION_LATEST} first.")
    record = FeatureLevelRecord(name=name, feature_level=level)
    safety = elr_safety_records(image, settings) if name == ELR_FEATURE and level > 0 else []
    return [*safety, record]


def _metadata_version(current: int, level: int, kind: int) -> list[object]:
    if level < current:
        why = (
            "Unsafe metadata downgrade is not supported in this version."
            if kind == UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
        message = f"Unsupported metadata.version downgrade from {current} to {level}. {why}"
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, message)
    return [FeatureLevelRecord(name=METADATA_VERSION, feature_level=level)]


def _reason_not_supported(
    image: MetadataImage, name: str, level: int, settings: ControllerSettings
) -> str | None:
    ranges = {f"Local controller {settings.node_id}": settings.supported_features.get(name, _NOT_SUPPORTED)}
    for broker in image.brokers.values():
        ranges[f"Broker {broker.id}"] = _range(broker.registration.features, name)
    for controller in image.controllers.values():
        if controller.controller_id != settings.node_id:
            ranges[f"Controller {controller.controller_id}"] = _range(controller.features, name)
    for who, supported in ranges.items():
        if level not in supported:
            if supported.most == 0:
                return f"{who} does not support this feature."
            return f"{who} only supports versions {supported.least}-{supported.most}"
    for voter in settings.voters:
        if voter != settings.node_id and voter not in image.controllers:
            return f"controller {voter} has not registered, and may not support this feature"
    return None


def _range(features: Sequence[BrokerFeature] | Sequence[ControllerFeature], name: str) -> FeatureRange:
    for one in features:
        if one.name == name:
            return FeatureRange(one.min_supported_version, one.max_supported_version)
    return _NOT_SUPPORTED


def _invalid(update: FeatureUpdateKey, message: str) -> Refused:
    return Refused(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.max_version_level} for feature {update.feature}. {message}",
    )
