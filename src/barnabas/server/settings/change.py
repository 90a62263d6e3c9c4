"""What may be changed on a running broker: the rules for the settings of one broker, or of all brokers.

The controller calls validate_broker_config() with everything that would then be set for that resource.
Whether a change fits the properties file of a broker only that broker can say: DynamicSettings.check() does.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.base.settings import InvalidSetting
from barnabas.metadata.image import GROUP_RESOURCE, ConfigResource
from barnabas.server.settings.catalog import CLIENT_METRICS, GROUP, find
from barnabas.server.settings.declare import Change, ServerSetting

# The name of the resource whose settings hold for all brokers.
ALL_BROKERS_NAME: Final = ""


def validate_broker_config(configs: Mapping[str, str], broker_name: str) -> None:
    """InvalidSetting for the first of `configs` that cannot be set for this broker, or for all ("")."""
    for name, text in configs.items():
        _check(find(name), text, for_all=broker_name == ALL_BROKERS_NAME)


def validate_other_config(resource: ConfigResource, configs: Mapping[str, str]) -> None:
    """InvalidSetting for the first of `configs` that this group, or subscription to metrics, cannot have."""
    declared = GROUP if resource.type == GROUP_RESOURCE else CLIENT_METRICS
    for name, text in configs.items():
        find(name, declared).parse_supported(text)


def _check(setting: ServerSetting, text: str, *, for_all: bool) -> None:
    if not setting.is_dynamic:
        raise setting.refusal(text, "cannot be changed while the broker runs; set it in its properties file")
    if for_all and setting.change is Change.PER_BROKER:
        raise setting.refusal(text, "must be set for one broker, not for all of them")
    setting.parse_supported(text)
    if setting.fixed:
        raise setting.refusal(
            text, f"cannot be changed while the broker runs: {setting.fixed}; set it in its properties file"
        )


def usable(configs: Mapping[str, str], broker_name: str) -> tuple[dict[str, str], list[InvalidSetting]]:
    """What of these can be applied, and what is wrong with the rest.

    The metadata may hold what no broker of ours would have let in: it may have been written by Kafka.
    """
    good: dict[str, str] = {}
    wrong: list[InvalidSetting] = []
    for name, text in configs.items():
        try:
            validate_broker_config({name: text}, broker_name)
        except InvalidSetting as error:
            wrong.append(error)
        else:
            good[name] = text
    return good, wrong
