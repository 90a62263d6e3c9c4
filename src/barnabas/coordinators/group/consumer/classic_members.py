"""JoinGroup 0-9, SyncGroup 0-5, Heartbeat 0-4 and LeaveGroup 0-5 of classic members in a consumer group.

A member that uses the classic protocol sees a classic group in which it is never the leader. Its generation
is its member epoch. A heartbeat gets REBALANCE_IN_PROGRESS when the member has a reconciliation step to take;
the following JoinGroup takes it, and SyncGroup fetches the resulting assignment. (KIP-848)
"""

from dataclasses import replace
from sys import intern
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo, answered
from barnabas.coordinators.group.classic.groups import check_sync, leaving_members, left
from barnabas.coordinators.group.classic.joins import check_join
from barnabas.coordinators.group.classic.member import CONSUMER_TYPE
from barnabas.coordinators.group.classic.rebalances import join_refused, sync_refused
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import (
    NO_PARTITIONS,
    ClassicMetadata,
    ConsumerMember,
    MemberState,
)
from barnabas.coordinators.group.consumer.member_update import JOIN, SESSION, SYNC, MemberUpdate
from barnabas.coordinators.group.consumer.migration import (
    Migration,
    owned_partitions,
    read_subscription,
    write_assignment,
)
from barnabas.coordinators.group.consumer.reconcile import Target
from barnabas.coordinators.group.consumer.removal import MemberRemoval, replacement_records, with_new_id
from barnabas.coordinators.group.consumer.subscriptions import TopicIndex
from barnabas.coordinators.group.consumer.target import DeferredAssignments
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas.protocol.stored.consumer_protocol import ConsumerProtocolSubscription

_ID_REQUIRED_FROM: Final = 4


