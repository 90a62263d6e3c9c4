"""The uniform assignor: equally many partitions for each member, with as few moves as possible.

homogeneous.py handles equal subscriptions, heterogeneous.py different ones. Both start from the previous
assignments, which are validated here for different subscriptions.
"""

from collections.abc import Mapping
from typing import TypeAlias, cast

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.heterogeneous import assign_by_load
from barnabas.coordinators.group.assignors.homogeneous import share_evenly
from barnabas.coordinators.group.assignors.spec import Assignment, MemberSpec, TopicSpec

_Members: TypeAlias = Mapping[str, MemberSpec]
_Topics: TypeAlias = Mapping[Uuid, TopicSpec]


def assign_uniformly(members: _Members, topics: _Topics, *, homogeneous: bool) -> dict[str, Assignment]:
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
