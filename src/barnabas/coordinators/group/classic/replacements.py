"""Replacement of a static member that returns without its member id; the old member is fenced. (KIP-345)

A quick restart causes no rebalance: if the group is stable and the elected protocol does not change, the new
member gets the assignment of the old one.
"""

from typing import Final

from barnabas.coordinators.group.classic.answers import joined
from barnabas.coordinators.group.classic.joining import Joining
from barnabas.coordinators.group.classic.member import ClassicMember
from barnabas.coordinators.group.classic.rebalances import Rebalances
from barnabas.coordinators.group.classic.states import COMPLETING, STABLE
from barnabas.coordinators.group.classic.stored import is_too_large
from barnabas.coordinators.group.context import ShardContext
from barnabas.protocol.error_codes import ErrorCode

_SKIPS_ASSIGNMENT_FROM: Final = 9


class Replacements:
    """Handles joins of static members that already exist."""

    def __init__(self, context: ShardContext, rebalances: Rebalances) -> None:
        self._context: Final = context
        self._rebalances: Final = rebalances

    def replace(self, joining: Joining, old: ClassicMember, member_id: str) -> None:
        group, now, outcome = joining.group, joining.now, joining.outcome
        former_leader = group.leader
        self._rebalances.release(group, old, ErrorCode.FENCED_INSTANCE_ID, old.id, outcome)
        new = old.successor(
            member_id,
            protocols=joining.protocols,
            rebalance_timeout_ms=joining.rebalance_timeout_ms,
            session_timeout_ms=joining.request.session_timeout_ms,
        )
        group.replace(old, new)
        if group.state == STABLE and group.elected_protocol() == group.protocol:
            self._replace_quietly(joining, old, new, former_leader)
            return
        self._pass_session(joining, old, new)
        joining.wait(new)
        if group.state in (STABLE, COMPLETING):
            reason = f"static member {new.instance_id} replaced: {joining.reason}"
            self._rebalances.prepare(group, reason, outcome, now)
        else:
            self._rebalances.complete_if_all_joined(group, outcome, now)

    def _replace_quietly(
        self, joining: Joining, old: ClassicMember, new: ClassicMember, former_leader: str | None
    ) -> None:
        group = joining.group
        record = group.record()
        if is_too_large(record, self._context.batch_bytes_max()):
            group.replace(new, old)
            group.unapplied = None
            answer = joined(group, "")
            answer.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
            joining.outcome.answer(joining.to, answer)
            return
        joining.outcome.write(record)
        self._pass_session(joining, old, new)
        answer = joined(group, new.id)
        if joining.caller.version >= _SKIPS_ASSIGNMENT_FROM:
            answer.skip_assignment = group.leader == new.id
        else:
            # Before skip_assignment, a leader would send an assignment, which a stable group ignores. With
            # its former id as leader, the member does not recognize itself as the leader.
            answer.leader = former_leader or ""
            answer.members = []
        joining.outcome.answer(joining.to, answer)

    def _pass_session(self, joining: Joining, old: ClassicMember, new: ClassicMember) -> None:
        self._rebalances.end_session(joining.group, old.id)
        # The requested timeout applies from the next heartbeat on, as in Kafka.
        joining.group.set_session(new.id, old.session_timeout_ms, joining.now)
