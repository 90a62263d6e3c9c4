"""Applies the records of consumer groups, live and while loading.

A compacted log may start anywhere: a value may come before the records of its group or member, and a
tombstone without them. So a value creates its group and member, and a tombstone ignores missing ones. Most
records that were decided here are not messages; the same record read from a log has the same result.
"""

from collections.abc import Callable
from typing import Any

from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import INTERNED, ConsumerMember
from barnabas.coordinators.group.consumer.records import (
    CurrentKey,
    Epoch,
    EpochKey,
    MemberKey,
    TargetEpochKey,
    TargetKey,
)
from barnabas.coordinators.group.consumer.subscriptions import ResolvedRegex, TopicIndex
from barnabas.coordinators.group.context import ShardContext
from barnabas.protocol.stored import consumer_groups as stored

# The assignment epoch after a tombstone of the target assignment.
_NO_EPOCH = -1


class Replay:
    """Applies records to the groups of one shard."""

    def __init__(self, context: ShardContext, topics: TopicIndex) -> None:
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
            EpochKey: self._decided_epoch,
            MemberKey: self._decided_member,
            TargetEpochKey: self._decided_target_epoch,
            TargetKey: self._decided_target,
            CurrentKey: self._decided_current,
        }

    def apply(self, key: object, value: object | None) -> None:
        """Apply a record. Records of other group types are ignored."""
        apply = self._by_key.get(type(key))
        if apply is not None:
            apply(key, value)

    def _known(self, group_id: str) -> ConsumerGroup | None:
        group = self._context.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def _group(self, group_id: str) -> ConsumerGroup:
        """The group; created if missing or if a classic group has only offsets."""
        group = self._context.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            group = self._context.groups[group_id] = ConsumerGroup(group_id)
        return group

    # Records as messages

    def _epoch(
        self, key: stored.ConsumerGroupMetadataKey, value: stored.ConsumerGroupMetadataValue | None
    ) -> None:
        if value is not None:
            group = self._group(key.group_id)
            group.epoch = value.epoch
            group.metadata_hash = value.metadata_hash
        elif known := self._known(key.group_id):
            self._topics.update(known.id, list(known.subscriptions), ())
            self._context.remove(known.id)

    def _partition_metadata(
        self,
        key: stored.ConsumerGroupPartitionMetadataKey,
        value: stored.ConsumerGroupPartitionMetadataValue | None,
    ) -> None:
        if value is not None:
            self._group(key.group_id).has_partition_metadata = True
        elif known := self._known(key.group_id):
            known.has_partition_metadata = False

    def _member(
        self,
        key: stored.ConsumerGroupMemberMetadataKey,
        value: stored.ConsumerGroupMemberMetadataValue | None,
    ) -> None:
        if value is not None:
            group = self._group(key.group_id)
            member = group.members.get(key.member_id) or ConsumerMember(id=key.member_id)
            touched = group.put_member(group.with_shared_topics(member.with_metadata(value)))
            self._topics.update(group.id, touched, group.subscriptions)
        elif known := self._known(key.group_id):
            self._topics.update(known.id, known.remove_member(key.member_id), known.subscriptions)

    def _target_epoch(
        self,
        key: stored.ConsumerGroupTargetAssignmentMetadataKey,
        value: stored.ConsumerGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        if value is not None:
            group = self._group(key.group_id)
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
            target = INTERNED.read_target(value.topic_partitions)
            self._group(key.group_id).put_target(key.member_id, target)
        elif known := self._known(key.group_id):
            known.put_target(key.member_id, None)

    def _current(
        self,
        key: stored.ConsumerGroupCurrentMemberAssignmentKey,
        value: stored.ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        if value is not None:
            group = self._group(key.group_id)
            member = group.members.get(key.member_id) or ConsumerMember(id=key.member_id)
            assigned = INTERNED.read_held(value.assigned_partitions, value.member_epoch)
            revoking = INTERNED.read_held(value.partitions_pending_revocation, value.member_epoch)
            group.put_member(member.with_assignment(value, assigned, revoking))
        elif known := self._known(key.group_id):
            displaced = known.members.get(key.member_id)
            if displaced is not None:
                known.put_member(displaced.without_assignment())

    def _regex(
        self,
        key: stored.ConsumerGroupRegularExpressionKey,
        value: stored.ConsumerGroupRegularExpressionValue | None,
    ) -> None:
        if value is not None:
            group = self._group(key.group_id)
            resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
            touched = group.subscriptions.resolve(key.regular_expression, resolved)
            self._topics.update(group.id, touched, group.subscriptions)
        elif known := self._known(key.group_id):
            touched = known.subscriptions.resolve(key.regular_expression, None)
            self._topics.update(known.id, touched, known.subscriptions)

    # Records that were decided here, whose in-memory values are used without decoding

    def _decided_epoch(self, key: EpochKey, value: Epoch) -> None:
        group = self._group(key.group_id)
        group.epoch, group.metadata_hash = value

    def _decided_target_epoch(self, key: TargetEpochKey, value: Epoch) -> None:
        group = self._group(key.group_id)
        group.assignment_epoch, group.assignment_ms = value

    def _decided_member(self, key: MemberKey, value: ConsumerMember) -> None:
        group = self._group(key.group_id)
        touched = group.put_member(group.with_shared_topics(value))
        if touched:
            self._topics.update(group.id, touched, group.subscriptions)

    def _decided_target(self, key: TargetKey, value: Assignment) -> None:
        self._group(key.group_id).put_target(key.member_id, INTERNED.intern_target(value))

    def _decided_current(self, key: CurrentKey, value: ConsumerMember) -> None:
        group = self._group(key.group_id)
        group.put_member(group.with_shared_topics(value))
