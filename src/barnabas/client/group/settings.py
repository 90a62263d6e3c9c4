"""Group member settings with the names and defaults of Kafka's consumer."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from barnabas.base.setting_rules import Rule, Value, at_least, one_of
from barnabas.base.settings import InvalidSetting, format_value, setting, settings_of
from barnabas.client.settings import BOOLEAN, INT, LIST, STRING, ClientSettings

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
_JAVA: Final = "org.apache.kafka.clients.consumer."
# Class names of the assignors in Kafka's consumer.
ASSIGNOR_CLASSES: Final = {
    f"{_JAVA}RangeAssignor": "range",
    f"{_JAVA}RoundRobinAssignor": "roundrobin",
    f"{_JAVA}StickyAssignor": "sticky",
    f"{_JAVA}CooperativeStickyAssignor": "cooperative-sticky",
}
ASSIGNOR_NAMES: Final = tuple(ASSIGNOR_CLASSES.values())
# Set at the broker for groups of the consumer protocol.
_DECIDED_BY_THE_GROUP: Final = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "partition.assignment.strategy",
)


def _are_assignors(value: Value) -> bool:
    if not isinstance(value, tuple) or not value:
        return False
    names = [ASSIGNOR_CLASSES.get(each, each) for each in value]
    return len(set(names)) == len(names) and set(names) <= set(ASSIGNOR_NAMES)


_NOT_EMPTY: Final = Rule("a name", lambda value: isinstance(value, str) and value != "")
_STRATEGIES: Final = Rule(
    f"a list of {', '.join(ASSIGNOR_NAMES)} or their Java classes, each at most once", _are_assignors
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings(ClientSettings):
    group_id: str | None = setting(
        "group.id",
        STRING,
        None,
        "consumer group of this consumer",
        rule=_NOT_EMPTY,
    )
    group_instance_id: str | None = setting(
        "group.instance.id",
        STRING,
        None,
        "lasting name of this member; a restart within session.timeout.ms moves no partitions",
        rule=_NOT_EMPTY,
    )
    group_protocol: str = setting(
        "group.protocol",
        STRING,
        CLASSIC,
        "side that assigns partitions: a member (classic), or the broker (consumer, KIP-848)",
        rule=one_of(CLASSIC, CONSUMER),
    )
    group_remote_assignor: str | None = setting(
        "group.remote.assignor",
        STRING,
        None,
        "assignor of the broker, for the consumer protocol (none: the broker chooses)",
        rule=_NOT_EMPTY,
    )
    session_timeout_ms: int = setting(
        "session.timeout.ms",
        INT,
        45_000,
        "remove a member that sends no heartbeat for this long",
        rule=at_least(1),
    )
    heartbeat_interval_ms: int = setting(
        "heartbeat.interval.ms", INT, 3_000, "interval of heartbeats", rule=at_least(1)
    )
    max_poll_interval_ms: int = setting(
        "max.poll.interval.ms",
        INT,
        300_000,
        "leave the group if the reader does not come back for this long, until it does",
        rule=at_least(1),
    )
    partition_assignment_strategy: tuple[str, ...] = setting(
        "partition.assignment.strategy",
        LIST,
        ("range", "cooperative-sticky"),
        "assignors that the leader of a classic group may use, in order of preference",
        rule=_STRATEGIES,
    )
    enable_auto_commit: bool = setting(
        "enable.auto.commit",
        BOOLEAN,
        True,
        "commit offsets automatically; only with a group.id",
    )
    auto_commit_interval_ms: int = setting(
        "auto.commit.interval.ms", INT, 5_000, "interval of automatic commits", rule=at_least(0)
    )
    exclude_internal_topics: bool = setting(
        "exclude.internal.topics",
        BOOLEAN,
        True,
        "exclude Kafka's internal topics from a pattern",
    )

    @property
    def auto_commits(self) -> bool:
        return self.enable_auto_commit and self.group_id is not None

    @property
    def assignors(self) -> tuple[str, ...]:
        """The assignor names as sent to the broker."""
        return tuple(ASSIGNOR_CLASSES.get(each, each) for each in self.partition_assignment_strategy)


def check_together(settings: GroupSettings, given: Collection[str]) -> None:
    """Refuse conflicting settings, as Kafka's consumer does; `given` are the names that were set."""

    def refuse(name: str, why: str) -> None:
        value = getattr(settings, settings_of(type(settings))[name].attribute)
        raise InvalidSetting(name, format_value(value) or "", why)

    if settings.group_id is None and "enable.auto.commit" in given and settings.enable_auto_commit:
        refuse("enable.auto.commit", "needs group.id")
    if settings.group_protocol == CONSUMER:
        for name in _DECIDED_BY_THE_GROUP:
            if name in given:
                refuse(name, "is set at the broker with group.protocol=consumer")
    elif "group.remote.assignor" in given:
        refuse("group.remote.assignor", "needs group.protocol=consumer")
    elif settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        refuse("heartbeat.interval.ms", f"must be below session.timeout.ms={settings.session_timeout_ms}")
