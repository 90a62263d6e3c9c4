"""ConsumerGroupHeartbeat (key 68), versions 0-1: a member joins, reports changes, and gets its assignment.

v0 the coordinator generates the member id; v1 the client does, and may subscribe by regular expression.

Leaving is in removal.py. Most heartbeats change nothing: they cost a few comparisons and one timer.
"""

from collections.abc import Sequence
from sys import intern

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo, answered
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
    PartitionEpochs,
)
from barnabas.coordinators.group.consumer.member_update import SESSION, MemberUpdate
from barnabas.coordinators.group.consumer.migration import GroupToJoin, Migration
from barnabas.coordinators.group.consumer.reconcile import Owned, is_part_of
from barnabas.coordinators.group.consumer.removal import MemberRemoval, replacement_records, with_new_id
from barnabas.coordinators.group.consumer.subscriptions import TopicIndex
from barnabas.coordinators.group.consumer.target import DeferredAssignments
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
    """Handles heartbeats."""

    def __init__(
        self,
        context: ShardContext,
        topics: TopicIndex,
        assigning: DeferredAssignments,
        migration: Migration,
        removal: MemberRemoval,
    ) -> None:
        self._context = context
        self._topics = topics
        self._assigning = assigning
        self._migration = migration
        self._removal = removal

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        """The outcome contains the response, possibly an error."""
        unchanged = self._unchanged(request, caller, to, now)
        if unchanged is not None:
            return unchanged
        try:
            _check_request(request, caller.version, self._context.settings.assignors)
            if request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH):
                return self._removal.leave(request, to, now)
            return self._update(request, caller, to, now)
        except GroupError as error:
            refused = ConsumerGroupHeartbeatResponse(
                error_code=error.code, error_message=error.message, assignment=None
            )
            return answered(to, refused)

    def _unchanged(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome | None:
        """The outcome of a heartbeat without any change, as nearly all are; else None.

        The same outcome as that of _update(), at a fraction of the cost.
        """
        group = self._context.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            return None
        member = group.members.get(request.member_id)
        if (
            member is None
            or request.member_epoch != member.epoch
            or (request.instance_id is not None and group.static.get(request.instance_id) != member.id)
            or not _changes_nothing(request)
            or member.client_id != caller.client_id
            or member.client_host != caller.host
            or member.classic is not None
            or not _is_up_to_date(group, member)
        ):
            return None
        return self._answer(Outcome(), group, member, to, now, with_assignment=False)

    def _update(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        """Update the member and take its next step. GroupError if the request is refused."""
        joined = self._group_to_join(request)
        group = joined.group
        group.check_room(request.member_id, self._context.settings.consumer_size_max)
        member_id = request.member_id or self._context.new_member_id()
        before, replaced = _member(group, request, member_id)
        after = _updated_member(group, before, request, caller)
        outcome = Outcome()
        if after is not before or not _is_up_to_date(group, after):
            update = MemberUpdate(self._context, self._topics, self._assigning, group, before, after)
            update.subscribe(now)
            update.bump_epoch()
            target = update.target(now)
            update.check_size(joined.records, target)
            update.reconcile(target, _owned(request), now)
            after = update.member
            if joined.classic is not None:
                outcome.add(self._migration.finish_upgrade(joined, now))
            if replaced is not None:
                outcome.records += replacement_records(group, replaced, before)
                self._removal.cancel_timers(group, replaced)
            outcome.records += update.records
        with_assignment = (
            request.member_epoch == JOINING_EPOCH
            or _is_full(request)
            or (after.assigned is not before.assigned and after.assigned != before.assigned)
        )
        return self._answer(outcome, group, after, to, now, with_assignment=with_assignment)

    def _answer(
        self,
        outcome: Outcome,
        group: ConsumerGroup,
        member: ConsumerMember,
        to: ReplyTo,
        now: Now,
        *,
        with_assignment: bool,
    ) -> Outcome:
        """Extend the session and respond; `with_assignment` includes the assignment."""
        times = self._context.settings.times_of(group.id)
        self._context.timers.set((SESSION, group.id, member.id), now.tick_ms + times.session_timeout_ms)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=times.heartbeat_interval_ms,
            assignment=_assignment(member.assigned) if with_assignment else None,
        )
        outcome.answer(to, response)
        return outcome

    def _group_to_join(self, request: ConsumerGroupHeartbeatRequest) -> GroupToJoin:
        """The group, created for its first member, or converted from a classic group."""
        group = self._context.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return GroupToJoin(group)
        if request.member_epoch != JOINING_EPOCH:
            what = "not found" if group is None else "is not a consumer group"
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {what}.")
        if group is None:
            return GroupToJoin(ConsumerGroup(request.group_id))
        return self._migration.prepare_upgrade(group)


def _is_up_to_date(group: ConsumerGroup, member: ConsumerMember) -> bool:
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
    joining = request.member_epoch == JOINING_EPOCH
    if request.instance_id is None:
        member = _known_or_new(group, member_id) if joining else group.member(member_id)
        _check_epoch(member, request.member_epoch, _owned(request))
        return member, None
    if not joining:
        member = group.static_member_with_id(request.instance_id, member_id)
        _check_epoch(member, request.member_epoch, _owned(request))
        return member, None
    existing = group.static_member(request.instance_id)
    if existing is None:
        return _known_or_new(group, member_id), None
    if existing.classic is None:
        _check_released(existing, member_id)
    return with_new_id(existing, member_id), existing


def _known_or_new(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(id=member_id)


def _updated_member(
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


def _changes_nothing(request: ConsumerGroupHeartbeatRequest) -> bool:
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


def _assignment(assigned: PartitionEpochs) -> ConsumerGroupHeartbeatResponseAssignment:
    return ConsumerGroupHeartbeatResponseAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )


def _check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Checks that need only the request."""
    # In version 0 the coordinator generates the id of a joining member.
    if version >= 1 or request.member_epoch > JOINING_EPOCH or request.member_epoch == LEAVING_EPOCH:
        _check_not_blank(request.member_id, "MemberId")
    _check_not_blank(request.group_id, "GroupId")
    _check_not_blank(request.instance_id, "InstanceId")
    _check_not_blank(request.rack_id, "RackId")
    if request.member_epoch == JOINING_EPOCH:
        _check_join(request)
    elif request.member_epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVING_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise GroupError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _check_epoch(member: ConsumerMember, epoch: int, owned: Owned) -> None:
    """Accept the previous epoch if the response with the new one was lost: then the member owns nothing
    new."""
    if epoch in (JOINING_EPOCH, member.epoch):
        return
    if epoch < member.epoch and epoch == member.previous_epoch and is_part_of(owned, member.assigned):
        return
    compared = "greater" if epoch > member.epoch else "smaller"
    raise GroupError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {compared} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def _check_released(member: ConsumerMember, member_id: str) -> None:
    """An instance id can be taken over only from a member that has left temporarily."""
    if member.epoch != STATIC_LEAVING_EPOCH:
        raise GroupError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {member.instance_id} cannot join the group "
            f"because the instance id is owned by member {member.id}.",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        )


def _check_not_blank(text: str | None, field: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{field} can't be empty.")


def _invalid(message: str) -> GroupError:
    return GroupError(ErrorCode.INVALID_REQUEST, message)
