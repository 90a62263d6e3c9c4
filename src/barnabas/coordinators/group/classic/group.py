"""One classic group: its members, its state, and its checks of requests.

Responses are built by rebalances.py and its callers. The last stored record is kept beside the current state,
because a rebalance is only in memory until its assignment is written.
"""

from typing import Final

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Now, Record, StoredRecord
from barnabas.coordinators.decision.timers import Timers
from barnabas.coordinators.group.classic.member import ClassicMember, Protocols
from barnabas.coordinators.group.classic.membership import Membership
from barnabas.coordinators.group.classic.states import (
    COMPLETING,
    DEAD,
    EMPTY,
    FOLLOWS,
    PREPARING,
    STABLE,
)
from barnabas.coordinators.group.classic.stored import group_record, tombstone, value_of
from barnabas.coordinators.group.classic.subscriptions import CONSUMER_TYPE, Subscriptions
from barnabas.coordinators.group.group import CLASSIC, GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.stored.offsets import GroupMetadataValue

SESSION: Final = "classic-session"


class InitialDelay:
    """The delay in which the first members of an empty group wait for others."""

    __slots__ = ("delay_ms", "has_newcomers", "remaining_ms")

    def __init__(self, delay_ms: int, remaining_ms: int) -> None:
        self.delay_ms = delay_ms
        self.remaining_ms = remaining_ms
        self.has_newcomers = False


