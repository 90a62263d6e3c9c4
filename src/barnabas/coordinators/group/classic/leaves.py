"""LeaveGroup, versions 0-5.

v3 several members, static ones by instance id alone; before, a single member with its error at the top level.
"""

from collections.abc import Sequence
from typing import Final

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo, answered
from barnabas.coordinators.group.classic.checks import check_group_id
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.classic.rebalances import Rebalances
from barnabas.coordinators.group.classic.states import EMPTY
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

_SEVERAL_FROM: Final = 3


class Leaves:
    """Handles LeaveGroup, from members and from administrators."""

    def __init__(self, context: ShardContext, rebalances: Rebalances) -> None:
        self._context: Final = context
        self._rebalances: Final = rebalances

    def leave(self, request: LeaveGroupRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        group = self._context.groups.get(request.group_id)
        leaving = leaving_members(request, caller.version)
        outcome = Outcome()
        try:
            check_group_id(request.group_id)
            if isinstance(group, ClassicGroup):
                group.check_alive()
                codes = [self._take_leave(group, one, outcome) for one in leaving]
                if ErrorCode.NONE in codes and group.state != EMPTY:
                    self._rebalances.prepare_or_complete(group, "members left", outcome, now)
            else:
                codes = [ErrorCode.UNKNOWN_MEMBER_ID for _ in leaving]
        except GroupError as error:
            return answered(to, LeaveGroupResponse(error_code=error.code))
        outcome.answer(to, left(leaving, codes, caller.version))
        return outcome

    def _take_leave(self, group: ClassicGroup, leaving: MemberIdentity, outcome: Outcome) -> ErrorCode:
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        if member_id in group.pending:
            self._rebalances.forget_pending(group, member_id)
            return ErrorCode.NONE
        if not member_id and instance_id is not None:
            # Administrators do not know the member id.
            member_id = group.static.get(instance_id, "")
        try:
            group.check_member(member_id, instance_id)
        except GroupError as error:
            return error.code
        self._rebalances.remove(group, group.members[member_id], outcome)
        return ErrorCode.NONE


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
