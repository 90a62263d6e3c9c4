"""The assignors by the names that clients and settings use.

The uniform assignor gives each member equally many partitions with as few moves as possible. homogeneous.py
handles equal subscriptions, heterogeneous.py different ones. Both start from the previous assignments, which
are validated here for different subscriptions.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.heterogeneous import assign_by_load
from barnabas.coordinators.group.assignors.homogeneous import share_evenly
from barnabas.coordinators.group.assignors.ranges import assign_ranges
from barnabas.coordinators.group.assignors.spec import Assignment, MemberSpec, TopicSpec

_Members: TypeAlias = Mapping[str, MemberSpec]
_Topics: TypeAlias = Mapping[Uuid, TopicSpec]

UNIFORM: Final = "uniform"
RANGE: Final = "range"
ASSIGNORS: Final = (UNIFORM, RANGE)
# Class names in properties files written for Kafka.
ASSIGNOR_CLASSES: Final = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": UNIFORM,
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": RANGE,
}


def assign(
    assignor: str,
    members: Mapping[str, MemberSpec],
    topics: Mapping[Uuid, TopicSpec],
    *,
    homogeneous: bool,
) -> dict[str, Assignment]:
    """The target assignment of every member. `homogeneous` means that all subscribe to the same topics.

    A member whose assignment does not change gets its `owned` object back. `topics` contains at least every
    subscribed topic.
    """
    assert assignor in ASSIGNORS, f"unknown assignor {assignor}"
    if not members:
        return {}
    if assignor == RANGE:
        return assign_ranges(members, topics)
    return _assign_uniformly(members, topics, homogeneous=homogeneous)


def _assign_uniformly(members: _Members, topics: _Topics, *, homogeneous: bool) -> dict[str, Assignment]:
    if homogeneous:
        subscribed = next(iter(members.values())).topics
        owned = {member_id: cast("Assignment", member.owned) for member_id, member in members.items()}
        return share_evenly(owned, subscribed, dict(topics))
    claimed = _claimed(members, topics)
    if claimed is None:
        members = _without_contradictions(members, topics)
        claimed = _claimed(members, topics)
        assert claimed is not None
    return assign_by_load(members, topics, claimed)


def _claimed(members: _Members, topics: _Topics) -> dict[Uuid, set[int]] | None:
    """The partitions whose owner subscribes to them. None if one has two owners or does not exist."""
    claimed: dict[Uuid, set[int]] = {}
    claims = 0
    for member in members.values():
        for topic, partitions in member.owned.items():
            if topic in member.topics:
                claims += len(partitions)
                of_topic = claimed.get(topic)
                if of_topic is None:
                    claimed[topic] = set(partitions)
                else:
                    of_topic |= partitions
    if claims != sum(map(len, claimed.values())):
        return None
    for topic, partitions_claimed in claimed.items():
        if max(partitions_claimed, default=-1) >= topics[topic].partitions:
            return None
    return claimed


def _without_contradictions(members: _Members, topics: _Topics) -> _Members:
    """Give contested partitions to their first owner, and drop nonexistent ones: see homogeneous.py."""
    taken: dict[Uuid, set[int]] = {}
    sound = {}
    for member_id, member in members.items():
        owned = {}
        for topic, partitions in member.owned.items():
            if topic not in member.topics:
                continue
            others = taken.setdefault(topic, set())
            mine = (partitions - others) & frozenset(range(topics[topic].partitions))
            others |= mine
            if mine:
                owned[topic] = mine
        sound[member_id] = member._replace(owned=member.owned if owned == member.owned else owned)
    return sound
