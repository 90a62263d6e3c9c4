"""Classic groups of one shard: SyncGroup, Heartbeat and LeaveGroup, records, and operations of other parts.

JoinGroup is in joins.py, timers are in rebalances.py. A group is written when its assignment arrives, when it
becomes empty and when a static member is replaced. Other changes are only in memory and lost with the shard:
then members get UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION, and rejoin.

SyncGroup, versions 0-5: the leader sends the assignment, every member fetches its part. v3 static members; v5
protocol type and name (KIP-559).
LeaveGroup, versions 0-5: v3 several members, static ones by instance id alone; before, a single member with
its error at the top level.
"""

from collections.abc import Sequence
from typing import Final

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo, answered
from barnabas.coordinators.group.classic.group import (
    DEAD,
    EMPTY,
    NO_TIMESTAMP,
    PREPARING,
    STABLE,
    ClassicGroup,
)
from barnabas.coordinators.group.classic.joins import Joins
from barnabas.coordinators.group.classic.member import NO_ASSIGNMENT, members_of
from barnabas.coordinators.group.classic.rebalances import Rebalances, is_too_large, sync_refused, synced
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
)
from barnabas.protocol.messages.group_admin import DescribedGroup, DescribedGroupMember
from barnabas.protocol.stored.offsets import GroupMetadataValue

# From this version of SyncGroup on protocol type and name are required. (KIP-559)
_PROTOCOL_REQUIRED_FROM: Final = 5
# From this version of LeaveGroup on several members may leave.
_SEVERAL_FROM: Final = 3


