"""Uniform, where all members subscribe to the same topics: everybody has a quota, and it is met exactly."""

from collections.abc import Iterable, Mapping, Set
from typing import Final, TypeAlias, cast

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.spec import Assignment, MemberSpec, TopicSpec, in_order_of_ids

_NONE: Final[frozenset[int]] = frozenset()
_Partition: TypeAlias = tuple[Uuid, int]


def assign_by_quota(
    members: Mapping[str, MemberSpec], topics: Mapping[Uuid, TopicSpec], claimed: Mapping[Uuid, Set[int]]
) -> dict[str, Assignment]:
    """Take from those who have more than their quota, and give to those who have less.

    `claimed` are the partitions that have an owner.
    """
    subscribed = next(iter(members.values())).topics
    free = _unclaimed(subscribed, topics, claimed)
    total = sum(topics[topic].partitions for topic in subscribed)
    quota, extras = divmod(total, len(members))
    assigned: dict[str, Assignment] = {}
    wanting: list[tuple[str, int]] = []
    still_to_come = len(members)
    for member_id, member in members.items():
        quota_of_member = quota + (extras > 0)
        kept = _kept(member.owned, subscribed, quota_of_member, free)
        wants = quota_of_member - sum(map(len, kept.values()))
        if extras > 0:
            if wants > 0 and still_to_come > extras:
                # Somebody who comes later may have one more than the others already: it should not move.
                wants -= 1
            else:
                extras -= 1
        still_to_come -= 1
        if wants > 0:
            wanting.append((member_id, wants))
        assigned[member_id] = kept
    _give(free, wanting, assigned)
    return assigned


def _unclaimed(
    subscribed: Iterable[Uuid], topics: Mapping[Uuid, TopicSpec], claimed: Mapping[Uuid, Set[int]]
) -> list[_Partition]:
    found = []
    for topic in in_order_of_ids(subscribed):
        claimed_of_topic = claimed.get(topic, _NONE)
        count = topics[topic].partitions
        if len(claimed_of_topic) < count:
            found += [(topic, number) for number in range(count) if number not in claimed_of_topic]
    return found


def _kept(
    owned: Mapping[Uuid, frozenset[int]], subscribed: Set[Uuid], quota: int, free: list[_Partition]
) -> Assignment:
    """What a member may keep; what it loses is added to `free`."""
    if sum(map(len, owned.values())) <= quota and owned.keys() <= subscribed:
        return cast("Assignment", owned)
    kept = {}
    for topic, partitions in owned.items():
        if topic not in subscribed:
            continue
        mine = partitions
        if len(partitions) > quota:
            in_order = sorted(partitions)
            mine = frozenset(in_order[:quota])
            free += [(topic, number) for number in in_order[quota:]]
        if mine:
            kept[topic] = mine
        quota -= len(mine)
    return kept


def _give(
    free: list[_Partition], wanting: Iterable[tuple[str, int]], assigned: dict[str, Assignment]
) -> None:
    start = 0
    for member_id, wants in wanting:
        given: dict[Uuid, list[int]] = {}
        for topic, number in free[start : start + wants]:
            given.setdefault(topic, []).append(number)
        start += wants
        # A new one: what is there may be the member's own.
        more = dict(assigned[member_id])
        for topic, numbers in given.items():
            more[topic] = more.get(topic, _NONE).union(numbers)
        assigned[member_id] = more
    assert start == len(free), f"{len(free)} partitions for {start} places"
