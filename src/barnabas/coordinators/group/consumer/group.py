"""The state of a consumer group, and its checks of requests.

Members and assignments change only in the methods under "Apply records", which replay.py calls, live and
while loading. They cannot fail, and update all counts at a cost proportional to the record.
"""

from dataclasses import replace
from typing import Final, TypeVar

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Now, Record
from barnabas.coordinators.group.assignors.shares import Shares
from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.consumer.member import (
    LEAVING_EPOCH,
    NO_PARTITIONS,
    ConsumerMember,
    MemberState,
    PartitionEpochs,
)
from barnabas.coordinators.group.consumer.records import group_tombstones
from barnabas.coordinators.group.consumer.subscriptions import Subscriptions
from barnabas.coordinators.group.group import CONSUMER, GroupError
from barnabas.protocol.error_codes import ErrorCode

_Key = TypeVar("_Key")

# Initial epochs of a new group.
_FIRST_EPOCH: Final = 1
# The first version of OffsetCommit with a member epoch.
_COMMITS_WITH_EPOCHS: Final = 9


class Ownership:
    """The member that is assigned each partition or still has to revoke it: at most one at a time."""

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: dict[Uuid, dict[int, str]] = {}

    def holder(self, topic_id: Uuid, partition: int) -> str | None:
        holders = self._holders.get(topic_id)
        return None if holders is None else holders.get(partition)

    def replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Update the holders after a change of a member."""
        if old is not None:
            if new is not None and old.assigned is new.assigned and old.revoking is new.revoking:
                return
            self._release(old.id, old.assigned)
            self._release(old.id, old.revoking)
        if new is not None:
            self._take(new.id, new.assigned)
            self._take(new.id, new.revoking)

    def _take(self, member_id: str, held: PartitionEpochs) -> None:
        for topic_id, partitions in held.items():
            self._holders.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def _release(self, member_id: str, held: PartitionEpochs) -> None:
        for topic_id, partitions in held.items():
            holders = self._holders.get(topic_id)
            if holders is None:
                continue
            for partition in partitions:
                # In a compacted log, the record of the next holder may come first.
                if holders.get(partition) == member_id:
                    del holders[partition]
            if not holders:
                del self._holders[topic_id]


class ConsumerGroup:
    """Members, epochs and assignments of a consumer group. Implements Group of ../group.py."""

    __slots__ = (
        "_last_topics",
        "_stable_members",
        "assignment_epoch",
        "assignment_ms",
        "assignors",
        "classic_members",
        "classic_protocols",
        "epoch",
        "has_partition_metadata",
        "id",
        "is_fresh",
        "members",
        "metadata_hash",
        "ownership",
        "shares",
        "static",
        "subscriptions",
        "targets",
    )

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = _FIRST_EPOCH
        # Time of the last assignment; 0 without one.
        self.assignment_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        # Member ids by instance id.
        self.static: dict[str, str] = {}
        self.targets: Final[dict[str, Assignment]] = {}
        # Only in memory, and only while the group reconciles: see target.py.
        self.shares: Shares | None = None
        self.subscriptions: Final = Subscriptions()
        self.ownership: Final = Ownership()
        # Counts of members by preferred assignor, and by supported classic protocol.
        self.assignors: dict[str, int] = {}
        self.classic_members = 0
        self.classic_protocols: dict[str, int] = {}
        # Counts of stable members by epoch.
        self._stable_members: dict[int, int] = {}
        # The topics of the last member, to share the object between members.
        self._last_topics: tuple[str, ...] = ()
        # Whether the log has the partition metadata record that releases before 4.1 wrote instead of the
        # hash.
        self.has_partition_metadata = False
        # Only in memory: whether the metadata hash has been compared with the current topics.
        self.is_fresh = False

    # Group

    @property
    def kind(self) -> str:
        return CONSUMER

    @property
    def protocol_type(self) -> str:
        return "consumer"

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "DeferredAssignments"
        return "Stable" if self._is_stable() else "Reconciling"

    def _is_stable(self) -> bool:
        return self._stable_members.get(self.assignment_epoch, 0) >= len(self.members)

    def check_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, *, is_txn: bool, version: int
    ) -> None:
        if generation_or_epoch < 0 and not self.members:
            return
        if is_txn and generation_or_epoch == -1 and member_id == "" and instance_id is None:
            # A producer that commits without group membership.
            return
        member = self.member(member_id)
        if not is_txn and member.classic is None and version < _COMMITS_WITH_EPOCHS:
            raise GroupError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Members of the consumer protocol need OffsetCommit v{_COMMITS_WITH_EPOCHS} or later.",
            )
        if generation_or_epoch > member.epoch:
            raise stale(member, f"Epoch {generation_or_epoch} is newer than the member epoch {member.epoch}.")

    def check_commit_of(
        self, topic_id: Uuid, partition: int, generation_or_epoch: int, member_id: str
    ) -> None:
        """Accept a commit with an older epoch if the partition was already assigned to the member in it."""
        member = self.members.get(member_id)
        if member is None or generation_or_epoch >= member.epoch:
            return
        assigned = member.assigned.get(topic_id, NO_PARTITIONS).get(partition)
        if assigned is None:
            assigned = member.revoking.get(topic_id, NO_PARTITIONS).get(partition)
        if assigned is None:
            raise stale(member, f"Partition {partition} is not assigned to member {member_id}.")
        if generation_or_epoch < assigned:
            raise stale(
                member,
                f"Epoch {generation_or_epoch} is older than the partition's assignment epoch {assigned}.",
            )

    def extend_session(self, member_id: str, now: Now) -> None:
        """Nothing to do: only heartbeats extend the session of a consumer."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise stale(member, f"Epoch is {member_epoch}, expected the member epoch {member.epoch}.")

    def check_offset_delete(self) -> None:
        """Nothing to check: is_subscribed_to() protects subscribed topics."""

    def check_delete(self) -> None:
        if self.members:
            raise GroupError(ErrorCode.NON_EMPTY_GROUP, f"Group {self.id} has members.")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        return committed_ms

    def tombstones(self) -> list[Record]:
        return group_tombstones(self.id, self.members, self.subscriptions.resolved)

    def snapshot(self) -> "ConsumerGroup":
        """A copy of the state that an assignment depends on."""
        copy = ConsumerGroup(self.id)
        copy.members.update(self.members)
        copy.static.update(self.static)
        copy.targets.update(self.targets)
        copy.assignors.update(self.assignors)
        return copy

    # Queries

    def member(self, member_id: str) -> ConsumerMember:
        found = self.members.get(member_id)
        if found is None:
            raise GroupError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}."
            )
        return found

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        if instance_id is None:
            return None
        member_id = self.static.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def static_member_with_id(self, instance_id: str, member_id: str) -> ConsumerMember:
        """The static member with this instance id. GroupError if it is unknown or has another member id."""
        member = self.static_member(instance_id)
        if member is None:
            raise GroupError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown in group {self.id}."
            )
        if member.id != member_id:
            raise GroupError(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Member {member_id} with instance id {instance_id} was fenced by member {member.id}.",
            )
        return member

    def check_room(self, member_id: str, size_max: int) -> None:
        """Refuse a new member if the group is full."""
        if len(self.members) >= size_max and member_id not in self.members:
            raise GroupError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"Group {self.id} has reached its maximum of {size_max} members.",
            )

    def target_of(self, member: ConsumerMember) -> Assignment:
        """The member's target; for a static member with a new id, that of its predecessor."""
        member_id: str | None = member.id
        if member.instance_id is not None:
            member_id = self.static.get(member.instance_id)
        return self.targets.get(member_id or "", {})

    def durable(self) -> object:
        """The state that the records describe, as a comparable value."""
        return (
            (self.epoch, self.metadata_hash, self.has_partition_metadata),
            (self.assignment_epoch, self.assignment_ms),
            dict(self.members),
            dict(self.targets),
            dict(self.subscriptions.resolved),
        )

    # Apply records

    def put_member(self, member: ConsumerMember) -> set[str]:
        """Add or update a member. Return the topics that the group may have gained or lost."""
        old = self.members.get(member.id)
        self.members[member.id] = member
        if old is None and self.shares is not None:
            self.shares.add(member.id)
            if member.id in self.targets:
                self.shares = None
        # A member whose assignment is deleted is leaving, and may already have been replaced.
        if member.instance_id is not None and member.epoch != LEAVING_EPOCH:
            self.static[member.instance_id] = member.id
        return self._replace(old, member)

    def remove_member(self, member_id: str) -> set[str]:
        """Remove a member. Returns the same as put_member()."""
        old = self.members.pop(member_id, None)
        if old is None:
            return set()
        if self.shares is not None and not self.shares.remove(member_id):
            self.shares = None
        # Its replacement may already have its instance id.
        if old.instance_id is not None and self.static.get(old.instance_id) == member_id:
            del self.static[old.instance_id]
        return self._replace(old, None)

    def put_target(self, member_id: str, target: Assignment | None) -> None:
        """Set or remove the target of a member."""
        had = self.targets.pop(member_id, None) if target is None else self.targets.get(member_id)
        if target is not None:
            self.targets[member_id] = target
        if self.shares is not None and not self.shares.put(member_id, had, target):
            self.shares = None

    def shared_topics(self, topics: tuple[str, ...]) -> tuple[str, ...]:
        """The same topics, as a shared object if equal to those of the last member."""
        return self._last_topics if topics == self._last_topics else topics

    def with_shared_topics(self, member: ConsumerMember) -> ConsumerMember:
        """The member with a shared tuple of topics, because most members name the same ones."""
        if member.topics != self._last_topics:
            self._last_topics = member.topics
        elif member.topics is not self._last_topics:
            return replace(member, topics=self._last_topics)
        return member

    def _replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> set[str]:
        self.ownership.replace(old, new)
        for member, change in ((old, -1), (new, +1)):
            if member is None:
                continue
            if member.state is MemberState.STABLE:
                _count(self._stable_members, member.epoch, change)
                if self.shares is not None and self._is_stable():
                    self.shares = None
            if member.assignor is not None:
                _count(self.assignors, member.assignor, change)
            if member.classic is not None:
                self.classic_members += change
                for name, _ in member.classic.protocols:
                    _count(self.classic_protocols, name, change)
        return self.subscriptions.replace(old, new)


def stale(member: ConsumerMember, message: str) -> GroupError:
    """The error for a wrong epoch, with the code of the member's protocol."""
    code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return GroupError(code, message)


def _count(counts: dict[_Key, int], key: _Key, change: int) -> None:
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        del counts[key]
