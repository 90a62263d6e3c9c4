"""Rebalances of a classic group: starting them, opening a generation, and timeouts.

joins.py, syncs.py and leaves.py change the group for a request, and call this module for the consequences.
"""

import logging
from typing import Final

from barnabas.coordinators.decision.outcome import Now, Outcome
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.group.classic.answers import join_refused, joined, sync_refused
from barnabas.coordinators.group.classic.group import SESSION, ClassicGroup, InitialDelay
from barnabas.coordinators.group.classic.member import NO_ASSIGNMENT, ClassicMember
from barnabas.coordinators.group.classic.states import COMPLETING, EMPTY, PREPARING, STABLE
from barnabas.coordinators.group.context import ShardContext
from barnabas.protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

JOIN: Final = "classic-join"
SYNC: Final = "classic-sync"


class Rebalances:
    """Advances rebalances when members join or leave and when timers expire."""

    def __init__(self, context: ShardContext) -> None:
        self._context: Final = context

    # Starting a rebalance

    def prepare_or_complete(self, group: ClassicGroup, reason: str, outcome: Outcome, now: Now) -> None:
        """Start a rebalance. If one is in progress, complete it if all members have joined."""
        if group.state == PREPARING:
            self.complete_if_all_joined(group, outcome, now)
        else:
            self.prepare(group, reason, outcome, now)

    def prepare(self, group: ClassicGroup, reason: str, outcome: Outcome, now: Now) -> None:
        """Start a rebalance. Members learn of it with their next heartbeat."""
        logger.info("rebalance started group=%s generation=%d reason=%s", group.id, group.generation, reason)
        if group.state == COMPLETING:
            self.refuse_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS, outcome, now)
        self._end_sync(group)
        is_initial = group.state == EMPTY
        group.move(PREPARING, now)
        if is_initial:
            delay_ms = self._context.settings.initial_rebalance_delay_ms
            group.initial = InitialDelay(delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
            self._set_join(group, delay_ms, now)
        elif group.have_all_joined:
            self.complete(group, outcome, now)
        else:
            self._set_join(group, group.rebalance_timeout_ms, now)

    def complete_if_all_joined(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
        """Not during the initial delay, in which the first members of an empty group wait for others."""
        if group.state == PREPARING and group.initial is None and group.have_all_joined:
            self.complete(group, outcome, now)

    def refuse_assignment(self, group: ClassicGroup, code: ErrorCode, outcome: Outcome, now: Now) -> None:
        """Drop the assignment of this generation and refuse all pending syncs."""
        assert group.state == COMPLETING, f"group {group.id} is {group.state}"
        for member in group.members.values():
            member.assignment = NO_ASSIGNMENT
            to, member.syncing = member.syncing, None
            if to is not None:
                outcome.answer(to, sync_refused(code))
                group.begin_session(member, now)

    # Opening a generation

    def complete(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
        """Open a generation with the members that have joined. Others are removed, except static ones, which
        stay until their session expires."""
        self._context.timers.cancel(_key(JOIN, group))
        group.initial = None
        late = [one for one in group.members.values() if one.joining is None and not one.is_static]
        for member in late:
            self.remove(group, member, outcome)
        if not group.elect_joined_leader() and group.members:
            logger.info(
                "rebalance timed out with no joined members group=%s members=%d", group.id, len(group.members)
            )
            self._set_join(group, group.rebalance_timeout_ms, now)
            return
        group.open_generation(now)
        if group.members:
            self._tell_members(group, outcome, now)
        else:
            outcome.write(group.record())
        logger.info(
            "generation opened group=%s generation=%d members=%d late=%d",
            group.id,
            group.generation,
            len(group.members),
            len(late),
        )

    def _tell_members(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
        for member in group.members.values():
            to = group.stop_joining(member)
            if to is not None:
                outcome.answer(to, joined(group, member.id))
            member.is_new = False
            group.begin_session(member, now)
        group.unsynced.update(group.members)
        self._context.timers.set(_key(SYNC, group), now.tick_ms + group.rebalance_timeout_ms)

    # Leaving and expired members

    def remove(self, group: ClassicGroup, member: ClassicMember, outcome: Outcome) -> None:
        """Remove a member. The caller handles the consequences for the group."""
        self.release(group, member, ErrorCode.UNKNOWN_MEMBER_ID, "", outcome)
        group.remove(member)
        self.end_session(group, member.id)

    def release(
        self, group: ClassicGroup, member: ClassicMember, code: ErrorCode, as_id: str, outcome: Outcome
    ) -> None:
        """Refuse the pending requests of a member."""
        to = group.stop_joining(member)
        if to is not None:
            outcome.answer(to, join_refused(as_id, code))
        to, member.syncing = member.syncing, None
        if to is not None:
            outcome.answer(to, sync_refused(code))

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        self._context.timers.cancel((SESSION, group.id, member_id))

    def forget_pending(self, group: ClassicGroup, member_id: str) -> None:
        group.pending.discard(member_id)
        self.end_session(group, member_id)

    def expire_session(self, group: ClassicGroup, member_id: str, outcome: Outcome, now: Now) -> None:
        member = group.members.get(member_id)
        if member_id in group.pending:
            group.pending.discard(member_id)
        elif member is None or member.is_known_to_live:
            return
        else:
            logger.info("session expired group=%s member=%s", group.id, member_id)
            self.remove(group, member, outcome)
            if group.state in (STABLE, COMPLETING):
                self.prepare(group, f"session of member {member_id} expired", outcome, now)
                return
        # As in Kafka, an expired pending member even ends the initial delay.
        if group.state == PREPARING and group.have_all_joined:
            self.complete(group, outcome, now)

    # Timers

    def expire_join(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
        """The rebalance timeout or initial delay has expired. The delay is extended if new members have
        joined."""
        if group.state != PREPARING:
            return
        initial = group.initial
        if initial is None or not initial.has_newcomers or initial.remaining_ms == 0:
            self.complete(group, outcome, now)
            return
        delay_ms = min(self._context.settings.initial_rebalance_delay_ms, initial.remaining_ms)
        group.initial = InitialDelay(delay_ms, max(initial.remaining_ms - initial.delay_ms, 0))
        self._set_join(group, delay_ms, now)

    def expire_sync(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
        """Remove the members that have not fetched their assignment in time."""
        if group.state not in (COMPLETING, STABLE) or not group.unsynced:
            return
        late = [group.members[member_id] for member_id in group.unsynced]
        for member in late:
            self.remove(group, member, outcome)
        self.prepare(group, f"{len(late)} members did not sync in time", outcome, now)

    def note_synced(self, group: ClassicGroup, member: ClassicMember) -> None:
        group.unsynced.discard(member.id)
        if not group.unsynced:
            self._end_sync(group)

    def forget_timers(self, group: ClassicGroup) -> None:
        timers = self._context.timers
        timers.cancel(_key(JOIN, group))
        timers.cancel(_key(SYNC, group))
        for member_id in (*group.members, *group.pending):
            self.end_session(group, member_id)

    def _set_join(self, group: ClassicGroup, wait_ms: int, now: Now) -> None:
        self._context.timers.set(_key(JOIN, group), now.tick_ms + wait_ms)

    def _end_sync(self, group: ClassicGroup) -> None:
        group.unsynced.clear()
        self._context.timers.cancel(_key(SYNC, group))


def _key(what: str, group: ClassicGroup) -> TimerKey:
    return (what, group.id, "")