class ClassicGroups:
    """Serves the classic protocol. Methods that return an Outcome have changed only in-memory state."""

    def __init__(self, context: ShardContext) -> None:
        self._context: Final = context
        self.rebalances: Final = Rebalances(context)
        self.joins: Final = Joins(context, self.rebalances)

    # Requests

    def sync(self, request: SyncGroupRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        try:
            check_sync(request, caller.version)
            group = self._context.groups.get(request.group_id)
            if not isinstance(group, ClassicGroup) or group.is_empty:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {request.group_id} has no members")
            _check_sync_to(group, request)
        except GroupError as error:
            return answered(to, sync_refused(error.code))
        member = group.members[request.member_id]
        if group.state == STABLE:
            self.rebalances.note_synced(group, member)
            return answered(to, synced(group, member.assignment))
        outcome = Outcome()
        if member.syncing is not None:
            # The client has retried, so it has given up its first request, which must not wait forever.
            outcome.answer(member.syncing, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = to
        self.rebalances.note_synced(group, member)
        if group.leader == member.id:
            assignments = {given.member_id: given.assignment for given in request.assignments}
            self._assign(group, assignments, outcome, now)
        return outcome

    def _assign(self, group: ClassicGroup, assignments: dict[str, bytes], outcome: Outcome, now: Now) -> None:
        """Write the assignment; apply() then makes the group stable. Members that the leader omitted get
        none."""
        record = group.record(assignments)
        if is_too_large(record, self._context.batch_bytes_max()):
            group.unapplied = None
            self.rebalances.refuse_assignment(group, ErrorCode.UNKNOWN_SERVER_ERROR, outcome, now)
            self.rebalances.prepare(group, "assignment exceeds max.message.bytes", outcome, now)
            return
        outcome.write(record)
        for member in group.members.values():
            to, member.syncing = member.syncing, None
            if to is not None:
                outcome.answer(to, synced(group, assignments.get(member.id, NO_ASSIGNMENT)))
                group.begin_session(member, now)

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        code = ErrorCode.NONE
        try:
            _check_group_id(request.group_id)
            group = self._context.groups.get(request.group_id)
            if not isinstance(group, ClassicGroup):
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {request.group_id} not found.")
            group.check_alive()
            group.check_member(request.member_id, request.group_instance_id)
            group.check_generation(request.generation_id)
        except GroupError as error:
            code = error.code
        else:
            group.begin_session(group.members[request.member_id], now)
            if group.state == PREPARING:
                code = ErrorCode.REBALANCE_IN_PROGRESS
        return answered(to, HeartbeatResponse(error_code=code))

    def leave(self, request: LeaveGroupRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        group = self._context.groups.get(request.group_id)
        leaving = leaving_members(request, caller.version)
        outcome = Outcome()
        try:
            _check_group_id(request.group_id)
            if isinstance(group, ClassicGroup):
                group.check_alive()
                codes = [self._take_leave(group, one, outcome) for one in leaving]
                if ErrorCode.NONE in codes and group.state != EMPTY:
                    self.rebalances.prepare_or_complete(group, "members left", outcome, now)
            else:
                codes = [ErrorCode.UNKNOWN_MEMBER_ID for _ in leaving]
        except GroupError as error:
            return answered(to, LeaveGroupResponse(error_code=error.code))
        outcome.answer(to, left(leaving, codes, caller.version))
        return outcome

    def _take_leave(self, group: ClassicGroup, leaving: MemberIdentity, outcome: Outcome) -> ErrorCode:
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        if member_id in group.pending:
            self.rebalances.forget_pending(group, member_id)
            return ErrorCode.NONE
        if not member_id and instance_id is not None:
            # Administrators do not know the member id.
            member_id = group.static.get(instance_id, "")
        try:
            group.check_member(member_id, instance_id)
        except GroupError as error:
            return error.code
        self.rebalances.remove(group, group.members[member_id], outcome)
        return ErrorCode.NONE

    # Records

    def restore(self, group_id: str, value: GroupMetadataValue | None) -> None:
        """Replace a group by that of a record, or remove it for a tombstone."""
        group = self._context.groups.get(group_id)
        if value is not None:
            self._context.groups[group_id] = self._restored(group_id, value)
        elif isinstance(group, ClassicGroup):
            self.rebalances.forget_timers(group)
            group.state = DEAD
            self._context.remove(group_id)

    def _restored(self, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        group = ClassicGroup(
            group_id,
            self._context.timers,
            state=STABLE if value.members else EMPTY,
            # None in records before version 2.
            state_ms=None if value.current_state_timestamp == NO_TIMESTAMP else value.current_state_timestamp,
            generation=value.generation,
            protocol_type=value.protocol_type,
            protocol=value.protocol,
        )
        for member in members_of(value):
            if member.instance_id in group.static:
                # No coordinator writes a duplicate instance id. If one did, the last member counts.
                group.remove(group.members[group.static[member.instance_id]])
            group.add(member)
        if value.leader in group.members:
            group.leader = value.leader
        group.note_subscriptions()
        group.stored = value
        return group

    def loaded(self, now: Now) -> Outcome:
        """Everything has been applied: start sessions, and rebalance groups that exceed the maximum size."""
        outcome = Outcome()
        size_max = self._context.settings.classic_size_max
        for group in self._groups():
            self._begin_sessions(group, now)
            if len(group.members) > size_max:
                # A rebalance, so that members can commit before some of them are refused.
                reason = f"{len(group.members)} members exceed the maximum of {size_max}"
                self.rebalances.prepare(group, reason, outcome, now)
        return outcome

    # For other parts of the shard

    def new(self, group_id: str) -> ClassicGroup:
        """A group for commits without members. Only its offsets are written."""
        group = ClassicGroup(group_id, self._context.timers)
        self._context.groups[group_id] = group
        return group

    def adopt(self, group: ClassicGroup, now: Now) -> None:
        """Replace a consumer group and start the sessions. The caller writes group.record()."""
        self._context.groups[group.id] = group
        self._begin_sessions(group, now)

    def rebalance(self, group: ClassicGroup, reason: str, now: Now) -> Outcome:
        """Start a rebalance."""
        outcome = Outcome()
        self.rebalances.prepare_or_complete(group, reason, outcome, now)
        return outcome

    def release(self, group: ClassicGroup, code: ErrorCode) -> Outcome:
        """The group is being removed: refuse its pending requests and cancel its timers."""
        outcome = Outcome()
        self.rebalances.forget_timers(group)
        for member in group.members.values():
            self.rebalances.release(group, member, code, member.id, outcome)
        return outcome

    def abandon(self, code: ErrorCode) -> Outcome:
        """The shard is closed: refuse all pending requests."""
        outcome = Outcome()
        for group in self._groups():
            outcome.add(self.release(group, code))
            group.state = DEAD
        return outcome

    def describe(self, group: ClassicGroup) -> DescribedGroup:
        """Protocol and metadata are included only in Stable; otherwise they belong to a previous
        generation."""
        protocol = group.protocol if group.state == STABLE else None
        return DescribedGroup(
            group_id=group.id,
            group_state=group.state,
            protocol_type=group.protocol_type,
            protocol_data=protocol or "",
            members=[
                DescribedGroupMember(
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=b"" if protocol is None else member.metadata(protocol),
                    member_assignment=member.assignment,
                )
                for member in group.members.values()
            ],
        )

    def _groups(self) -> list[ClassicGroup]:
        return [group for group in self._context.groups.values() if isinstance(group, ClassicGroup)]

    def _begin_sessions(self, group: ClassicGroup, now: Now) -> None:
        for member in group.members.values():
            group.begin_session(member, now)


def leaving_members(request: LeaveGroupRequest, version: int) -> Sequence[MemberIdentity]:
    return request.members if version >= _SEVERAL_FROM else [MemberIdentity(member_id=request.member_id)]


def left(leaving: Sequence[MemberIdentity], codes: Sequence[ErrorCode], version: int) -> LeaveGroupResponse:
    if version < _SEVERAL_FROM:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=code)
            for one, code in zip(leaving, codes, strict=True)
        ]
    )


# Checks, in Kafka's order


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise GroupError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")


def check_sync(request: SyncGroupRequest, version: int) -> None:
    is_given = request.protocol_type is not None and request.protocol_name is not None
    if version >= _PROTOCOL_REQUIRED_FROM and not is_given:
        raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name must be given")
    _check_group_id(request.group_id)


def _check_sync_to(group: ClassicGroup, request: SyncGroupRequest) -> None:
    group.check_alive()
    group.check_member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    if _differ(request.protocol_type, group.protocol_type or None) or _differ(
        request.protocol_name, group.protocol
    ):
        raise GroupError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"group {group.id} uses protocol type {group.protocol_type}, protocol {group.protocol}",
        )
    if group.state == PREPARING:
        raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.id} is rebalancing; rejoin")


def _differ(requested: str | None, current: str | None) -> bool:
    return requested is not None and current is not None and requested != current
