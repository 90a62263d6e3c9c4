"""The rounds of a classic group: calling its members to join, opening a generation, not waiting for ever.

joins.py, syncs.py and leaves.py say what a request changes and then ask here what follows from it.
"""

import logging
from typing import Final

from barnabas.coordinators.decision.outcome import Now, Outcome
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.group.classic.answers import join_refused, joined, sync_refused
from barnabas.coordinators.group.classic.group import SESSION, ClassicGroup, InitialDelay
from barnabas.coordinators.group.classic.member import NO_ASSIGNMENT, ClassicMember
from barnabas.coordinators.group.classic.states import COMPLETING, EMPTY, PREPARING, STABLE
from barnabas.coordinators.group.ground import Ground
from barnabas.protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

JOIN: Final = "classic-join"
SYNC: Final = "classic-sync"


class Rebalances:
    """What follows when members come and go, and when time has passed."""

    def __init__(self, ground: Ground) -> None:
        self._ground: Final = ground

    # Calling members to join

    def prepare_or_complete(self, group: ClassicGroup, reason: str, outcome: Outcome, now: Now) -> None:
        """Members are called to join. If they are already, it may have been the last they waited for."""
        if group.state == PREPARING:
            self.complete_if_all_joined(group, outcome, now)
        else:
            self.prepare(group, reason, outcome, now)

    def prepare(self, group: ClassicGroup, reason: str, outcome: Outcome, now: Now) -> None:
        """Members hear of it with their next heartbeat."""
        logger.info("rebalance begins group=%s generation=%d reason=%s", group.id, group.generation, reason)
        if group.state == COMPLETING:
            self.refuse_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS, outcome, now)
        self._end_sync(group)
        is_initial = group.state == EMPTY
        group.move(PREPARING, now)
        if is_initial:
            delay_ms = self._ground.settings.initial_rebalance_delay_ms
            group.initial = InitialDelay(delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
            self._set_join(group, delay_ms, now)
        elif group.have_all_joined:
            self.complete(group, outcome, now)
        else:
            self._set_join(group, group.rebalance_timeout_ms, now)

    def complete_if_all_joined(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
        """The first members of an empty group wait for their time in any case: others may follow."""
        if group.state == PREPARING and group.initial is None and group.have_all_joined:
            self.complete(group, outcome, now)

    def refuse_assignment(self, group: ClassicGroup, code: ErrorCode, outcome: Outcome, now: Now) -> None:
        """The assignment of this generation will not come. Whoever waits for it is told."""
        assert group.state == COMPLETING, f"group {group.id} is {group.state}"
        for member in group.members.values():
            member.assignment = NO_ASSIGNMENT
            to, member.syncing = member.syncing, None
            if to is not None:
                outcome.answer(to, sync_refused(code))
                group.begin_session(member, now)

    # Opening a generation

    def complete(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
        """Whoever has joined is in. Static members that have not stay until their session ends."""
        self._ground.timers.cancel(_key(JOIN, group))
        group.initial = None
        late = [one for one in group.members.values() if one.joining is None and not one.is_static]
        for member in late:
            self.remove(group, member, outcome)
        if not group.elect_joined_leader() and group.members:
            logger.info("nobody has joined group=%s members=%d", group.id, len(group.members))
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
        self._ground.timers.set(_key(SYNC, group), now.tick_ms + group.rebalance_timeout_ms)

    # Members that go, and that are heard of no more

    def remove(self, group: ClassicGroup, member: ClassicMember, outcome: Outcome) -> None:
        """What follows for the group is the caller's to say."""
        self.release(group, member, ErrorCode.UNKNOWN_MEMBER_ID, "", outcome)
        group.remove(member)
        self.end_session(group, member.id)

    def release(
        self, group: ClassicGroup, member: ClassicMember, code: ErrorCode, as_id: str, outcome: Outcome
    ) -> None:
        """Whoever waits as this member is told why it waits in vain."""
        to = group.stop_joining(member)
        if to is not None:
            outcome.answer(to, join_refused(as_id, code))
        to, member.syncing = member.syncing, None
        if to is not None:
            outcome.answer(to, sync_refused(code))

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        self._ground.timers.cancel((SESSION, group.id, member_id))

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
            logger.info("member expired group=%s member=%s", group.id, member_id)
            self.remove(group, member, outcome)
            if group.state in (STABLE, COMPLETING):
                self.prepare(group, f"the session of {member_id} has ended", outcome, now)
                return
        # As Kafka has it, whoever fails to come back cuts even the first members' wait short.
        if group.state == PREPARING and group.have_all_joined:
            self.complete(group, outcome, now)

    # Time

    def expire_join(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
        """Those who have not joined are late; first members that others have followed wait on."""
        if group.state != PREPARING:
            return
        initial = group.initial
        if initial is None or not initial.has_newcomers or initial.remaining_ms == 0:
            self.complete(group, outcome, now)
            return
        delay_ms = min(self._ground.settings.initial_rebalance_delay_ms, initial.remaining_ms)
        group.initial = InitialDelay(delay_ms, max(initial.remaining_ms - initial.delay_ms, 0))
        self._set_join(group, delay_ms, now)

    def expire_sync(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
        """Who has not asked for its assignment by now has gone."""
        if group.state not in (COMPLETING, STABLE) or not group.unsynced:
            return
        late = [group.members[member_id] for member_id in group.unsynced]
        for member in late:
            self.remove(group, member, outcome)
        self.prepare(group, f"{len(late)} members have not synced", outcome, now)

    def note_synced(self, group: ClassicGroup, member: ClassicMember) -> None:
        group.unsynced.discard(member.id)
        if not group.unsynced:
            self._end_sync(group)

    def forget_timers(self, group: ClassicGroup) -> None:
        timers = self._ground.timers
        timers.cancel(_key(JOIN, group))
        timers.cancel(_key(SYNC, group))
        for member_id in (*group.members, *group.pending):
            self.end_session(group, member_id)

    def _set_join(self, group: ClassicGroup, wait_ms: int, now: Now) -> None:
        self._ground.timers.set(_key(JOIN, group), now.tick_ms + wait_ms)

    def _end_sync(self, group: ClassicGroup) -> None:
        group.unsynced.clear()
        self._ground.timers.cancel(_key(SYNC, group))


def _key(what: str, group: ClassicGroup) -> TimerKey:
    return (what, group.id, "")
