"""One classic group: its members, its state, and its checks of requests.

Responses are built by rebalances.py and its callers. The last stored record is kept beside the current state,
because a rebalance is only in memory until its assignment is written.

The group maintains counts of its members, so that the cost of a joining member does not depend on the size of
the group: a thousand may join at once.
"""

from collections import Counter
from typing import Final

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Now, Record, ReplyTo, StoredRecord
from barnabas.coordinators.decision.timers import Timers
from barnabas.coordinators.group.classic.member import (
    CONSUMER_TYPE,
    ClassicMember,
    LazySubscriptions,
    Protocols,
)
from barnabas.coordinators.group.group import CLASSIC, GroupError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.stored.offsets import GroupMetadataKey, GroupMetadataValue

# States, with Kafka's names.
EMPTY: Final = "Empty"
# Waiting for members to join.
PREPARING: Final = "PreparingRebalance"
# Waiting for the leader's assignment.
COMPLETING: Final = "CompletingRebalance"
STABLE: Final = "Stable"
# The group was deleted, or its shard was closed.
DEAD: Final = "Dead"

# The states that each state may follow.
FOLLOWS: Final = {
    EMPTY: frozenset({PREPARING}),
    PREPARING: frozenset({STABLE, COMPLETING, EMPTY}),
    COMPLETING: frozenset({PREPARING}),
    STABLE: frozenset({COMPLETING}),
    DEAD: frozenset({EMPTY, PREPARING, COMPLETING, STABLE, DEAD}),
}

# The timer of a member's session.
SESSION: Final = "classic-session"

# The version that Kafka 4.3 writes. Version 4, which it also reads, has no additional fields.
_RECORD_VERSION: Final = 3
NO_TIMESTAMP: Final = -1


class InitialDelay:
    """The delay in which the first members of an empty group wait for others."""

    __slots__ = ("delay_ms", "has_newcomers", "remaining_ms")

    def __init__(self, delay_ms: int, remaining_ms: int) -> None:
        self.delay_ms = delay_ms
        self.remaining_ms = remaining_ms
        self.has_newcomers = False


