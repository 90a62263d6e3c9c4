"""Computation of the target assignment of a group for a new epoch."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.by_name import UNIFORM, assign
from barnabas.coordinators.group.assignors.homogeneous import changed_members, owned_by, share_evenly
from barnabas.coordinators.group.assignors.shares import Shares
from barnabas.coordinators.group.assignors.spec import Assignment, MemberSpec, TopicSpec
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import ConsumerMember
from barnabas.coordinators.group.consumer.subscriptions import Subscriptions
from barnabas.metadata.image import MetadataImage


class Change(NamedTuple):
    """A changed member that is not in the group yet, and the resulting subscriptions."""

    before: ConsumerMember
    after: ConsumerMember
    subscriptions: Subscriptions


def changed_targets(
    group: ConsumerGroup, change: Change, image: MetadataImage, assignors: tuple[str, ...]
) -> dict[str, Assignment]:
    """The changed targets of the members after the change.

    Always includes members that had no target.
    """
    after = change.after
    replaced = group.static_member(after.instance_id)
    is_new = after.id not in group.members
    takes_over = replaced is not None and replaced.id != after.id
    assignor = preferred_assignor(group, change, assignors)
    topics = _topic_specs(change.subscriptions, image)
    is_homogeneous = change.subscriptions.homogeneous(len(group.members) + is_new - takes_over)
    if is_homogeneous and assignor == UNIFORM:
        # The common case, and the critical one for large groups: no objects are created per member.
        subscribed = _ids(change.subscriptions.topics_of(after), image)
        counted = group.targets.get(after.id)
        is_counted = counted is None if is_new else counted is group.target_of(after)
        if is_counted and not takes_over:
            dealt = _dealt(group, after.id, subscribed, topics)
            if dealt is not None:
                return dealt
        owned = owned_by(_members(group, after, replaced), group.targets)
        owned[after.id] = group.target_of(after)
        targets = share_evenly(owned, subscribed, topics)
    else:
        specs = _member_specs(group, change, _members(group, after, replaced), image)
        targets = assign(assignor, specs, topics, homogeneous=is_homogeneous)
    return {member_id: targets[member_id] for member_id in changed_members(targets, group.targets)}


def _dealt(
    group: ConsumerGroup, member_id: str, subscribed: frozenset[Uuid], topics: dict[Uuid, TopicSpec]
) -> dict[str, Assignment] | None:
    """The changed targets from incremental counts, created with the first join. None if they are
    inconsistent."""
    if group.shares is None:
        group.shares = Shares(group.members, group.targets)
    dealt = group.shares.deal(member_id, subscribed, topics)
    if dealt is None:
        group.shares = None
    return dealt


def _members(
    group: ConsumerGroup, after: ConsumerMember, replaced: ConsumerMember | None
) -> dict[str, ConsumerMember]:
    members = dict(group.members)
    if replaced is not None and replaced.id != after.id:
        del members[replaced.id]
    members[after.id] = after
    return members


def preferred_assignor(group: ConsumerGroup, change: Change | None, assignors: tuple[str, ...]) -> str:
    """The assignor that most members prefer; the broker's first one if no member has a preference."""
    counts = group.assignors.copy()
    if change is not None:
        for member, difference in ((change.before, -1), (change.after, +1)):
            if member.assignor is not None:
                counts[member.assignor] = counts.get(member.assignor, 0) + difference
    counts = {name: count for name, count in counts.items() if count > 0 and name in assignors}
    if not counts:
        return assignors[0]
    return max(assignors, key=lambda name: counts.get(name, 0))


def _member_specs(
    group: ConsumerGroup, change: Change, members: Mapping[str, ConsumerMember], image: MetadataImage
) -> dict[str, MemberSpec]:
    # Cached by subscription, because most members have the same one.
    ids_of: dict[tuple[tuple[str, ...], str | None], frozenset[Uuid]] = {}
    specs = {}
    for member_id, member in members.items():
        key = (member.topics, member.regex)
        ids = ids_of.get(key)
        if ids is None:
            ids = ids_of[key] = _ids(change.subscriptions.topics_of(member), image)
        owned = group.target_of(member) if member is change.after else group.targets.get(member_id, {})
        specs[member_id] = MemberSpec(member.instance_id, member.rack, ids, owned)
    return specs


def _ids(names: Iterable[str], image: MetadataImage) -> frozenset[Uuid]:
    return frozenset(image.topics[name].id for name in names if name in image.topics)


def _topic_specs(subscriptions: Subscriptions, image: MetadataImage) -> dict[Uuid, TopicSpec]:
    # Racks are omitted: the assignors of Kafka 4.3 do not use them.
    specs = {}
    for name in subscriptions:
        topic = image.topics.get(name)
        if topic is not None:
            specs[topic.id] = TopicSpec(len(topic.partitions))
    return specs
