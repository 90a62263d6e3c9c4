"""Validation of settings for topics, brokers and other resources."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from barnabas.base.settings import InvalidSetting
from barnabas.controller.config_messages import message_of
from barnabas.controller.decision import Refused
from barnabas.controller.effective import MIN_INSYNC_REPLICAS, broker_config, elr_enabled
from barnabas.controller.facts import ControllerSettings
from barnabas.controller.topic_names import topic_name_error
from barnabas.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
    MetadataImage,
)
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.stored.cluster_nodes import ClearElrRecord
from barnabas.protocol.stored.cluster_topics import ConfigRecord
from barnabas.storage.config import LogConfig
from barnabas.storage.topic_settings import SETTINGS

VALUE_LENGTH_MAX: Final = 32767


def validate_topic_config(
    image: MetadataImage,
    configs: Mapping[str, str],
    settings: ControllerSettings,
    before: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Validate all settings that a topic would have; `before` are its current ones. Raises INVALID_CONFIG.

    Unsupported settings are rejected only if they are new or changed: Kafka may have written existing ones.
    """
    for name, value in configs.items():
        if name not in SETTINGS:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
        check_length(value)
    try:
        for name, value in configs.items():
            if value != before.get(name):
                SETTINGS[name].parse_supported(value)
        LogConfig.parse(configs, broker_config(image, settings))
    except InvalidSetting as wrong:
        raise Refused(ErrorCode.INVALID_CONFIG, message_of(wrong)) from None


def validate_other_config(
    resource: ConfigResource, configs: Mapping[str, str], settings: ControllerSettings
) -> None:
    """Validate changed settings of a broker, of all brokers, or of a group. Raises INVALID_CONFIG.

    Only the changes are checked: invalid settings of another release must not block changes of others. The
    broker itself checks the combination of all its settings before it forwards a request.
    """
    for value in configs.values():
        check_length(value)
    try:
        if resource.type == BROKER_RESOURCE:
            settings.validate_broker_config(configs, resource.name)
        else:
            settings.validate_other_config(resource, configs)
    except InvalidSetting as wrong:
        message = f"Invalid value {wrong.value} for configuration {wrong.name}: {wrong.what}"
        raise Refused(ErrorCode.INVALID_CONFIG, message) from None


def check_elr_rules(image: MetadataImage, records: Iterable[ConfigRecord]) -> None:
    """ELR depends on min.insync.replicas, so the setting must be the same on all brokers."""
    if not elr_enabled(image):
        return
    for record in records:
        if record.name != MIN_INSYNC_REPLICAS or record.resource_type != BROKER_RESOURCE:
            continue
        if record.resource_name:
            raise Refused(
                ErrorCode.INVALID_CONFIG,
                "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
            )
        if record.value is None:
            raise Refused(
                ErrorCode.INVALID_CONFIG,
                "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
            )


def clear_elr_records(image: MetadataImage, records: Iterable[ConfigRecord]) -> list[ClearElrRecord]:
    """Clear the ELR if min.insync.replicas changes, because its members may no longer be eligible."""
    if not elr_enabled(image):
        return []
    return [
        ClearElrRecord(topic_name=record.resource_name if record.resource_type == TOPIC_RESOURCE else "")
        for record in records
        if record.name == MIN_INSYNC_REPLICAS
    ]


def check_resource(image: MetadataImage, resource: ConfigResource) -> None:
    """Check that a resource has a valid type and name."""
    if resource.type == TOPIC_RESOURCE:
        if not resource.name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        wrong = topic_name_error(resource.name)
        if wrong is not None:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)
    elif resource.type == BROKER_RESOURCE:
        if resource.name and _broker_id(resource.name) < 0:
            raise Refused(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
    elif resource.type == GROUP_RESOURCE:
        if not resource.name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    elif resource.type == CLIENT_METRICS_RESOURCE:
        if not resource.name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    else:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.type}")


def check_exists(image: MetadataImage, resource: ConfigResource, settings: ControllerSettings) -> None:
    if resource.type == TOPIC_RESOURCE:
        if resource.name not in image.topics:
            raise Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist."
            )
    elif resource.type == BROKER_RESOURCE and resource.name:
        broker_id = _broker_id(resource.name)
        if broker_id not in image.brokers and broker_id not in settings.voters:
            raise Refused(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {broker_id} found.")


def check_length(value: str) -> None:
    if len(value) > VALUE_LENGTH_MAX:
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{VALUE_LENGTH_MAX} bytes.",
        )


def _broker_id(name: str) -> int:
    digits = name.removeprefix("-").removeprefix("+")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        raise Refused(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
    return int(name)
