"""A schedule: the faults of a run as data, so that a stored failure survives changes of the code.

A rule has a trigger and an action. Triggers name events of the shipped code (base/probes.py) and roles rather
than nodes: "the second time the leader sends a vote". In JSON:

    [{"when": {"probe": "raft.VoteAnswer", "role": "any", "nth": 2},
      "do": "kill", "role": "same", "for_ms": 3000}]
"""

import json
from collections.abc import Collection, Iterable
from typing import Any, Final

from barnabas.base.values import value

# Roles besides the names of nodes. `same` is the node of the trigger's event.
ROLES: Final = ("any", "leader", "follower", "observer", "all", "same")

# Each action with its parameters besides role and for_ms.
ACTIONS: Final[dict[str, tuple[str, ...]]] = {
    "kill": (),
    "power": (),
    "terminate": (),
    "pause": (),
    "suspend": (),
    "isolate": ("direction",),
    "part": ("direction",),
    "cut": ("other",),
    "reset": (),
    "delay": ("ms",),
    "slow_disk": ("ms",),
    "hang_disk": (),
    "fail_disk": ("operation", "count"),
    "full_disk": (),
    "evict": (),
    "drift": ("ppm",),
    "jump": ("by_ms",),
    "hold": ("request",),
}


class InvalidSchedule(ValueError):
    """A schedule names an event, role or action that does not exist, so it would test nothing."""


@value(kw_only=True)
class Trigger:
    """A time since the start, or the nth time that a probe is reported by a node with a role."""

    at_ms: int | None = None
    probe: str | None = None
    role: str = "any"
    nth: int = 1


@value(kw_only=True)
class Rule:
    """One fault. `for_ms` is how long it lasts; None means until the end of the faults."""

    when: Trigger
    do: str
    role: str = "any"
    for_ms: int | None = None
    # The parameters of the action, in the order of their names.
    facts: tuple[tuple[str, Any], ...] = ()

    def fact(self, name: str) -> Any:
        return dict(self.facts)[name]

    def __str__(self) -> str:
        when = self.when
        at = (
            f"at {when.at_ms} ms"
            if when.at_ms is not None
            else f"when {when.role} reports {when.probe} ({when.nth})"
        )
        facts = "".join(f" {name}={fact}" for name, fact in self.facts)
        lasts = "" if self.for_ms is None else f" for {self.for_ms} ms"
        return f"{at}: {self.do} {self.role}{facts}{lasts}"


def to_json(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    found = []
    for rule in rules:
        when = rule.when
        trigger: dict[str, Any] = (
            {"at_ms": when.at_ms}
            if when.at_ms is not None
            else {"probe": when.probe, "role": when.role, "nth": when.nth}
        )
        one = {"when": trigger, "do": rule.do, "role": rule.role, **dict(rule.facts)}
        found.append(one if rule.for_ms is None else {**one, "for_ms": rule.for_ms})
    return found


def from_json(content: Any, *, probes: Collection[str]) -> tuple[Rule, ...]:
    """Parse and check rules. `probes` are the names of the events that the run can report."""
    if not isinstance(content, list):
        raise InvalidSchedule(f"a schedule is a list of rules, not {type(content).__name__}")
    return tuple(_rule(one, probes) for one in content)


def _rule(content: dict[str, Any], probes: Collection[str]) -> Rule:
    rest = dict(content)
    when, do = Trigger(**rest.pop("when")), rest.pop("do")
    role, for_ms = rest.pop("role", "any"), rest.pop("for_ms", None)
    if (when.at_ms is None) == (when.probe is None):
        raise InvalidSchedule(f"a trigger has either at_ms or probe: {json.dumps(content)}")
    if when.probe is not None and when.probe not in probes:
        raise InvalidSchedule(f"unknown probe {when.probe!r}; known: {', '.join(sorted(probes))}")
    if do not in ACTIONS:
        raise InvalidSchedule(f"unknown action {do!r}; known: {', '.join(ACTIONS)}")
    if set(rest) != set(ACTIONS[do]):
        raise InvalidSchedule(f"{do} takes {ACTIONS[do] or 'no parameters'}, not {sorted(rest)}")
    for name in (role, when.role):
        if name not in ROLES and not name[1:].isdigit():
            raise InvalidSchedule(f"unknown role {name!r}; known: {', '.join(ROLES)} and node names")
    if role == "same" and when.probe is None:
        raise InvalidSchedule("role `same` needs a probe as its trigger")
    return Rule(when=when, do=do, role=role, for_ms=for_ms, facts=tuple(sorted(rest.items())))
