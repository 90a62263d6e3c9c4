"""The range assignor: every topic is split into contiguous ranges, one for each subscriber.

The order of the subscribers is the same for all topics, so members with equal subscriptions get the same
range of all topics with equally many partitions: records with equal keys go to the same member
(co-partitioning). Members are ordered by instance id, then those without one by member id, so that a static
member gets its range again when it returns with a new member id. Previous assignments are ignored.
"""

from collections.abc import Mapping
from typing import cast

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.spec import (
    Assignment,
    MemberSpec,
    TopicSpec,
    in_order_of_ids,
    subscribers_by_topic,
)


def assign_ranges(
    members: Mapping[str, MemberSpec], topics: Mapping[Uuid, TopicSpec]
) -> dict[str, Assignment]:
    order = sorted(members, key=lambda member_id: _place(member_id, members[member_id]))
    subscribers = subscribers_by_topic([members[member_id] for member_id in order])
    assigned: list[Assignment] = [{} for _ in order]
    # Topics with the same split share the sets.
    cuts: dict[tuple[int, int], list[frozenset[int]]] = {}
    for topic in in_order_of_ids(subscribers):
        positions = subscribers[topic]
        how = (topics[topic].partitions, len(positions))
        ranges = cuts.get(how)
        if ranges is None:
            ranges = cuts[how] = _cut(*how)
        # If there are fewer ranges than subscribers, the last subscribers get nothing.
        for position, partitions in zip(positions, ranges, strict=False):
            assigned[position][topic] = partitions
    return {
        member_id: _same_if_equal(members[member_id], assignment)
        for member_id, assignment in zip(order, assigned, strict=True)
    }


def _place(member_id: str, member: MemberSpec) -> tuple[bool, bytes]:
    # Java compares strings by UTF-16 code units.
    if member.instance_id is not None:
        return False, member.instance_id.encode("utf-16-be")
    return True, member_id.encode("utf-16-be")


def _cut(partitions: int, shares: int) -> list[frozenset[int]]:
    """Contiguous non-empty ranges whose lengths differ by at most one, the longer ones first."""
    length, longer = divmod(partitions, shares)
    ranges = []
    start = 0
    for number in range(min(partitions, shares)):
        end = start + length + (number < longer)
        ranges.append(frozenset(range(start, end)))
        start = end
    return ranges


def _same_if_equal(member: MemberSpec, assignment: Assignment) -> Assignment:
    return cast("Assignment", member.owned) if member.owned == assignment else assignment
