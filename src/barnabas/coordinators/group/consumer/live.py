"""Applies records that were decided here, whose in-memory values are used without decoding.

The same record read from a log goes through replay.py, with the same result.
"""

from collections.abc import Callable
from typing import Any

from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.consumer.alike import ALIKE
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import ConsumerMember
from barnabas.coordinators.group.consumer.records import (
    CurrentKey,
    Epoch,
    EpochKey,
    MemberKey,
    TargetEpochKey,
    TargetKey,
)
from barnabas.coordinators.group.consumer.topics import Topics
from barnabas.coordinators.group.context import ShardContext


class Live:
    """Applies live records to the groups of one shard."""

    def __init__(self, context: ShardContext, topics: Topics) -> None:
        self._context = context
        self._topics = topics
        self.by_key: dict[type, Callable[[Any, Any], None]] = {
            EpochKey: self._epoch,
            MemberKey: self._member,
            TargetEpochKey: self._target_epoch,
            TargetKey: self._target,
            CurrentKey: self._current,
        }

    def _group(self, group_id: str) -> ConsumerGroup:
        """The group, created with its first record."""
        group = self._context.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            group = self._context.groups[group_id] = ConsumerGroup(group_id)
        return group

    def _epoch(self, key: EpochKey, value: Epoch) -> None:
        group = self._group(key.group_id)
        group.epoch, group.metadata_hash = value

    def _target_epoch(self, key: TargetEpochKey, value: Epoch) -> None:
        group = self._group(key.group_id)
        group.assignment_epoch, group.assignment_ms = value

    def _member(self, key: MemberKey, value: ConsumerMember) -> None:
        group = self._group(key.group_id)
        touched = group.put_member(group.sharing_topics(value))
        if touched:
            self._topics.follow(group.id, touched, group.subscriptions)

    def _target(self, key: TargetKey, value: Assignment) -> None:
        self._group(key.group_id).put_target(key.member_id, ALIKE.target_like(value))

    def _current(self, key: CurrentKey, value: ConsumerMember) -> None:
        group = self._group(key.group_id)
        group.put_member(group.sharing_topics(value))
