"""JoinGroup, versions 0-9.

v1 rebalance timeout; v4 a new member must rejoin with its assigned id (KIP-394); v5 static members (KIP-345);
v9 skip_assignment for a static leader that returns (KIP-814).
"""

from random import Random
from typing import Final

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo, answered
from barnabas.coordinators.group.classic.answers import join_refused, joined
from barnabas.coordinators.group.classic.checks import (
    check_join,
    check_member_id,
    check_metadata,
    has_room_for,
)
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.classic.joining import Joining, protocols_of
from barnabas.coordinators.group.classic.member import ClassicMember
from barnabas.coordinators.group.classic.rebalances import Rebalances
from barnabas.coordinators.group.classic.replacements import Replacements
from barnabas.coordinators.group.classic.states import PREPARING, STABLE
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import JoinGroupRequest

_ID_REQUIRED_FROM: Final = 4


class Joins:
    """Handles JoinGroup for classic groups."""

    def __init__(self, context: ShardContext, rebalances: Rebalances) -> None:
        self._context: Final = context
        self._rebalances: Final = rebalances
        self._replacements: Final = Replacements(context, rebalances)

    def join(self, request: JoinGroupRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        try:
            check_join(request, self._context.settings)
            check_metadata(request, self._context.groups)
        except GroupError as error:
            return answered(to, join_refused(request.member_id, error.code))
        group = self._context.groups.get(request.group_id)
        if group is None and request.member_id:
            return answered(to, join_refused(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        outcome = Outcome()
        if group is None:
            # Written now, so that the group does not exist only as a pending member id.
            group = ClassicGroup(request.group_id, self._context.timers, state_ms=now.ms)
            self._context.groups[group.id] = group
            outcome.write(group.record())
        elif not isinstance(group, ClassicGroup):
            return answered(to, join_refused("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        self._join(Joining(group, request, protocols_of(request, group), caller, to, now, outcome))
        return outcome

    def _join(self, joining: Joining) -> None:
        group, member_id = joining.group, joining.request.member_id
        if not has_room_for(group, member_id, self._context.settings.classic_size_max):
            self._turn_away(joining)
            return
        try:
            group.check_alive()
            if not group.supports(joining.request.protocol_type, joining.protocols):
                raise GroupError(
                    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                    f"group {group.id} supports none of the member's protocols",
                )
            if not member_id:
                self._join_as_new(joining)
            elif member_id in group.pending:
                self._join_as_pending(joining)
            else:
                group.check_member(member_id, joining.request.group_instance_id)
                self._rejoin(joining, group.members[member_id])
        except GroupError as error:
            joining.refuse(member_id, error.code)

    def _turn_away(self, joining: Joining) -> None:
        """The group is full. A member that rejoins too late is removed."""
        group, outcome = joining.group, joining.outcome
        joining.refuse("", ErrorCode.GROUP_MAX_SIZE_REACHED)
        self._rebalances.forget_pending(group, joining.request.member_id)
        member = group.members.get(joining.request.member_id)
        if member is not None:
            self._rebalances.remove(group, member, outcome)
        # The others may have waited only for this member.
        self._rebalances.complete_if_all_joined(group, outcome, joining.now)

    def _join_as_new(self, joining: Joining) -> None:
        group, request = joining.group, joining.request
        name = joining.caller.client_id if request.group_instance_id is None else request.group_instance_id
        member_id = f"{name}-{_new_suffix(self._context.rng)}"
        check_member_id(member_id)
        if request.group_instance_id is not None and request.group_instance_id in group.static:
            old = group.members[group.static[request.group_instance_id]]
            self._replacements.replace(joining, old, member_id)
        elif request.group_instance_id is None and joining.caller.version >= _ID_REQUIRED_FROM:
            # The member joins only with its second request, so a lost response leaves no member to wait for.
            group.pending.add(member_id)
            group.set_session(member_id, request.session_timeout_ms, joining.now)
            joining.refuse(member_id, ErrorCode.MEMBER_ID_REQUIRED)
        else:
            self._add(joining, member_id)

    def _join_as_pending(self, joining: Joining) -> None:
        if joining.request.group_instance_id is not None:
            # Static members never get a pending id.
            joining.refuse("", ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._add(joining, joining.request.member_id)

    def _add(self, joining: Joining, member_id: str) -> None:
        group, now = joining.group, joining.now
        member = joining.new_member(member_id)
        member.is_new = True
        if group.initial is not None:
            group.initial.has_newcomers = True
        group.add(member)
        joining.wait(member)
        group.set_session(member_id, self._context.settings.new_member_join_timeout_ms, now)
        self._rebalance(joining, f"new member {member_id}")

    def _rejoin(self, joining: Joining, member: ClassicMember) -> None:
        group = joining.group
        is_same = member.protocols == joining.protocols
        if group.state == STABLE and group.leader == member.id:
            # A leader rejoins to trigger a new assignment, for example when partitions were added.
            self._update(joining, member, f"leader {member.id} rejoined")
        elif group.state == PREPARING or not is_same:
            self._update(joining, member, f"member {member.id} rejoined")
        else:
            # The response to its first join was lost.
            joining.outcome.answer(joining.to, joined(group, member.id))

    def _update(self, joining: Joining, member: ClassicMember, reason: str) -> None:
        joining.update(member)
        joining.wait(member)
        self._rebalance(joining, reason)

    def _rebalance(self, joining: Joining, reason: str) -> None:
        self._rebalances.prepare_or_complete(
            joining.group, f"{reason}: {joining.reason}", joining.outcome, joining.now
        )


def _new_suffix(rng: Random) -> str:
    """The unique part of a member id: a random UUID in hexadecimal."""
    digits = rng.randbytes(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
