"""Target assignments of a group for a new epoch.

A group's assignment is computed within the request, or for a large group off the event loop: a heartbeat
requests it and continues with the current one. The runtime runs AssignmentJob.compute() in the executor, one
at a time, and delivers the result, which a later decision applies. (runtime/assigner.py)
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Now, Outcome
from barnabas.coordinators.group.assignors.assignor import UNIFORM, assign
from barnabas.coordinators.group.assignors.homogeneous import changed_members, owned_by, share_evenly
from barnabas.coordinators.group.assignors.shares import Shares
from barnabas.coordinators.group.assignors.spec import Assignment, MemberSpec, TopicSpec
from barnabas.coordinators.group.consumer import records
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import ConsumerMember
from barnabas.coordinators.group.consumer.subscriptions import Subscriptions
from barnabas.coordinators.group.context import ShardContext
from barnabas.metadata.image import MetadataImage

# Maximum of members times topics for an assignment within a request: about 20 ms.
ASSIGNED_AT_ONCE_MAX: Final = 10_000


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
            incremental = _assign_incrementally(group, after.id, subscribed, topics)
            if incremental is not None:
                return incremental
        owned = owned_by(_members(group, after, replaced), group.targets)
        owned[after.id] = group.target_of(after)
        targets = share_evenly(owned, subscribed, topics)
    else:
        specs = _member_specs(group, change, _members(group, after, replaced), image)
        targets = assign(assignor, specs, topics, homogeneous=is_homogeneous)
    return {member_id: targets[member_id] for member_id in changed_members(targets, group.targets)}


def _assign_incrementally(
    group: ConsumerGroup, member_id: str, subscribed: frozenset[Uuid], topics: dict[Uuid, TopicSpec]
) -> dict[str, Assignment] | None:
    """The changed targets from incremental counts, created with the first join. None if they are
    inconsistent."""
    if group.shares is None:
        group.shares = Shares(group.members, group.targets)
    targets = group.shares.deal(member_id, subscribed, topics)
    if targets is None:
        group.shares = None
    return targets


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


# Large groups


class AssignmentJob(NamedTuple):
    """A snapshot of one group. compute() may run in any thread."""

    epoch: int
    group: ConsumerGroup
    change: Change
    image: MetadataImage
    assignors: tuple[str, ...]

    def compute(self) -> dict[str, Assignment]:
        return changed_targets(self.group, self.change, self.image, self.assignors)


class DeferredAssignments:
    """The groups of one shard that wait for an assignment. `on_wanted` is called for the first one."""

    def __init__(self, context: ShardContext) -> None:
        self._context = context
        self.wanted: Final[dict[str, None]] = {}
        self.on_wanted: Callable[[], None] | None = None

    def defers(self, group: ConsumerGroup, change: Change) -> bool:
        """Request an assignment off the loop if it takes long and an executor is available. True if
        requested."""
        if self.on_wanted is None or len(group.members) * len(change.subscriptions) <= ASSIGNED_AT_ONCE_MAX:
            return False
        members = len(group.members) + (change.after.id not in group.members)
        is_simple = preferred_assignor(group, change, self._context.settings.assignors) == UNIFORM
        if is_simple and change.subscriptions.homogeneous(members):
            return False
        is_first = not self.wanted
        self.wanted[group.id] = None
        if is_first:
            self.on_wanted()
        return True

    def begin(self, group_id: str) -> AssignmentJob | None:
        """The job for a group; None if no assignment is needed any more."""
        group = self._context.groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or group.is_empty or group.assignment_epoch >= group.epoch:
            return None
        member = next(iter(group.members.values()))
        return AssignmentJob(
            group.epoch,
            group.snapshot(),
            Change(member, member, group.subscriptions.copy()),
            self._context.image,
            self._context.settings.assignors,
        )

    def finish(self, job: AssignmentJob, targets: Mapping[str, Assignment], now: Now) -> Outcome:
        """Write the result for the members that still exist."""
        outcome = Outcome(is_tentative=True, is_divisible=True)
        group = self._context.groups.get(job.group.id)
        if not isinstance(group, ConsumerGroup) or group.assignment_epoch >= job.epoch:
            return outcome
        for member_id, target in targets.items():
            present = _present_id(group, job.group, member_id)
            if present is not None:
                outcome.write(records.target_record(group.id, present, target))
        outcome.write(records.target_epoch_record(group.id, job.epoch, now.ms))
        return outcome


def _present_id(group: ConsumerGroup, before: ConsumerGroup, member_id: str) -> str | None:
    """The member id, or that of the static member that has replaced it since."""
    if member_id in group.members:
        return member_id
    instance_id = before.members[member_id].instance_id
    return None if instance_id is None else group.static.get(instance_id)
