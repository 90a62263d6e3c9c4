"""Applies the records of consumer groups, live and while loading.

A compacted log may start anywhere: a value may come before the records of its group or member, and a
tombstone without them. So a value creates its group and member, and a tombstone ignores missing ones. Most
live records are not messages and go to live.py.
"""

from collections.abc import Callable
from typing import Any

from barnabas.coordinators.group.consumer.alike import ALIKE
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.live import Live
from barnabas.coordinators.group.consumer.member import ConsumerMember
from barnabas.coordinators.group.consumer.subscriptions import ResolvedRegex
from barnabas.coordinators.group.consumer.topics import Topics
from barnabas.coordinators.group.context import ShardContext
from barnabas.protocol.stored import consumer_groups as stored

# The assignment epoch after a tombstone of the target assignment.
_NO_EPOCH = -1


class Replay:
    """Applies records to the groups of one shard."""

    def __init__(self, context: ShardContext, topics: Topics) -> None:
        self._context = context
        self._topics = topics
        self._by_key: dict[type, Callable[[Any, Any], None]] = {
            stored.ConsumerGroupMetadataKey: self._epoch,
            stored.ConsumerGroupPartitionMetadataKey: self._partition_metadata,
            stored.ConsumerGroupMemberMetadataKey: self._member,
            stored.ConsumerGroupTargetAssignmentMetadataKey: self._target_epoch,
            stored.ConsumerGroupTargetAssignmentMemberKey: self._target,
            stored.ConsumerGroupCurrentMemberAssignmentKey: self._current,
            stored.ConsumerGroupRegularExpressionKey: self._regex,
            **Live(context, topics).by_key,
        }

    def apply(self, key: object, value: object | None) -> None:
        """Apply a record. Records of other group types are ignored."""
        take = self._by_key.get(type(key))
        if take is not None:
            take(key, value)

    def _known(self, group_id: str) -> ConsumerGroup | None:
        group = self._context.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def _made(self, group_id: str) -> ConsumerGroup:
        """The group; created if missing or if a classic group has only offsets."""
        group = self._known(group_id)
        if group is None:
            group = self._context.groups[group_id] = ConsumerGroup(group_id)
        return group

    def _epoch(
        self, key: stored.ConsumerGroupMetadataKey, value: stored.ConsumerGroupMetadataValue | None
    ) -> None:
        if value is not None:
            group = self._made(key.group_id)
            group.epoch = value.epoch
            group.metadata_hash = value.metadata_hash
        elif known := self._known(key.group_id):
            self._topics.follow(known.id, list(known.subscriptions), ())
            self._context.remove(known.id)

    def _partition_metadata(
        self,
        key: stored.ConsumerGroupPartitionMetadataKey,
        value: stored.ConsumerGroupPartitionMetadataValue | None,
    ) -> None:
        if value is not None:
            self._made(key.group_id).has_partition_metadata = True
        elif known := self._known(key.group_id):
            known.has_partition_metadata = False

    def _member(
        self,
        key: stored.ConsumerGroupMemberMetadataKey,
        value: stored.ConsumerGroupMemberMetadataValue | None,
    ) -> None:
        if value is not None:
            group = self._made(key.group_id)
            member = group.members.get(key.member_id) or ConsumerMember(id=key.member_id)
            touched = group.put_member(group.sharing_topics(member.told(value)))
            self._topics.follow(group.id, touched, group.subscriptions)
        elif known := self._known(key.group_id):
            self._topics.follow(known.id, known.remove_member(key.member_id), known.subscriptions)

    def _target_epoch(
        self,
        key: stored.ConsumerGroupTargetAssignmentMetadataKey,
        value: stored.ConsumerGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        if value is not None:
            group = self._made(key.group_id)
            group.assignment_epoch = value.assignment_epoch
            group.assignment_ms = value.assignment_timestamp
        elif known := self._known(key.group_id):
            known.assignment_epoch = _NO_EPOCH
            known.assignment_ms = 0

    def _target(
        self,
        key: stored.ConsumerGroupTargetAssignmentMemberKey,
        value: stored.ConsumerGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is not None:
            target = ALIKE.target(value.topic_partitions)
            self._made(key.group_id).put_target(key.member_id, target)
        elif known := self._known(key.group_id):
            known.put_target(key.member_id, None)

    def _current(
        self,
        key: stored.ConsumerGroupCurrentMemberAssignmentKey,
        value: stored.ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        if value is not None:
            group = self._made(key.group_id)
            member = group.members.get(key.member_id) or ConsumerMember(id=key.member_id)
            assigned = ALIKE.held(value.assigned_partitions, value.member_epoch)
            revoking = ALIKE.held(value.partitions_pending_revocation, value.member_epoch)
            group.put_member(member.placed(value, assigned, revoking))
        elif known := self._known(key.group_id):
            displaced = known.members.get(key.member_id)
            if displaced is not None:
                known.put_member(displaced.displaced())

    def _regex(
        self,
        key: stored.ConsumerGroupRegularExpressionKey,
        value: stored.ConsumerGroupRegularExpressionValue | None,
    ) -> None:
        if value is not None:
            group = self._made(key.group_id)
            resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
            touched = group.subscriptions.resolve(key.regular_expression, resolved)
            self._topics.follow(group.id, touched, group.subscriptions)
        elif known := self._known(key.group_id):
            touched = known.subscriptions.resolve(key.regular_expression, None)
            self._topics.follow(known.id, touched, known.subscriptions)
