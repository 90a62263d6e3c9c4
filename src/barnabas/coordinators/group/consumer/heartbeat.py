"""ConsumerGroupHeartbeat (key 68), versions 0-1: a member joins, reports changes, and gets its assignment.

v0 the coordinator generates the member id; v1 the client does, and may subscribe by regular expression.

Leaving is in leaving.py. Most heartbeats change nothing: they cost a few comparisons and one timer.
"""

from sys import intern

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo
from barnabas.coordinators.group.consumer.assigning import Assigning
from barnabas.coordinators.group.consumer.checks import (
    check_epoch,
    check_released,
    check_room,
    known_instance,
)
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.leaving import Leaving
from barnabas.coordinators.group.consumer.member import JOINING, ConsumerMember, Held
from barnabas.coordinators.group.consumer.migration import Migration, Opening
from barnabas.coordinators.group.consumer.reconcile import Owned
from barnabas.coordinators.group.consumer.replacing import replacement_records, replacing
from barnabas.coordinators.group.consumer.steps import SESSION, Steps
from barnabas.coordinators.group.consumer.topics import Topics
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)


class Heartbeats:
    """Handles heartbeats of current and joining members. Raises GroupError."""

    def __init__(
        self,
        context: ShardContext,
        topics: Topics,
        assigning: Assigning,
        migration: Migration,
        leaving: Leaving,
    ) -> None:
        self._context = context
        self._topics = topics
        self._assigning = assigning
        self._migration = migration
        self._leaving = leaving

    def idle(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome | None:
        """The outcome of a heartbeat without any change, as nearly all are; else None.

        The same outcome as that of heartbeat(), at a fraction of the cost.
        """
        group = self._context.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            return None
        member = group.members.get(request.member_id)
        if (
            member is None
            or request.member_epoch != member.epoch
            or (request.instance_id is not None and group.static.get(request.instance_id) != member.id)
            or not _tells_nothing(request)
            or member.client_id != caller.client_id
            or member.client_host != caller.host
            or member.classic is not None
            or not _nothing_to_do(group, member)
        ):
            return None
        return self._answer(Outcome(), group, member, to, now, tell=False)

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        opening = self._open(request)
        group = opening.group
        check_room(group, request.member_id, self._context.settings.consumer_size_max)
        member_id = request.member_id or self._context.new_member_id()
        before, replaced = _member(group, request, member_id)
        after = _told(group, before, request, caller)
        outcome = Outcome()
        if after is not before or not _nothing_to_do(group, after):
            steps = Steps(self._context, self._topics, self._assigning, group, before, after)
            steps.subscribe(now)
            steps.count_epoch()
            target = steps.target(now)
            steps.check_size(opening.records, target)
            steps.reconcile(target, _owned(request), now)
            after = steps.member
            if opening.classic is not None:
                outcome.add(self._migration.carried_out(opening, now))
            if replaced is not None:
                outcome.records += replacement_records(group, replaced, before)
                self._leaving.forget_timers(group, replaced)
            outcome.records += steps.records
        tell = (
            request.member_epoch == JOINING
            or _is_full(request)
            or (after.assigned is not before.assigned and after.assigned != before.assigned)
        )
        return self._answer(outcome, group, after, to, now, tell=tell)

    def _answer(
        self,
        outcome: Outcome,
        group: ConsumerGroup,
        member: ConsumerMember,
        to: ReplyTo,
        now: Now,
        *,
        tell: bool,
    ) -> Outcome:
        """Extend the session and respond; `tell` includes the assignment."""
        times = self._context.settings.times_of(group.id)
        self._context.timers.set((SESSION, group.id, member.id), now.tick_ms + times.session_timeout_ms)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=times.heartbeat_interval_ms,
            assignment=_assignment(member.assigned) if tell else None,
        )
        outcome.answer(to, response)
        return outcome

    def _open(self, request: ConsumerGroupHeartbeatRequest) -> Opening:
        """The group, created for its first member, or converted from a classic group."""
        group = self._context.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return Opening(group)
        if request.member_epoch != JOINING:
            what = "not found" if group is None else "is not a consumer group"
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {what}.")
        if group is None:
            return Opening(ConsumerGroup(request.group_id))
        return self._migration.opened(group)


def _nothing_to_do(group: ConsumerGroup, member: ConsumerMember) -> bool:
    return (
        group.is_fresh
        and group.assignment_epoch >= group.epoch
        and member.is_reconciled_to(group.assignment_epoch)
        and not group.subscriptions.regexes
    )


def _member(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str
) -> tuple[ConsumerMember, ConsumerMember | None]:
    """The member that sends the heartbeat, and the static member that it replaces."""
    joining = request.member_epoch == JOINING
    if request.instance_id is None:
        member = _known_or_new(group, member_id) if joining else group.member(member_id)
        check_epoch(member, request.member_epoch, _owned(request))
        return member, None
    if not joining:
        member = known_instance(group, request.instance_id, member_id)
        check_epoch(member, request.member_epoch, _owned(request))
        return member, None
    existing = group.static_member(request.instance_id)
    if existing is None:
        return _known_or_new(group, member_id), None
    if existing.classic is None:
        check_released(existing, member_id)
    return replacing(existing, member_id), existing


def _known_or_new(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(id=member_id)


def _told(
    group: ConsumerGroup, member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, caller: Caller
) -> ConsumerMember:
    """The member updated from the request; the same object if nothing changed. Null fields are unchanged."""
    instance_id = member.instance_id if request.instance_id is None else request.instance_id
    rack = member.rack if request.rack_id is None else request.rack_id
    timeout_ms = request.rebalance_timeout_ms
    if timeout_ms == -1:
        timeout_ms = member.rebalance_timeout_ms
    assignor = member.assignor if request.server_assignor is None else request.server_assignor
    regex = member.regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex
    topics = member.topics
    if request.subscribed_topic_names is not None:
        topics = group.shared_topics(tuple(sorted(set(request.subscribed_topic_names))))
    if (
        topics == member.topics
        and regex == member.regex
        and member.client_id == caller.client_id
        and member.client_host == caller.host
        and instance_id == member.instance_id
        and rack == member.rack
        and timeout_ms == member.rebalance_timeout_ms
        and assignor == member.assignor
        and member.classic is None
    ):
        return member
    return ConsumerMember(
        id=member.id,
        instance_id=instance_id,
        rack=None if rack is None else intern(rack),
        client_id=intern(caller.client_id),
        client_host=intern(caller.host),
        rebalance_timeout_ms=timeout_ms,
        topics=topics,
        regex=regex,
        assignor=None if assignor is None else intern(assignor),
        classic=None,
        epoch=member.epoch,
        previous_epoch=member.previous_epoch,
        state=member.state,
        assigned=member.assigned,
        revoking=member.revoking,
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    return [(topic.topic_id, topic.partitions) for topic in request.topic_partitions]


def _tells_nothing(request: ConsumerGroupHeartbeatRequest) -> bool:
    return (
        request.rebalance_timeout_ms == -1
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.rack_id is None
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """A full request: the member has reconnected and needs its complete assignment."""
    return (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
    )


def _assignment(assigned: Held) -> ConsumerGroupHeartbeatResponseAssignment:
    return ConsumerGroupHeartbeatResponseAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )
