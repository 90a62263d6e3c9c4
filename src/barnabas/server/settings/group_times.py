"""The times of consumer groups that a broker decides, and whether they fit together."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from barnabas.base.settings import InvalidSetting


class Time(NamedTuple):
    """One of a group's times: its name there, and of what the broker calls its own and its limits."""

    name: str
    attribute: str

    def setting(self, limit: str = "") -> str:
        return f"group.consumer.{limit}{self.attribute.replace('_', '.')}"


HEARTBEAT: Final = Time("consumer.heartbeat.interval.ms", "heartbeat_interval_ms")
SESSION: Final = Time("consumer.session.timeout.ms", "session_timeout_ms")
ASSIGNMENT: Final = Time("consumer.assignment.interval.ms", "assignment_interval_ms")
TIMES: Final = (HEARTBEAT, SESSION, ASSIGNMENT)


def check_broker_times(values: Mapping[str, Any]) -> None:
    """InvalidSetting if the broker's own times of consumer groups do not fit together."""
    for time in TIMES:
        least, most = values[time.setting("min.")], values[time.setting("max.")]
        if least > most:
            raise InvalidSetting(
                time.setting("max."), str(most), f"must be at least {time.setting('min.')}={least}"
            )
        check_within(time.setting(), values[time.setting()], time, least, most)
    heartbeat, session = values[HEARTBEAT.setting()], values[SESSION.setting()]
    if heartbeat >= session:
        raise InvalidSetting(
            HEARTBEAT.setting(), str(heartbeat), f"must be less than {SESSION.setting()}={session}"
        )


def check_within(name: str, value: int, time: Time, least: int, most: int) -> None:
    if value < least:
        raise InvalidSetting(name, str(value), f"must be at least {time.setting('min.')}={least}")
    if value > most:
        raise InvalidSetting(name, str(value), f"must be at most {time.setting('max.')}={most}")
