"""The uniform assignor for equal subscriptions: every member gets exactly its quota (compiled).

Most groups are homogeneous, and a group of a thousand is reassigned for every joining member. So this needs
only the previous assignments, and no object per member.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

from mypy_extensions import i64

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.spec import Assignment, TopicSpec, in_order_of_ids

_NONE: Final[frozenset[int]] = frozenset()
_NOTHING: Final[Assignment] = {}
_Partition: TypeAlias = tuple[Uuid, int]


def share_evenly(
    owned: dict[str, Assignment], subscribed: frozenset[Uuid], topics: dict[Uuid, TopicSpec]
) -> dict[str, Assignment]:
    """Move partitions from members above their quota to members below it.

    `owned` contains every member; a member whose assignment does not change gets its object back.
    """
    claimed = _claimed(owned, subscribed, topics)
    if claimed is None:
        owned = _without_contradictions(owned, subscribed, topics)
        claimed = _claimed(owned, subscribed, topics)
        assert claimed is not None
    free = _unclaimed(subscribed, topics, claimed)
    total: i64 = 0
    for topic in subscribed:
        total += topics[topic].partitions
    still_to_come: i64 = len(owned)
    quota: i64 = total // still_to_come
    extras: i64 = total % still_to_come
    assigned: dict[str, Assignment] = {}
    wanting: list[tuple[str, int]] = []
    for member_id, had in owned.items():
        allowed: i64 = quota + 1 if extras > 0 else quota
        held: i64 = 0
        is_foreign = False
        for topic, numbers in had.items():
            held += len(numbers)
            if topic not in subscribed:
                is_foreign = True
        kept = had
        if held > allowed or is_foreign:
            kept = kept_of(had, subscribed, allowed, free)
            held = 0
            for numbers in kept.values():
                held += len(numbers)
        wants: i64 = allowed - held
        if extras > 0:
            if wants > 0 and still_to_come > extras:
                # A later member may already have an extra partition, which should not move.
                wants -= 1
            else:
                extras -= 1
        still_to_come -= 1
        if wants > 0:
            wanting.append((member_id, wants))
        assigned[member_id] = kept
    give(free, wanting, assigned)
    return assigned


def _claimed(
    owned: dict[str, Assignment], subscribed: frozenset[Uuid], topics: dict[Uuid, TopicSpec]
) -> dict[Uuid, set[int]] | None:
    """The owned partitions. None if one has two owners or does not exist."""
    claimed: dict[Uuid, set[int]] = {topic: set() for topic in subscribed}
    claims: i64 = 0
    for had in owned.values():
        for topic, numbers in had.items():
            of_topic = claimed.get(topic)
            if of_topic is not None:
                claims += len(numbers)
                of_topic |= numbers
    for topic, of_topic in claimed.items():
        claims -= len(of_topic)
        if max(of_topic, default=-1) >= topics[topic].partitions:
            return None
    return claimed if claims == 0 else None


def _without_contradictions(
    owned: dict[str, Assignment], subscribed: frozenset[Uuid], topics: dict[Uuid, TopicSpec]
) -> dict[str, Assignment]:
    """Give contested partitions to their first owner, and drop nonexistent ones.

    A new coordinator may have an older image than the previous one, and so fewer partitions than were
    assigned. Two owners mean a damaged log. Kafka's assignors would fail or assign twice; here the group
    continues.
    """
    taken: dict[Uuid, set[int]] = {topic: set() for topic in subscribed}
    sound: dict[str, Assignment] = {}
    for member_id, had in owned.items():
        mine: Assignment = {}
        for topic, numbers in had.items():
            others = taken.get(topic)
            if others is None:
                continue
            good = (numbers - others) & frozenset(range(topics[topic].partitions))
            others |= good
            if good:
                mine[topic] = good
        sound[member_id] = had if mine == had else mine
    return sound


def _unclaimed(
    subscribed: Iterable[Uuid], topics: dict[Uuid, TopicSpec], claimed: dict[Uuid, set[int]]
) -> list[_Partition]:
    found: list[_Partition] = []
    for topic in in_order_of_ids(subscribed):
        claimed_of_topic = claimed[topic]
        count = topics[topic].partitions
        if len(claimed_of_topic) < count:
            found += [(topic, number) for number in range(count) if number not in claimed_of_topic]
    return found


def kept_of(had: Assignment, subscribed: frozenset[Uuid], quota: i64, free: list[_Partition]) -> Assignment:
    """The part of `had` that a member may keep; the rest is added to `free`."""
    kept: Assignment = {}
    for topic, numbers in had.items():
        if topic not in subscribed:
            continue
        mine = numbers
        if len(numbers) > quota:
            in_order = sorted(numbers)
            most = max(int(quota), 0)
            mine = frozenset(in_order[:most])
            free += [(topic, number) for number in in_order[most:]]
        if mine:
            kept[topic] = mine
        quota -= len(mine)
    return kept


def give(free: list[_Partition], wanting: list[tuple[str, int]], assigned: dict[str, Assignment]) -> None:
    """Add to each wanting member's assignment as many free partitions as it wants."""
    start = 0
    for member_id, wants in wanting:
        given: dict[Uuid, list[int]] = {}
        for topic, number in free[start : start + wants]:
            given.setdefault(topic, []).append(number)
        start += wants
        # A copy, because the existing object may be the member's previous assignment.
        more = dict(assigned[member_id])
        for topic, numbers in given.items():
            more[topic] = more.get(topic, _NONE).union(numbers)
        assigned[member_id] = more
    assert start == len(free), f"{len(free)} partitions for {start} places"


# Comparison of the targets before and after an assignment


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
