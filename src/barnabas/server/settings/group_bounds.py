"""Settings of groups that a broker bounds, and whether they fit together."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from barnabas.base.settings import InvalidSetting


class Bounded(NamedTuple):
    """A setting that groups of one kind may set, between two bounds of the broker."""

    kind: str
    what: str

    @property
    def name(self) -> str:
        """As a group sets it for itself."""
        return f"{self.kind}.{self.what}"

    @property
    def attribute(self) -> str:
        return self.what.replace(".", "_")

    def setting(self, bound: str = "") -> str:
        """The broker's setting for groups that do not set it, or one of its bounds: "min." or "max."."""
        return f"group.{self.kind}.{bound}{self.what}"


KINDS: Final = ("consumer", "share", "streams")
_HEARTBEAT: Final = "heartbeat.interval.ms"
_SESSION: Final = "session.timeout.ms"
_OF_ALL_KINDS: Final = (_HEARTBEAT, _SESSION, "assignment.interval.ms")
# The times of consumer groups.
TIMES: Final = tuple(Bounded("consumer", what) for what in _OF_ALL_KINDS)
BOUNDED: Final = (
    *(Bounded(kind, what) for kind in KINDS for what in _OF_ALL_KINDS),
    Bounded("share", "delivery.count.limit"),
    Bounded("share", "partition.max.record.locks"),
    Bounded("share", "record.lock.duration.ms"),
)
# Bounded from above only.
STANDBYS: Final = "streams.num.standby.replicas"
_STANDBYS_MAX: Final = "group.streams.max.standby.replicas"


def heartbeat_and_session(kind: str) -> tuple[Bounded, Bounded]:
    return Bounded(kind, _HEARTBEAT), Bounded(kind, _SESSION)


def check_broker_bounds(values: Mapping[str, Any]) -> None:
    """InvalidSetting if the broker's own settings of groups do not fit together."""
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
    """InvalidSetting if the value is not between the bounds that the broker's `values` have."""
    least, most = bounded.setting("min."), bounded.setting("max.")
    if value < values[least]:
        raise InvalidSetting(name, str(value), f"must be at least {least}={values[least]}")
    if value > values[most]:
        raise InvalidSetting(name, str(value), f"must be at most {most}={values[most]}")


def check_standbys(name: str, value: int, values: Mapping[str, Any]) -> None:
    if value > values[_STANDBYS_MAX]:
        raise InvalidSetting(name, str(value), f"must be at most {_STANDBYS_MAX}={values[_STANDBYS_MAX]}")
