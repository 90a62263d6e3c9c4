"""Reconciliation of a member's current assignment with its target, one step per heartbeat.

The owner of a partition is asked to revoke it, and stays in its epoch until it confirms; then it advances to
the new epoch, and only then the partition is free for its next owner. So no partition has two owners, and a
member waits only for the current owners of its partitions. (KIP-848)
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.consumer.member import (
    INTERNED,
    NO_PARTITIONS,
    ConsumerMember,
    MemberState,
    PartitionEpochs,
)
from barnabas.coordinators.group.group import GroupError
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode

# The partitions that a member reports as owned; None if not reported.
Owned: TypeAlias = Iterable[tuple[Uuid, Iterable[int]]] | None

_NONE: Final[frozenset[int]] = frozenset()


class Target(NamedTuple):
    """The target assignment of a member and its epoch."""

    epoch: int
    partitions: Mapping[Uuid, frozenset[int]]


class SubscribedTopics(NamedTuple):
    """The subscribed topics of one member: names, matched against topic ids by the image."""

    names: frozenset[str]
    image: MetadataImage

    def has(self, topic_id: Uuid) -> bool:
        topic = self.image.topics_by_id.get(topic_id)
        return topic is not None and topic.name in self.names


class StepInputs(NamedTuple):
    """The inputs of a step besides the member and its target."""

    owned: Owned
    subscribed: SubscribedTopics
    # If true, the member must revoke partitions of unsubscribed topics immediately.
    subscription_changed: bool
    holder: Callable[[Uuid, int], str | None]


def next_step(member: ConsumerMember, target: Target, inputs: StepInputs) -> ConsumerMember:
    """The member after its next step; the same object if it cannot take one."""
    match member.state:
        case MemberState.STABLE if member.epoch != target.epoch:
            return _advance(member, target, inputs, member.epoch)
        case MemberState.UNREVOKED if not _owns_any(inputs.owned, member.revoking):
            return _advance(member, target, inputs, member.epoch)
        case MemberState.UNRELEASED:
            return _advance(member, target, inputs, member.epoch)
        case MemberState.UNKNOWN:
            if inputs.owned is None or any(True for _ in inputs.owned):
                raise GroupError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The member's state is unknown. The member must abandon all its partitions and rejoin.",
                )
            return _advance(member, target, inputs, target.epoch)
    return _revoke_unsubscribed(member, inputs) if inputs.subscription_changed else member


def _advance(member: ConsumerMember, target: Target, inputs: StepInputs, epoch: int) -> ConsumerMember:
    """Advance towards the target: first revoke partitions, then assign free ones."""
    assigned: dict[Uuid, dict[int, int]] = {}
    revoking: dict[Uuid, dict[int, int]] = {}
    free: dict[Uuid, list[int]] = {}
    unreleased = False
    for topic_id in {**target.partitions, **member.assigned}:
        wanted = _NONE if not inputs.subscribed.has(topic_id) else target.partitions.get(topic_id, _NONE)
        has = member.assigned.get(topic_id, NO_PARTITIONS)
        kept = {partition: since for partition, since in has.items() if partition in wanted}
        if kept:
            assigned[topic_id] = kept
        if len(kept) < len(has):
            revoking[topic_id] = {
                partition: since for partition, since in has.items() if partition not in wanted
            }
        if len(kept) == len(wanted):
            continue
        own = member.revoking.get(topic_id, NO_PARTITIONS)
        for partition in sorted(wanted - kept.keys()):
            if inputs.holder(topic_id, partition) is None or partition in own:
                free.setdefault(topic_id, []).append(partition)
            else:
                unreleased = True
    if revoking and _owns_any(inputs.owned, revoking):
        return member.after_step(
            epoch, MemberState.UNREVOKED, INTERNED.intern_held(assigned), INTERNED.intern_held(revoking)
        )
    for topic_id, partitions in free.items():
        assigned.setdefault(topic_id, {}).update(dict.fromkeys(partitions, target.epoch))
    state = MemberState.UNRELEASED if unreleased else MemberState.STABLE
    return member.after_step(target.epoch, state, INTERNED.intern_held(assigned))


def _revoke_unsubscribed(member: ConsumerMember, inputs: StepInputs) -> ConsumerMember:
    """Revoke the topics that it no longer subscribes to, in its current epoch."""
    lost = {topic: held for topic, held in member.assigned.items() if not inputs.subscribed.has(topic)}
    if not lost:
        return member
    assigned = {topic: held for topic, held in member.assigned.items() if topic not in lost}
    revoking: dict[Uuid, Mapping[int, int]] = dict(member.revoking)
    for topic_id, held in lost.items():
        revoking[topic_id] = {**revoking.get(topic_id, NO_PARTITIONS), **held}
    if _owns_any(inputs.owned, revoking):
        return member.after_step(member.epoch, MemberState.UNREVOKED, assigned, revoking)
    return member.after_step(member.epoch, member.state, assigned, member.revoking)


def _owns_any(owned: Owned, held: PartitionEpochs) -> bool:
    """A member that does not report its partitions is assumed to own all of them."""
    if owned is None:
        return True
    return any(
        partition in held.get(topic_id, NO_PARTITIONS)
        for topic_id, partitions in owned
        for partition in partitions
    )


def is_part_of(owned: Owned, assigned: PartitionEpochs) -> bool:
    """Whether all reported partitions are assigned to the member; False if not reported."""
    if owned is None:
        return False
    for topic_id, partitions in owned:
        held: Container[int] | None = assigned.get(topic_id)
        if held is None or any(partition not in held for partition in partitions):
            return False
    return True