class ClassicGroup:
    """Members, state and checks of a classic group. Implements Group of ../group.py."""

    __slots__ = (
        "_support",
        "_timers",
        "generation",
        "id",
        "initial",
        "joining_count",
        "leader",
        "members",
        "metadata_bytes",
        "pending",
        "protocol",
        "protocol_type",
        "state",
        "state_ms",
        "static",
        "stored",
        "subscriptions",
        "unapplied",
        "unsynced",
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
        self.id = group_id
        self._timers = timers
        self.state = state
        # Time of the last state change. Wall-clock time, because it is stored; None if a record lacks it.
        self.state_ms = state_ms
        self.generation = generation
        # "" until the first member joins.
        self.protocol_type = protocol_type
        self.protocol = protocol
        self.leader = leader
        self.initial: InitialDelay | None = None
        self.members: dict[str, ClassicMember] = {}
        # Member ids by instance id.
        self.static: dict[str, str] = {}
        # Assigned member ids that have not joined yet.
        self.pending: set[str] = set()
        # Members that have not fetched the assignment of this generation.
        self.unsynced: set[str] = set()
        self.joining_count = 0
        # Total size of the members' metadata for all protocols.
        self.metadata_bytes = 0
        # Number of members that support each protocol.
        self._support: dict[str, int] = {}
        # None if the members' subscriptions are unknown.
        self.subscriptions: LazySubscriptions | None = None
        # The last stored record, and the one being written.
        self.stored: GroupMetadataValue | None = None
        self.unapplied: GroupMetadataValue | None = None

    # Members

    def add(self, member: ClassicMember) -> None:
        assert member.instance_id not in self.static, f"{member.instance_id} is a member already"
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        self._count_support(member.protocols, 1)
        self.pending.discard(member.id)

    def remove(self, member: ClassicMember) -> None:
        """Remove a member without pending requests."""
        assert member.joining is None, f"{member.id} has a pending join"
        assert member.syncing is None, f"{member.id} has a pending sync"
        del self.members[member.id]
        if member.instance_id is not None:
            del self.static[member.instance_id]
        self._count_support(member.protocols, -1)
        self.unsynced.discard(member.id)
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def replace(self, old: ClassicMember, new: ClassicMember) -> None:
        """Replace the static member `old`, which must not have pending requests, by `new`."""
        is_leader, is_unsynced = self.leader == old.id, old.id in self.unsynced
        self.remove(old)
        self.add(new)
        if is_leader:
            self.leader = new.id
        if is_unsynced:
            self.unsynced.add(new.id)

    def update(
        self,
        member: ClassicMember,
        *,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        self._count_support(member.protocols, -1)
        self._count_support(protocols, 1)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def start_joining(self, member: ClassicMember, to: ReplyTo) -> None:
        assert member.joining is None, f"{member.id} already has a pending join"
        member.joining = to
        self.joining_count += 1

    def stop_joining(self, member: ClassicMember) -> ReplyTo | None:
        """The pending join to answer, if any."""
        to, member.joining = member.joining, None
        if to is not None:
            self.joining_count -= 1
        return to

    @property
    def have_all_joined(self) -> bool:
        return self.joining_count == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The maximum of all members. Iterates over all members: call it once per rebalance."""
        return max([member.rebalance_timeout_ms for member in self.members.values()], default=0)

    def elect_joined_leader(self) -> bool:
        """Replace a leader that has not joined. False if no member has joined."""
        if self.leader is None:
            return False
        if self.members[self.leader].joining is None:
            joined = (member.id for member in self.members.values() if member.joining is not None)
            self.leader = next(joined, self.leader)
        return self.members[self.leader].joining is not None

    # Protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols shares one with all members."""
        if self.state == EMPTY:
            return bool(protocol_type and protocols)
        count = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._support.get(name, 0) == count for name, _ in protocols
        )

    def elected_protocol(self) -> str:
        """The protocol with the most votes; each member votes for its preferred one among those that all
        support."""
        candidates = {name for name, count in self._support.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def _count_support(self, protocols: Protocols, by: int) -> None:
        for name, metadata in protocols:
            self.metadata_bytes += by * len(metadata)
            count = self._support.get(name, 0) + by
            if count:
                self._support[name] = count
            else:
                del self._support[name]

    def note_subscriptions(self) -> None:
        """Remember the subscriptions of this generation, which are valid until the next one."""
        if self.protocol_type != CONSUMER_TYPE or (self.members and self.protocol is None):
            self.subscriptions = None
        else:
            protocol = self.protocol or ""
            self.subscriptions = LazySubscriptions(
                [member.metadata(protocol) for member in self.members.values()]
            )

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
        """The record of the current state, to be written.

        Members not in `assignments` get an empty one; without it all keep theirs.
        """
        assert self.unapplied is None, f"group {self.id} has a record that is not applied yet"
        protocol = self.protocol or ""
        self.unapplied = GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=NO_TIMESTAMP if self.state_ms is None else self.state_ms,
            members=[
                member.stored(
                    protocol, member.assignment if assignments is None else assignments.get(member.id, b"")
                )
                for member in self.members.values()
            ],
        )
        return StoredRecord(GroupMetadataKey(group=self.id), self.unapplied, _RECORD_VERSION)

    def apply(self, value: GroupMetadataValue | None) -> bool:
        """Apply the record from record(). False if this is another record, which replaces the group.

        The assignment of the current generation makes the group stable.
        """
        if value is None or value is not self.unapplied:
            return False
        self.stored = value
        self.unapplied = None
        if self.state == COMPLETING and value.members and value.generation == self.generation:
            for stored in value.members:
                self.members[stored.member_id].assignment = stored.assignment
            self.state = STABLE
            # The start of CompletingRebalance, as after a load.
            self.state_ms = value.current_state_timestamp
        return True

    def durable(self) -> object:
        """The last stored record; None without one."""
        return self.stored

    # Checks, expiry and other methods of Group

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
        return [StoredRecord(GroupMetadataKey(group=self.id), None)]

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
