"""Group settings with bounds in the broker's settings, and the checks of these bounds."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from barnabas.base.settings import InvalidSetting


class Bounded(NamedTuple):
    """A setting that groups of one kind may override within the broker's bounds."""

    kind: str
    what: str

    @property
    def name(self) -> str:
        """The name of the group setting."""
        return f"{self.kind}.{self.what}"

    @property
    def attribute(self) -> str:
        return self.what.replace(".", "_")

    def setting(self, bound: str = "") -> str:
        """The name of the broker setting with its default or, with "min." or "max.", one of its bounds."""
        return f"group.{self.kind}.{bound}{self.what}"


KINDS: Final = ("consumer", "share", "streams")
_HEARTBEAT: Final = "heartbeat.interval.ms"
_SESSION: Final = "session.timeout.ms"
_OF_ALL_KINDS: Final = (_HEARTBEAT, _SESSION, "assignment.interval.ms")
# Intervals and timeouts of consumer groups.
TIMES: Final = tuple(Bounded("consumer", what) for what in _OF_ALL_KINDS)
BOUNDED: Final = (
    *(Bounded(kind, what) for kind in KINDS for what in _OF_ALL_KINDS),
    Bounded("share", "delivery.count.limit"),
    Bounded("share", "partition.max.record.locks"),
    Bounded("share", "record.lock.duration.ms"),
)
# Has only an upper bound.
STANDBYS: Final = "streams.num.standby.replicas"
_STANDBYS_MAX: Final = "group.streams.max.standby.replicas"


def heartbeat_and_session(kind: str) -> tuple[Bounded, Bounded]:
    return Bounded(kind, _HEARTBEAT), Bounded(kind, _SESSION)


def check_broker_bounds(values: Mapping[str, Any]) -> None:
    """InvalidSetting if the broker's defaults for groups contradict its bounds or one another."""
    for one in BOUNDED:
        least, most = values[one.setting("min.")], values[one.setting("max.")]
        if least > most:
            raise InvalidSetting(
                one.setting("max."), str(most), f"must be at least {one.setting('min.')}={least}"
            )
        check_within(one.setting(), values[one.setting()], one, values)
    check_standbys(f"group.{STANDBYS}", values[f"group.{STANDBYS}"], values)
    for kind in KINDS:
        heartbeat, session = (one.setting() for one in heartbeat_and_session(kind))
        if values[heartbeat] >= values[session]:
            raise InvalidSetting(
                heartbeat, str(values[heartbeat]), f"must be less than {session}={values[session]}"
            )


def check_within(name: str, value: int, bounded: Bounded, values: Mapping[str, Any]) -> None:
    """InvalidSetting if the value is not within the bounds in the broker's `values`."""
    least, most = bounded.setting("min."), bounded.setting("max.")
    if value < values[least]:
        raise InvalidSetting(name, str(value), f"must be at least {least}={values[least]}")
    if value > values[most]:
        raise InvalidSetting(name, str(value), f"must be at most {most}={values[most]}")


def check_standbys(name: str, value: int, values: Mapping[str, Any]) -> None:
    if value > values[_STANDBYS_MAX]:
        raise InvalidSetting(name, str(value), f"must be at most {_STANDBYS_MAX}={values[_STANDBYS_MAX]}")