class ClassicGroup(Membership):
    """A Group of group.py."""

    __slots__ = (
        "_timers",
        "generation",
        "id",
        "initial",
        "protocol",
        "state",
        "state_ms",
        "stored",
        "subscriptions",
        "unapplied",
    )

    def __init__(
        self,
        group_id: str,
        timers: Timers,
        *,
        state: str = EMPTY,
        state_ms: int | None = None,
        generation: int = 0,
        protocol_type: str = "",
        protocol: str | None = None,
        leader: str | None = None,
    ) -> None:
        super().__init__(protocol_type=protocol_type, leader=leader)
        self.id = group_id
        self._timers = timers
        self.state = state
        # Time of the last state change. Wall-clock time, because it is stored; None if a record lacks it.
        self.state_ms = state_ms
        self.generation = generation
        self.protocol = protocol
        self.initial: InitialDelay | None = None
        # None if the members' subscriptions are unknown.
        self.subscriptions: Subscriptions | None = None
        # The last stored record, and the one being written.
        self.stored: GroupMetadataValue | None = None
        self.unapplied: GroupMetadataValue | None = None

    # Protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.state == EMPTY:
            return bool(protocol_type and protocols)
        return self.shares_protocol(protocol_type, protocols)

    def note_subscriptions(self) -> None:
        """Remember the subscriptions of this generation, which are valid until the next one."""
        if self.protocol_type != CONSUMER_TYPE or (self.members and self.protocol is None):
            self.subscriptions = None
        else:
            protocol = self.protocol or ""
            self.subscriptions = Subscriptions(member.metadata(protocol) for member in self.members.values())

    # State

    def move(self, state: str, now: Now) -> None:
        assert self.state in FOLLOWS[state], f"group {self.id}: {self.state} -> {state}"
        self.state = state
        self.state_ms = now.ms

    def open_generation(self, now: Now) -> None:
        """Start the next generation with the members that have joined."""
        self.generation += 1
        self.protocol = self.elected_protocol() if self.members else None
        self.note_subscriptions()
        self.unsynced.clear()
        self.move(COMPLETING if self.members else EMPTY, now)

    # Records

    def record(self, assignments: dict[str, bytes] | None = None) -> StoredRecord:
        """The record of the current state, with `assignments` if given, to be written."""
        assert self.unapplied is None, f"group {self.id} has a record that is not applied yet"
        self.unapplied = value_of(self, assignments)
        return group_record(self.id, self.unapplied)

    def apply(self, value: GroupMetadataValue) -> None:
        """The record from record() is written. The assignment of the current generation makes the group
        stable."""
        self.stored = value
        self.unapplied = None
        if self.state == COMPLETING and value.members and value.generation == self.generation:
            for stored in value.members:
                self.members[stored.member_id].assignment = stored.assignment
            self.state = STABLE
            # The start of CompletingRebalance, as after a load.
            self.state_ms = value.current_state_timestamp

    def durable(self) -> object:
        """The last stored record; None without one."""
        return self.stored

    # A Group of group.py

    @property
    def kind(self) -> str:
        return CLASSIC

    @property
    def is_empty(self) -> bool:
        return self.state == EMPTY

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        if instance_id is not None:
            current = self.static.get(instance_id)
            if current is None:
                raise _unknown_member(self.id, instance_id)
            if current != member_id:
                raise GroupError(
                    ErrorCode.FENCED_INSTANCE_ID, f"{instance_id} is member {current}, not {member_id}"
                )
        if member_id not in self.members:
            raise _unknown_member(self.id, member_id)

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise GroupError(
                ErrorCode.ILLEGAL_GENERATION, f"group {self.id} has generation {self.generation}"
            )

    def check_alive(self, code: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE) -> None:
        if self.state == DEAD:
            raise GroupError(code, f"Group {self.id} is in dead state.")

    def check_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, *, is_txn: bool, version: int
    ) -> None:
        if generation_or_epoch < 0 and self.state == EMPTY:
            return
        self.check_alive()
        if generation_or_epoch >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            self.check_generation(generation_or_epoch)
        elif not is_txn and self.state != EMPTY:
            raise _unknown_member(self.id, member_id)
        # Not in PreparingRebalance: members commit the partitions that they are about to give up.
        if not is_txn and self.state == COMPLETING:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {self.id} waits for its assignment")

    def check_commit_of(
        self, topic_id: Uuid, partition: int, generation_or_epoch: int, member_id: str
    ) -> None:
        """Nothing to check: only clients know the assignment of a classic group."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self.check_alive(ErrorCode.GROUP_ID_NOT_FOUND)

    def check_offset_delete(self) -> None:
        self.check_alive(ErrorCode.GROUP_ID_NOT_FOUND)
        # is_subscribed_to() protects the offsets that consumers use; for other types they are unknown.
        if self.state != EMPTY and self.protocol_type != CONSUMER_TYPE:
            raise _not_empty(self.id)

    def check_delete(self) -> None:
        self.check_alive(ErrorCode.GROUP_ID_NOT_FOUND)
        if self.state != EMPTY:
            raise _not_empty(self.id)

    @property
    def topics(self) -> frozenset[str] | None:
        """The topics that the members subscribe to; None if unknown."""
        return None if self.subscriptions is None else self.subscriptions.topics

    def is_subscribed_to(self, topic: str) -> bool:
        topics = self.topics
        return self.protocol_type == CONSUMER_TYPE if topics is None else topic in topics

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        if not self.protocol_type:
            return committed_ms
        if self.state == EMPTY:
            return committed_ms if self.state_ms is None else self.state_ms
        if self.state == STABLE and self.protocol_type == CONSUMER_TYPE and self.topics is not None:
            return committed_ms
        return None

    def tombstones(self) -> list[Record]:
        return [tombstone(self.id)]

    # Sessions

    def begin_session(self, member: ClassicMember, now: Now) -> None:
        self.set_session(member.id, member.session_timeout_ms, now)

    def set_session(self, member_id: str, timeout_ms: int, now: Now) -> None:
        self._timers.set((SESSION, self.id, member_id), now.tick_ms + timeout_ms)

    def extend_session(self, member_id: str, now: Now) -> None:
        """A commit extends the session, but not in CompletingRebalance, where a SyncGroup is due."""
        member = self.members.get(member_id)
        if member is not None and self.state in (STABLE, PREPARING):
            self.begin_session(member, now)


def _unknown_member(group_id: str, who: str) -> GroupError:
    return GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"{who!r} is not a member of group {group_id}")


def _not_empty(group_id: str) -> GroupError:
    return GroupError(ErrorCode.NON_EMPTY_GROUP, f"group {group_id} has members")
