"""Rebalances of a classic group: starting them, opening a generation, timeouts, and the members' responses.

joins.py and groups.py change the group for a request, and call this module for the consequences.
"""

import logging
from typing import Final

from barnabas.coordinators.decision.outcome import Now, Outcome, StoredRecord
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.group.classic.group import (
    COMPLETING,
    EMPTY,
    PREPARING,
    SESSION,
    STABLE,
    ClassicGroup,
    InitialDelay,
)
from barnabas.coordinators.group.classic.member import NO_ASSIGNMENT, ClassicMember
from barnabas.coordinators.group.context import ShardContext
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)
from barnabas.protocol.stored.offsets import GroupMetadataKey, GroupMetadataValue, MemberMetadata

logger = logging.getLogger(__name__)

# Timers, besides SESSION.
JOIN: Final = "classic-join"
SYNC: Final = "classic-sync"

# Upper bound of batch header, record lengths, key type and length.
_FRAMING_BYTES: Final = 128
_CHARACTER_BYTES_MAX: Final = 4
# Upper bound of the lengths and numbers of one member.
_MEMBER_FRAMING_BYTES: Final = 32


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
        if group.state in (COMPLETING, STABLE):
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
        self._context.timers.cancel((JOIN, group.id, ""))
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
            self._answer_joins(group, outcome, now)
        else:
            outcome.write(group.record())
        logger.info(
            "generation opened group=%s generation=%d members=%d late=%d",
            group.id,
            group.generation,
            len(group.members),
            len(late),
        )

    def _answer_joins(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
        for member in group.members.values():
            to = group.stop_joining(member)
            if to is not None:
                outcome.answer(to, joined(group, member.id))
            member.is_new = False
            group.begin_session(member, now)
        group.unsynced.update(group.members)
        self._context.timers.set((SYNC, group.id, ""), now.tick_ms + group.rebalance_timeout_ms)

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

    # Timers

    def expire(self, key: TimerKey, now: Now) -> Outcome:
        """A timer of a group or member has expired."""
        kind, group_id, member_id = key
        group = self._context.groups.get(group_id)
        outcome = Outcome()
        if not isinstance(group, ClassicGroup):
            return outcome
        if kind == SESSION:
            self._expire_session(group, member_id, outcome, now)
        elif kind == JOIN:
            self._expire_join(group, outcome, now)
        else:
            assert kind == SYNC, f"unexpected timer: {kind}"
            self._expire_sync(group, outcome, now)
        return outcome

    def _expire_session(self, group: ClassicGroup, member_id: str, outcome: Outcome, now: Now) -> None:
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

    def _expire_join(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
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

    def _expire_sync(self, group: ClassicGroup, outcome: Outcome, now: Now) -> None:
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
        timers.cancel((JOIN, group.id, ""))
        timers.cancel((SYNC, group.id, ""))
        for member_id in (*group.members, *group.pending):
            self.end_session(group, member_id)

    def _set_join(self, group: ClassicGroup, wait_ms: int, now: Now) -> None:
        self._context.timers.set((JOIN, group.id, ""), now.tick_ms + wait_ms)

    def _end_sync(self, group: ClassicGroup) -> None:
        group.unsynced.clear()
        self._context.timers.cancel((SYNC, group.id, ""))


# Responses


def joined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """The response to a member of the open generation. Only the leader, which assigns, gets the member
    list."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type or None,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member_id,
        members=_all_members(group) if group.leader == member_id else [],
    )


def join_refused(member_id: str, code: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, protocol_name=None, member_id=member_id)


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type or None, protocol_name=group.protocol, assignment=assignment
    )


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)


def _all_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    protocol = group.protocol or ""
    return [
        JoinGroupResponseMember(
            member_id=member.id, group_instance_id=member.instance_id, metadata=member.metadata(protocol)
        )
        for member in group.members.values()
    ]


# The size of a group's record


def is_too_large(record: StoredRecord, bytes_max: int) -> bool:
    """Whether the log would refuse the record. It is encoded only if its upper bound exceeds the limit."""
    assert isinstance(record.key, GroupMetadataKey)
    assert isinstance(record.value, GroupMetadataValue)
    value = record.value
    characters = len(record.key.group + value.protocol_type + (value.protocol or "") + (value.leader or ""))
    bound = _FRAMING_BYTES + _CHARACTER_BYTES_MAX * characters
    if bound + sum(_bytes_at_most(member) for member in value.members) <= bytes_max:
        return False
    encoded_key, encoded_value = record.encoded()
    assert encoded_value is not None
    return _FRAMING_BYTES + len(encoded_key) + len(encoded_value) > bytes_max


def _bytes_at_most(member: MemberMetadata) -> int:
    characters = (
        len(member.member_id)
        + len(member.group_instance_id or "")
        + len(member.client_id)
        + len(member.client_host)
    )
    return (
        _MEMBER_FRAMING_BYTES
        + _CHARACTER_BYTES_MAX * characters
        + len(member.subscription)
        + len(member.assignment)
    )
