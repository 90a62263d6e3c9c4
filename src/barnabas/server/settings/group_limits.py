"""What holds for groups on a broker, and what single groups may set for themselves.

A group's own times must lie within the limits of the broker that takes them. Limits may be changed later:
then what a group has set is brought within them, as Kafka does.
"""

from collections.abc import Mapping

from barnabas.base.settings import InvalidSetting
from barnabas.coordinators.group.assignors.by_name import ASSIGNOR_CLASSES
from barnabas.coordinators.group.settings import GroupSettings, GroupTimes
from barnabas.metadata.image import GROUP_RESOURCE, MetadataImage
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.catalog import GROUP
from barnabas.server.settings.group_times import HEARTBEAT, SESSION, TIMES, Time, check_within


def check_group_config(settings: BrokerSettings, configs: Mapping[str, str]) -> None:
    """InvalidSetting if a group may not have just these set on this broker."""
    for time in TIMES:
        if time.name in configs:
            check_within(
                time.name,
                _parsed(time, configs[time.name]),
                time,
                _of_broker(settings, time, "min_"),
                _of_broker(settings, time, "max_"),
            )
    heartbeat, session = (
        _parsed(time, configs[time.name]) if time.name in configs else _of_broker(settings, time)
        for time in (HEARTBEAT, SESSION)
    )
    if heartbeat >= session and (HEARTBEAT.name in configs or SESSION.name in configs):
        raise InvalidSetting(SESSION.name, str(session), f"must be more than {HEARTBEAT.name}={heartbeat}")


def _of_broker(settings: BrokerSettings, time: Time, limit: str = "") -> int:
    found: int = getattr(settings, f"group_consumer_{limit}{time.attribute}")
    return found


def _parsed(time: Time, text: str) -> int:
    value = GROUP[time.name].parse(text)
    assert isinstance(value, int), "the declared type"
    return value


def _assignor_names(told: tuple[str, ...]) -> tuple[str, ...]:
    """Kafka's classes by their names. One that is told by both is there once."""
    return tuple(dict.fromkeys(ASSIGNOR_CLASSES.get(one, one) for one in told))


def group_settings(settings: BrokerSettings, image: MetadataImage) -> GroupSettings:
    """What holds for groups on this broker."""
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
    return GroupTimes(
        **{
            time.attribute: (
                min(
                    max(_parsed(time, configs[time.name]), _of_broker(settings, time, "min_")),
                    _of_broker(settings, time, "max_"),
                )
                if time.name in configs
                else _of_broker(settings, time)
            )
            for time in TIMES
        }
    )
