"""The consumer groups of one shard: the parts that serve them, metadata changes, loading and description."""

from collections.abc import Iterable, Mapping, Set
from typing import Final

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Now, Outcome
from barnabas.coordinators.group.classic.groups import ClassicGroups
from barnabas.coordinators.group.consumer.classic_members import ClassicMembers
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.heartbeat import Heartbeats
from barnabas.coordinators.group.consumer.member import (
    ConsumerMember,
    MemberState,
)
from barnabas.coordinators.group.consumer.member_update import REBALANCE, SESSION
from barnabas.coordinators.group.consumer.migration import Migration
from barnabas.coordinators.group.consumer.removal import MemberRemoval
from barnabas.coordinators.group.consumer.replay import Replay
from barnabas.coordinators.group.consumer.subscriptions import TopicIndex
from barnabas.coordinators.group.consumer.target import DeferredAssignments, preferred_assignor
from barnabas.coordinators.group.context import ShardContext
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseTopicPartitions,
    DescribedGroup,
    Member,
)


class ConsumerGroups:
    """The shard calls the parts. Every Outcome contains the answer to the request, possibly an error."""

    def __init__(self, context: ShardContext, classic: ClassicGroups) -> None:
        self._context = context
        self._topics = TopicIndex(context)
        self.assigning: Final = DeferredAssignments(context)
        migration = Migration(context, self._topics, classic)
        self.removal: Final = MemberRemoval(context, self._topics, migration)
        self.heartbeats: Final = Heartbeats(context, self._topics, self.assigning, migration, self.removal)
        self.classic_members: Final = ClassicMembers(
            context, self._topics, self.assigning, migration, self.removal
        )
        self.replay: Final = Replay(context, self._topics)

    def topics_changed(self, names: Set[str]) -> None:
        """Mark the affected groups, which compare their hash with the next heartbeat."""
        for group_id in self._topics.changed(names):
            group = self._context.groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                group.is_fresh = False

    def loaded(self, now: Now) -> Outcome:
        """Start sessions. Members that were revoking partitions get the full rebalance timeout again."""
        timers = self._context.timers
        for group in self._context.groups.values():
            if not isinstance(group, ConsumerGroup):
                continue
            session_ms = self._context.settings.times_of(group.id).session_timeout_ms
            for member in group.members.values():
                timers.set((SESSION, group.id, member.id), now.tick_ms + session_ms)
                if member.state is MemberState.UNREVOKED:
                    timers.set((REBALANCE, group.id, member.id), now.tick_ms + member.rebalance_timeout_ms)
        return Outcome()

    def describe(self, group: ConsumerGroup) -> DescribedGroup:
        return _described(group, self._context.image, self._context.settings.assignors)


# Values of member_type.
_CLASSIC = 0
_CONSUMER = 1


def _described(group: ConsumerGroup, image: MetadataImage, assignors: tuple[str, ...]) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group, None, assignors),
        members=[_described_member(group, member, image) for member in group.members.values()],
    )


def _described_member(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> Member:
    # Partitions pending revocation still belong to the member.
    held: dict[Uuid, list[int]] = {}
    for part in (member.assigned, member.revoking):
        for topic_id, partitions in part.items():
            held.setdefault(topic_id, []).extend(partitions)
    return Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(held, image),
        target_assignment=_assignment(group.targets.get(member.id, {}), image),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(
    partitions: Mapping[Uuid, Iterable[int]], image: MetadataImage
) -> ConsumerGroupDescribeResponseAssignment:
    return ConsumerGroupDescribeResponseAssignment(
        topic_partitions=[
            ConsumerGroupDescribeResponseTopicPartitions(
                topic_id=topic_id, topic_name=image.topics_by_id[topic_id].name, partitions=sorted(numbers)
            )
            for topic_id, numbers in partitions.items()
            if topic_id in image.topics_by_id
        ]
    )
