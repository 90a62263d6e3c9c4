"""All classic groups of one shard: the entry point of this package.

Requests are dispatched to joins.py, syncs.py and leaves.py. A group is written when its assignment arrives,
when it becomes empty and when a static member is replaced. Other changes are only in memory and lost with the
shard: then members get UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION, and rejoin.
"""

from typing import Final

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo, answered
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.group.classic.checks import check_group_id
from barnabas.coordinators.group.classic.group import SESSION, ClassicGroup
from barnabas.coordinators.group.classic.joins import Joins
from barnabas.coordinators.group.classic.leaves import Leaves
from barnabas.coordinators.group.classic.rebalances import JOIN, SYNC, Rebalances
from barnabas.coordinators.group.classic.states import DEAD, EMPTY, PREPARING, STABLE
from barnabas.coordinators.group.classic.stored import members_of, state_ms_of
from barnabas.coordinators.group.classic.syncs import Syncs
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from barnabas.protocol.messages.group_admin import DescribedGroup, DescribedGroupMember
from barnabas.protocol.stored.offsets import GroupMetadataKey, GroupMetadataValue


class ClassicGroups:
    """Serves the classic protocol. Methods that return an Outcome have changed only in-memory state."""

    def __init__(self, context: ShardContext) -> None:
        self._context: Final = context
        self._rebalances: Final = Rebalances(context)
        self._joins: Final = Joins(context, self._rebalances)
        self._syncs: Final = Syncs(context, self._rebalances)
        self._leaves: Final = Leaves(context, self._rebalances)

    # Requests

    def join(self, request: JoinGroupRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        return self._joins.join(request, caller, to, now)

    def sync(self, request: SyncGroupRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        return self._syncs.sync(request, caller, to, now)

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        code = ErrorCode.NONE
        try:
            check_group_id(request.group_id)
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
        return self._leaves.leave(request, caller, to, now)

    # Timers

    def expire(self, key: TimerKey, now: Now) -> Outcome:
        what, group_id, member_id = key
        group = self._context.groups.get(group_id)
        outcome = Outcome()
        if not isinstance(group, ClassicGroup):
            return outcome
        if what == SESSION:
            self._rebalances.expire_session(group, member_id, outcome, now)
        elif what == JOIN:
            self._rebalances.expire_join(group, outcome, now)
        else:
            assert what == SYNC, f"unexpected timer: {what}"
            self._rebalances.expire_sync(group, outcome, now)
        return outcome

    # Records

    def apply(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        """Apply a record that was written or loaded."""
        group = self._context.groups.get(key.group)
        if value is None:
            if isinstance(group, ClassicGroup):
                self._rebalances.forget_timers(group)
                group.state = DEAD
                self._context.remove(key.group)
        elif isinstance(group, ClassicGroup) and group.unapplied is not None and group.unapplied == value:
            group.apply(value)
        else:
            self._context.groups[key.group] = self._restored(key.group, value)

    def _restored(self, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        group = ClassicGroup(
            group_id,
            self._context.timers,
            state=STABLE if value.members else EMPTY,
            state_ms=state_ms_of(value),
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
                self._rebalances.prepare(group, reason, outcome, now)
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
        self._rebalances.prepare_or_complete(group, reason, outcome, now)
        return outcome

    def release(self, group: ClassicGroup, code: ErrorCode) -> Outcome:
        """The group is being removed: refuse its pending requests and cancel its timers."""
        outcome = Outcome()
        self._rebalances.forget_timers(group)
        for member in group.members.values():
            self._rebalances.release(group, member, code, member.id, outcome)
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
