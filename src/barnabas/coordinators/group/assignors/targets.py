"""Comparison of a group's targets before and after an assignment (compiled)."""

from collections.abc import Iterable
from typing import Final

from barnabas.coordinators.group.assignors.spec import Assignment

_NOTHING: Final[Assignment] = {}


def owned_by(members: Iterable[str], targets: dict[str, Assignment]) -> dict[str, Assignment]:
    """The target of each member, in the order of the members."""
    owned: dict[str, Assignment] = {}
    for member_id in members:
        owned[member_id] = targets.get(member_id, _NOTHING)
    return owned


def changed_members(targets: dict[str, Assignment], before: dict[str, Assignment]) -> list[str]:
    """The members whose target changes. A member without a previous target always counts as changed."""
    changed: list[str] = []
    for member_id, target in targets.items():
        had = before.get(member_id)
        # Compared by identity first, because most members keep their object.
        if target is not had and target != had:
            changed.append(member_id)
    return changed
