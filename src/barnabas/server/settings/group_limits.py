"""The coordinator's settings for all groups and for single groups.

A group's own settings must be within the broker's bounds. If the bounds change later, the group's settings
are clamped to them, as in Kafka.
"""

from collections.abc import Mapping

from barnabas.base.settings import InvalidSetting
from barnabas.coordinators.group.assignors.assignor import ASSIGNOR_CLASSES
from barnabas.coordinators.group.settings import GroupSettings, GroupTimes
from barnabas.metadata.image import GROUP_RESOURCE, MetadataImage
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.catalog import GROUP
from barnabas.server.settings.group_bounds import (
    BOUNDED,
    KINDS,
    STANDBYS,
    TIMES,
    Bounded,
    check_standbys,
    check_within,
    heartbeat_and_session,
)


def check_group_config(settings: BrokerSettings, configs: Mapping[str, str]) -> None:
    """InvalidSetting if a group cannot have exactly these settings on this broker."""
    own = {
        name: _parsed(name, configs[name])
        for name in (*(one.name for one in BOUNDED), STANDBYS)
        if name in configs
    }
    for one in BOUNDED:
        if one.name in own:
            check_within(one.name, own[one.name], one, settings.values)
    if STANDBYS in own:
        check_standbys(STANDBYS, own[STANDBYS], settings.values)
    for kind in KINDS:
        heartbeat, session = heartbeat_and_session(kind)
        if heartbeat.name not in own and session.name not in own:
            continue
        most = own.get(session.name, settings.values[session.setting()])
        least = own.get(heartbeat.name, settings.values[heartbeat.setting()])
        if least >= most:
            raise InvalidSetting(session.name, str(most), f"must be more than {heartbeat.name}={least}")


def _of_broker(settings: BrokerSettings, time: Bounded, bound: str = "") -> int:
    found: int = getattr(settings, f"group_consumer_{bound}{time.attribute}")
    return found


def _parsed(name: str, text: str) -> int:
    value = GROUP[name].parse(text)
    assert isinstance(value, int), "the declared type"
    return value


def _assignor_names(told: tuple[str, ...]) -> tuple[str, ...]:
    """Assignor names, without duplicates; Kafka's class names are translated."""
    return tuple(dict.fromkeys(ASSIGNOR_CLASSES.get(one, one) for one in told))


def group_settings(settings: BrokerSettings, image: MetadataImage) -> GroupSettings:
    """The settings of this broker's group coordinator."""
    times = GroupTimes(**{time.attribute: _of_broker(settings, time) for time in TIMES})
    return GroupSettings(
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        session_timeout_ms_min=settings.group_min_session_timeout_ms,
        session_timeout_ms_max=settings.group_max_session_timeout_ms,
        classic_size_max=settings.group_max_size,
        assignors=_assignor_names(settings.group_consumer_assignors),
        consumer_size_max=settings.group_consumer_max_size,
        migration=settings.group_consumer_migration_policy.lower(),
        regex_refresh_interval_ms=settings.group_consumer_regex_refresh_interval_ms,
        times=times,
        times_of_groups={
            resource.name: _times_of_group(settings, configs)
            for resource, configs in image.configs.items()
            if resource.type == GROUP_RESOURCE
        },
        offset_metadata_bytes_max=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=settings.offsets_retention_check_interval_ms,
    )


def _times_of_group(settings: BrokerSettings, configs: Mapping[str, str]) -> GroupTimes:
    return GroupTimes(**{time.attribute: _time_of_group(settings, configs, time) for time in TIMES})


def _time_of_group(settings: BrokerSettings, configs: Mapping[str, str], time: Bounded) -> int:
    if time.name not in configs:
        return _of_broker(settings, time)
    own = _parsed(time.name, configs[time.name])
    return min(max(own, _of_broker(settings, time, "min_")), _of_broker(settings, time, "max_"))
