"""The targets of all members of a group, from one assignment to the next (compiled)."""

from collections.abc import Iterable
from typing import Final

from barnabas.coordinators.group.assignors.spec import Assignment

_NOTHING: Final[Assignment] = {}


def owned_by(members: Iterable[str], targets: dict[str, Assignment]) -> dict[str, Assignment]:
    """What each member has, in the order of the members."""
    owned: dict[str, Assignment] = {}
    for member_id in members:
        owned[member_id] = targets.get(member_id, _NOTHING)
    return owned


def changed_members(targets: dict[str, Assignment], before: dict[str, Assignment]) -> list[str]:
    """Who is to have something else than before. Who had no target at all has changed in any case."""
    changed: list[str] = []
    for member_id, target in targets.items():
        had = before.get(member_id)
        # Most members keep the very object that they had.
        if target is not had and target != had:
            changed.append(member_id)
    return changed
