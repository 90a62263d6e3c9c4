"""SyncGroup, versions 0-5: the leader sends the assignment, every member fetches its part.

v3 static members; v5 protocol type and name (KIP-559).
"""

from typing import Final

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo, answered
from barnabas.coordinators.group.classic.answers import sync_refused, synced
from barnabas.coordinators.group.classic.checks import check_sync, check_sync_to
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.classic.member import NO_ASSIGNMENT
from barnabas.coordinators.group.classic.rebalances import Rebalances
from barnabas.coordinators.group.classic.states import STABLE
from barnabas.coordinators.group.classic.stored import is_too_large
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import SyncGroupRequest


class Syncs:
    """Handles SyncGroup for classic groups."""

    def __init__(self, context: ShardContext, rebalances: Rebalances) -> None:
        self._context: Final = context
        self._rebalances: Final = rebalances

    def sync(self, request: SyncGroupRequest, caller: Caller, to: ReplyTo, now: Now) -> Outcome:
        try:
            check_sync(request, caller.version)
            group = self._context.groups.get(request.group_id)
            if not isinstance(group, ClassicGroup) or group.is_empty:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {request.group_id} has no members")
            check_sync_to(group, request)
        except GroupError as error:
            return answered(to, sync_refused(error.code))
        return self._sync(group, request, to, now)

    def _sync(self, group: ClassicGroup, request: SyncGroupRequest, to: ReplyTo, now: Now) -> Outcome:
        member = group.members[request.member_id]
        if group.state == STABLE:
            self._rebalances.note_synced(group, member)
            return answered(to, synced(group, member.assignment))
        outcome = Outcome()
        if member.syncing is not None:
            # The client has retried, so it has given up its first request, which must not wait forever.
            outcome.answer(member.syncing, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = to
        self._rebalances.note_synced(group, member)
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
            self._rebalances.refuse_assignment(group, ErrorCode.UNKNOWN_SERVER_ERROR, outcome, now)
            self._rebalances.prepare(group, "assignment exceeds max.message.bytes", outcome, now)
            return
        outcome.write(record)
        for member in group.members.values():
            to, member.syncing = member.syncing, None
            if to is not None:
                outcome.answer(to, synced(group, assignments.get(member.id, NO_ASSIGNMENT)))
                group.begin_session(member, now)
