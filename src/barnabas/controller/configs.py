"""IncrementalAlterConfigs (key 44) and AlterConfigs (key 33).

The old request replaces all settings of a resource, the incremental one changes single settings. Each
resource gets its own result; an error of one does not affect the others. Validators for settings of brokers,
groups and client metrics are injected.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from barnabas.base.settings import SettingType, format_value
from barnabas.controller.config_rules import (
    check_elr_rules,
    check_exists,
    check_resource,
    clear_elr_records,
    validate_other_config,
    validate_topic_config,
)
from barnabas.controller.decision import RECORDS_PER_REQUEST_MAX, Decision, Refused
from barnabas.controller.facts import ControllerSettings, Facts
from barnabas.controller.refusals import refusal
from barnabas.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigResource, MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.stored.cluster_topics import ConfigRecord
from barnabas.storage.topic_settings import SETTINGS

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3

# The settings of a resource after the change; None removes a setting.
_Wanted = dict[str, str | None]


def alter_configs(image: MetadataImage, request: AlterConfigsRequest, facts: Facts) -> Decision:
    def wanted(resource: ConfigResource, asked: AlterConfigsResourceRequest) -> _Wanted:
        _check_names([one.name for one in asked.configs])
        _check_values([one.name for one in asked.configs if one.value is None])
        gone: _Wanted = dict.fromkeys(image.config(resource))
        return gone | {one.name: one.value for one in asked.configs}

    records, responses = _alter(image, request.resources, wanted, facts.settings)
    if len(records) > RECORDS_PER_REQUEST_MAX:
        return _too_many(request)
    return Decision(
        () if request.validate_only else tuple(records), AlterConfigsResponse(responses=responses)
    )


def incremental_alter_configs(
    image: MetadataImage, request: IncrementalAlterConfigsRequest, facts: Facts
) -> Decision:
    def wanted(resource: ConfigResource, asked: IncrementalAlterConfigsAlterConfigsResource) -> _Wanted:
        _check_names([one.name for one in asked.configs])
        _check_values(
            [one.name for one in asked.configs if one.value is None and one.config_operation != DELETE]
        )
        current = image.config(resource)
        return {one.name: _after(current, resource, one, facts.settings) for one in asked.configs}

    records, responses = _alter(image, request.resources, wanted, facts.settings)
    if len(records) > RECORDS_PER_REQUEST_MAX:
        return _too_many(request)
    return Decision(
        () if request.validate_only else tuple(records), IncrementalAlterConfigsResponse(responses=responses)
    )


def _alter(
    image: MetadataImage,
    resources: Sequence[AlterConfigsResourceRequest] | Sequence[IncrementalAlterConfigsAlterConfigsResource],
    wanted: Callable[..., _Wanted],
    settings: ControllerSettings,
) -> tuple[list[object], list[AlterConfigsResourceResponse]]:
    counts = Counter(ConfigResource(one.resource_type, one.resource_name) for one in resources)
    changed: list[ConfigRecord] = []
    responses: dict[ConfigResource, AlterConfigsResourceResponse] = {}
    for asked in resources:
        resource = ConfigResource(asked.resource_type, asked.resource_name)
        if resource in responses:
            continue
        response = AlterConfigsResourceResponse(
            resource_type=resource.type, resource_name=resource.name, error_message=None
        )
        try:
            if counts[resource] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate resource.")
            changed += _change(image, resource, wanted(resource, asked), settings)
        except Refused as refused:
            response.error_code, response.error_message = refused.code, refused.message
        responses[resource] = response
    return [*changed, *clear_elr_records(image, changed)], list(responses.values())


def _change(
    image: MetadataImage, resource: ConfigResource, wanted: _Wanted, settings: ControllerSettings
) -> list[ConfigRecord]:
    current = image.config(resource)
    records = [
        ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        for name, value in wanted.items()
        # Write unchanged broker settings again: a keystore file may have new content under the same path.
        if current.get(name) != value or resource.type == BROKER_RESOURCE
    ]
    check_elr_rules(image, records)
    check_resource(image, resource)
    if resource.type == TOPIC_RESOURCE:
        after = {name: value for name, value in {**current, **wanted}.items() if value is not None}
        validate_topic_config(image, after, settings, before=current)
    else:
        given = {name: value for name, value in wanted.items() if value is not None}
        validate_other_config(resource, given, settings)
    check_exists(image, resource, settings)
    return records


def _after(
    current: Mapping[str, str],
    resource: ConfigResource,
    change: IncrementalAlterConfigsAlterableConfig,
    settings: ControllerSettings,
) -> str | None:
    match change.config_operation:
        case 0:
            return change.value
        case 1:
            return None
        case 2 | 3 as operation:
            verb = "APPEND" if operation == APPEND else "SUBTRACT"
            default = _list_default(resource, change.name, settings)
            if default is None:
                raise Refused(
                    ErrorCode.INVALID_CONFIG,
                    f"Can't {verb} to key {change.name} because its type is not LIST.",
                )
            entries = [one for one in current.get(change.name, default).split(",") if one]
            given = (change.value or "").split(",")
            if operation == APPEND:
                entries += [one for one in dict.fromkeys(given) if one not in entries]
            else:
                entries = [one for one in entries if one not in given]
            return ",".join(entries)
    raise Refused(
        ErrorCode.INVALID_REQUEST, f"Unknown operation {change.config_operation} for {change.name}."
    )


def _list_default(resource: ConfigResource, name: str, settings: ControllerSettings) -> str | None:
    """The default of a list setting; None for other settings."""
    if resource.type == BROKER_RESOURCE:
        return settings.broker_lists.get(name)
    setting = SETTINGS.get(name)
    if setting is None or setting.type is not SettingType.LIST:
        return None
    return format_value(setting.default)


def _check_names(names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _check_values(unset: list[str]) -> None:
    if unset:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(unset)}")


def _too_many(request: object) -> Decision:
    message = "Unable to perform excessively large batch operation."
    return Decision((), refusal(request, ErrorCode.POLICY_VIOLATION, message))
