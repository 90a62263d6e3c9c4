"""The consumer groups of one shard: the entry point of this package."""

from collections.abc import Set
from typing import Final

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo, answered
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.group.classic.groups import ClassicGroups
from barnabas.coordinators.group.consumer.assigning import Assigning
from barnabas.coordinators.group.consumer.checks import check_heartbeat
from barnabas.coordinators.group.consumer.classic_members import ClassicMembers
from barnabas.coordinators.group.consumer.describe import described
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.heartbeat import Heartbeats
from barnabas.coordinators.group.consumer.leaving import Leaving
from barnabas.coordinators.group.consumer.member import AWAY, LEAVING, MemberState
from barnabas.coordinators.group.consumer.migration import Migration
from barnabas.coordinators.group.consumer.replay import Replay
from barnabas.coordinators.group.consumer.steps import REBALANCE, SESSION
from barnabas.coordinators.group.consumer.topics import Topics
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
)


class ConsumerGroups:
    """Every Outcome contains the answer to the request, possibly an error."""

    def __init__(self, context: ShardContext, classic: ClassicGroups) -> None:
        self._context = context
        self._topics = Topics(context)
        self.assigning: Final = Assigning(context)
        migration = Migration(context, self._topics, classic)
        self._leaving = Leaving(context, self._topics, migration)
        self._heartbeats = Heartbeats(context, self._topics, self.assigning, migration, self._leaving)
        self._classic_members = ClassicMembers(
            context, self._topics, self.assigning, migration, self._leaving
        )
        self._replay = Replay(context, self._topics)

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        idle = self._heartbeats.idle(request, caller, to, now)
        if idle is not None:
            return idle
        try:
            check_heartbeat(request, caller.version, self._context.settings.assignors)
            if request.member_epoch in (LEAVING, AWAY):
                return self._leaving.leave(request, to, now)
            return self._heartbeats.heartbeat(request, caller, to, now)
        except GroupError as error:
            refused = ConsumerGroupHeartbeatResponse(
                error_code=error.code, error_message=error.message, assignment=None
            )
            return answered(to, refused)

    # Classic members of a consumer group

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        return self._classic_members.join(group, request, caller, to, now)

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        return self._classic_members.sync(group, request, caller, to, now)

    def classic_heartbeat(
        self, group: ConsumerGroup, request: HeartbeatRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        return self._classic_members.heartbeat(group, request, to, now)

    def leave(
        self, group: ConsumerGroup, request: LeaveGroupRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        return self._classic_members.leave(group, request, caller, to, now)

    # Timers, metadata, records

    def expire(self, key: TimerKey, now: Now) -> Outcome:
        return self._leaving.expired(key, now)

    def topics_changed(self, names: Set[str]) -> None:
        """Mark the affected groups, which compare their hash with the next heartbeat."""
        for group_id in self._topics.changed(names):
            group = self._context.groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                group.is_fresh = False

    def apply(self, key: object, value: object | None) -> None:
        self._replay.apply(key, value)

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
        return described(group, self._context.image, self._context.settings.assignors)