class ClassicMembers:
    """Serves the classic protocol for consumer groups."""

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

    # Joining

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        try:
            check_join(request, self._context.settings)
        except GroupError as error:
            return answered(to, join_refused(request.member_id, error.code))
        member_id = request.member_id or self._context.new_member_id()
        try:
            group.check_room(member_id, self._context.settings.consumer_size_max)
            _check_protocols(group, request)
            if _must_come_back(request, caller.version):
                return answered(to, join_refused(member_id, ErrorCode.MEMBER_ID_REQUIRED))
            return self._join(group, request, member_id, caller, to, now)
        except GroupError as error:
            return answered(to, join_refused("", error.code))

    def _join(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        member_id: str,
        caller: Caller,
        to: ReplyTo,
        now: Now,
    ) -> Outcome:
        before, replaced = _member(group, request, member_id)
        subscription = _subscription(request)
        after = _updated_member(before, request, subscription, caller)
        update = MemberUpdate(self._context, self._topics, self._assigning, group, before, after)
        update.subscribe(now)
        update.bump_epoch()
        owned = owned_partitions(subscription, self._context.image)
        outcome = Outcome()
        # A static member of the consumer protocol may return as a classic one with its own id.
        existing = group.static_member(request.group_instance_id)
        if existing is not None and self._migration.downgrades_by_replacing(group, existing):
            is_stale = group.assignment_epoch < update.epoch
            if not is_stale:
                update.reconcile(Target(group.assignment_epoch, group.target_of(after)), owned, now)
            # The consumer group's records are not written, because the group ends with the same batch.
            outcome.add(
                self._migration.downgrade(group, [existing], now, joining=update.member, rebalance=is_stale)
            )
        else:
            target = update.target(now)
            update.check_size((), target)
            update.reconcile(target, owned, now)
            if replaced is not None:
                outcome.records += replacement_records(group, replaced, before)
                self._removal.cancel_timers(group, replaced)
            outcome.records += update.records
            self._await_sync(group, update.member, now)
        outcome.answer(to, _joined(update.member))
        return outcome

    def _await_sync(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        timers = self._context.timers
        timers.cancel((JOIN, group.id, member.id))
        self._begin_session(group, member, now)
        timers.set((SYNC, group.id, member.id), now.tick_ms + member.rebalance_timeout_ms)

    # Membership

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        try:
            check_sync(request, caller.version)
            member = _classic_member(group, request.member_id, request.group_instance_id)
            _check_generation(member, request.generation_id)
            _check_protocol(member, request)
            if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED:
                self._await_join(group, member, now)
                raise GroupError(
                    ErrorCode.REBALANCE_IN_PROGRESS, f"Group {group.id} has a new assignment; rejoin."
                )
        except GroupError as error:
            return answered(to, sync_refused(error.code))
        assert member.classic is not None
        self._context.timers.cancel((SYNC, group.id, member.id))
        self._begin_session(group, member, now)
        _, metadata = member.classic.protocols[0]
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(member.assigned, metadata, self._context.image),
        )
        return answered(to, response)

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, to: ReplyTo, now: Now) -> Outcome:
        code = ErrorCode.NONE
        try:
            member = _classic_member(group, request.member_id, request.group_instance_id)
            _check_generation(member, request.generation_id)
        except GroupError as error:
            return answered(to, HeartbeatResponse(error_code=error.code))
        self._begin_session(group, member, now)
        if _has_a_step_to_take(group, member):
            code = ErrorCode.REBALANCE_IN_PROGRESS
            self._await_join(group, member, now)
        return answered(to, HeartbeatResponse(error_code=code))

    def leave(
        self, group: ConsumerGroup, request: LeaveGroupRequest, caller: Caller, to: ReplyTo, now: Now
    ) -> Outcome:
        identities = leaving_members(request, caller.version)
        codes = []
        members: dict[str, ConsumerMember] = {}
        for identity in identities:
            try:
                member = _leaving_member(group, identity)
                members[member.id] = member
                codes.append(ErrorCode.NONE)
            except GroupError as error:
                codes.append(error.code)
        outcome = self._removal.remove(group, members.values(), now)
        outcome.answer(to, left(identities, codes, caller.version))
        return outcome

    def _begin_session(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        assert member.classic is not None
        ends_ms = now.tick_ms + member.classic.session_timeout_ms
        self._context.timers.set((SESSION, group.id, member.id), ends_ms)

    def _await_join(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        key = (JOIN, group.id, member.id)
        if key not in self._context.timers:
            self._context.timers.set(key, now.tick_ms + member.rebalance_timeout_ms)


def _must_come_back(request: JoinGroupRequest, version: int) -> bool:
    """Whether the member must rejoin with its assigned id, so that a lost response leaves no member.
    (KIP-394)"""
    return not request.member_id and request.group_instance_id is None and version >= _ID_REQUIRED_FROM


def _member(
    group: ConsumerGroup, request: JoinGroupRequest, member_id: str
) -> tuple[ConsumerMember, ConsumerMember | None]:
    """The joining member and the static member that it replaces. A dynamic member may choose its own id."""
    known = group.members.get(member_id) or ConsumerMember(id=member_id)
    if request.group_instance_id is None:
        return known, None
    if request.member_id:
        return group.static_member_with_id(request.group_instance_id, member_id), None
    existing = group.static_member(request.group_instance_id)
    return (known, None) if existing is None else (with_new_id(existing, member_id), existing)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except Malformed as malformed:
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, str(malformed)) from None


def _updated_member(
    member: ConsumerMember,
    request: JoinGroupRequest,
    subscription: ConsumerProtocolSubscription,
    caller: Caller,
) -> ConsumerMember:
    # Version 0 has only the session timeout.
    timeout_ms = request.rebalance_timeout_ms if caller.version > 0 else request.session_timeout_ms
    # The first of duplicate names counts.
    protocols: dict[str, bytes] = {}
    for one in request.protocols:
        protocols.setdefault(one.name, one.metadata)
    updated = replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack=subscription.rack_id or member.rack,
        client_id=intern(caller.client_id),
        client_host=intern(caller.host),
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topics=tuple(sorted(set(subscription.topics))),
        regex="",
        classic=ClassicMetadata(request.session_timeout_ms, tuple(protocols.items())),
    )
    return member if updated == member else updated


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        member_id=member.id,
        generation_id=member.epoch,
        protocol_type=CONSUMER_TYPE,
        protocol_name=member.classic.protocols[0][0],
    )


def _has_a_step_to_take(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED:
        return True
    return member.state is MemberState.UNRELEASED and not _waits_for_others(group, member)


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    return any(
        group.ownership.holder(topic_id, number) is not None
        for topic_id, numbers in group.targets.get(member.id, {}).items()
        for number in numbers
        if number not in member.assigned.get(topic_id, NO_PARTITIONS)
    )


# Checks, in Kafka's order


def _check_protocols(group: ConsumerGroup, request: JoinGroupRequest) -> None:
    """The member must share a protocol with all classic members."""
    if request.protocol_type == CONSUMER_TYPE and any(
        group.classic_protocols.get(one.name, 0) == group.classic_members for one in request.protocols
    ):
        return
    raise GroupError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Group {group.id} supports none of the member's protocols."
    )


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = group.static_member_with_id(instance_id, member_id)
    if member.classic is None:
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.id} uses the consumer protocol.")
    return member


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    # Administrators do not know the member id.
    member_id = identity.member_id or group.static.get(identity.group_instance_id, "")
    return group.static_member_with_id(identity.group_instance_id, member_id)


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.epoch:
        raise GroupError(
            ErrorCode.ILLEGAL_GENERATION,
            f"Generation is {generation}, expected the member epoch {member.epoch}.",
        )


def _check_protocol(member: ConsumerMember, request: SyncGroupRequest) -> None:
    assert member.classic is not None
    name, _ = member.classic.protocols[0]
    if request.protocol_type not in (None, CONSUMER_TYPE) or request.protocol_name not in (None, name):
        raise GroupError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {member.id} joined with type {CONSUMER_TYPE}, protocol {name}.",
        )
