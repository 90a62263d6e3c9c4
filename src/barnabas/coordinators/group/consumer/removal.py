"""Removal of members that leave, leave temporarily or expire, and replacement of static members.

A static member that returns with a new id replaces its predecessor. No other member is affected.
"""

from collections.abc import Collection
from dataclasses import replace

from barnabas.coordinators.decision.outcome import Now, Outcome, Record, ReplyTo
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.group.consumer import records
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import (
    JOINING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
    MemberState,
)
from barnabas.coordinators.group.consumer.member_update import MEMBER_TIMERS, REBALANCE
from barnabas.coordinators.group.consumer.migration import Migration
from barnabas.coordinators.group.consumer.subscriptions import TopicIndex
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


class MemberRemoval:
    """Removes members from their groups."""

    def __init__(self, context: ShardContext, topics: TopicIndex, migration: Migration) -> None:
        self._context = context
        self._topics = topics
        self._migration = migration

    def leave(self, request: ConsumerGroupHeartbeatRequest, to: ReplyTo, now: Now) -> Outcome:
        """Handle a heartbeat with a leave epoch. Raises GroupError."""
        group = self._context.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            what = "not found" if group is None else "is not a consumer group"
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {what}.")
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = group.static_member_with_id(request.instance_id, request.member_id)
        outcome = Outcome()
        if request.instance_id is not None and request.member_epoch == STATIC_LEAVING_EPOCH:
            # Its session continues: if it does not return in time it is removed.
            outcome.write(records.current_record(group.id, member.left_temporarily()))
        else:
            outcome.add(self.remove(group, [member], now))
        outcome.answer(
            to,
            ConsumerGroupHeartbeatResponse(
                member_id=request.member_id, member_epoch=request.member_epoch, assignment=None
            ),
        )
        return outcome

    def expire(self, key: TimerKey, now: Now) -> Outcome:
        """A session, a revocation or a classic join or sync has timed out."""
        kind, group_id, member_id = key
        group = self._context.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if member is None or (kind == REBALANCE and not _still_revokes(member)):
            return Outcome()
        assert isinstance(group, ConsumerGroup)
        return self.remove(group, [member], now)

    def remove(self, group: ConsumerGroup, members: Collection[ConsumerMember], now: Now) -> Outcome:
        """Remove members and bump the epoch; the group becomes a classic one if only classic members
        remain."""
        outcome = Outcome()
        if not members:
            return outcome
        for member in members:
            self.cancel_timers(group, member)
        if self._migration.downgrades_without(group, members):
            return self._migration.downgrade(group, members, now)
        for member in members:
            outcome.records += records.member_tombstones(group.id, member.id)
        subscriptions = group.subscriptions.copy()
        touched: set[str] = set()
        for member in members:
            touched |= subscriptions.replace(member, None)
        for regex in [one for one in group.subscriptions.regexes if one not in subscriptions.regexes]:
            touched |= subscriptions.resolve(regex, None)
            outcome.write(records.regex_tombstone(group.id, regex))
        metadata_hash = group.metadata_hash
        if touched or not group.is_fresh:
            metadata_hash = self._topics.hash_of(subscriptions)
        outcome.write(records.epoch_record(group.id, group.epoch + 1, metadata_hash))
        return outcome

    def cancel_timers(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        for kind in MEMBER_TIMERS:
            self._context.timers.cancel((kind, group.id, member.id))


def _still_revokes(member: ConsumerMember) -> bool:
    return member.state is MemberState.UNREVOKED and member.epoch != STATIC_LEAVING_EPOCH


def with_new_id(existing: ConsumerMember, member_id: str) -> ConsumerMember:
    """The same member with a new id and its old partitions."""
    return replace(existing, id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)


def replacement_records(
    group: ConsumerGroup, replaced: ConsumerMember, member: ConsumerMember
) -> list[Record]:
    return [
        *records.member_tombstones(group.id, replaced.id),
        records.member_record(group.id, member),
        records.target_record(group.id, member.id, group.targets.get(replaced.id, {})),
        records.current_record(group.id, member),
    ]
