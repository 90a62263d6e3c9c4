"""A consumer group: what its records tell of, and what may be asked of it.

Members and assignments change by the methods of "What records say" alone, which ConsumerGroups.apply() calls,
live and while loading. They cannot fail and keep every count up to date at the cost of what the record holds.
"""

from dataclasses import replace
from typing import Final, TypeVar

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Record
from barnabas.coordinators.group.assignors.shares import Shares
from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.consumer.member import LEAVING, NOTHING, ConsumerMember, MemberState
from barnabas.coordinators.group.consumer.ownership import Ownership
from barnabas.coordinators.group.consumer.records import group_tombstones
from barnabas.coordinators.group.consumer.subscriptions import Subscriptions
from barnabas.coordinators.group.errors import GroupError
from barnabas.coordinators.group.ground import CONSUMER
from barnabas.protocol.error_codes import ErrorCode

_Key = TypeVar("_Key")

# Epochs of a group about which nothing has been written.
_FIRST_EPOCH: Final = 1
# From this version of OffsetCommit on a commit carries a member epoch.
_COMMITS_WITH_EPOCHS: Final = 9


class ConsumerGroup:
    """A Group of ground.py."""

    __slots__ = (
        "_settled",
        "_topics_told",
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
        # When it was computed; 0 if it never was.
        self.assignment_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        # By instance id.
        self.static: dict[str, str] = {}
        self.targets: Final[dict[str, Assignment]] = {}
        # Only in memory, and only from one assignment to the next while members still move: see target.py.
        self.shares: Shares | None = None
        self.subscriptions: Final = Subscriptions()
        self.ownership: Final = Ownership()
        # Counts of members by the assignor that they prefer, and by the classic protocols that they speak.
        self.assignors: dict[str, int] = {}
        self.classic_members = 0
        self.classic_protocols: dict[str, int] = {}
        # Of members that are stable, how many have come to each epoch.
        self._settled: dict[int, int] = {}
        # What the last member told that it subscribes to.
        self._topics_told: tuple[str, ...] = ()
        # Releases before 4.1 wrote a record of their own for what the hash now says.
        self.has_partition_metadata = False
        # Only in memory: whether the hash has been compared with the topics as they are now.
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
            return "Assigning"
        return "Stable" if self._is_settled() else "Reconciling"

    def _is_settled(self) -> bool:
        return self._settled.get(self.assignment_epoch, 0) >= len(self.members)

    def check_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, *, is_txn: bool, version: int
    ) -> None:
        if generation_or_epoch < 0 and not self.members:
            return
        if is_txn and generation_or_epoch == -1 and member_id == "" and instance_id is None:
            # Of a producer that does not tell for which member it commits.
            return
        member = self.member(member_id)
        if not is_txn and member.classic is None and version < _COMMITS_WITH_EPOCHS:
            raise GroupError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Members of the consumer protocol commit with version {_COMMITS_WITH_EPOCHS} or later.",
            )
        if generation_or_epoch > member.epoch:
            raise stale(member, f"Epoch {generation_or_epoch} is newer than the member's, {member.epoch}.")

    def check_commit_of(
        self, topic_id: Uuid, partition: int, generation_or_epoch: int, member_id: str
    ) -> None:
        """A commit that was sent in an older epoch is good if the member has had the partition since then."""
        member = self.members.get(member_id)
        if member is None or generation_or_epoch >= member.epoch:
            return
        assigned = member.assigned.get(topic_id, NOTHING).get(partition)
        if assigned is None:
            assigned = member.revoking.get(topic_id, NOTHING).get(partition)
        if assigned is None:
            raise stale(member, f"Member {member_id} does not have partition {partition}.")
        if generation_or_epoch < assigned:
            raise stale(
                member, f"Epoch {generation_or_epoch} is older than the partition's assignment, {assigned}."
            )

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise stale(member, f"Epoch {member_epoch} is not the member's, {member.epoch}.")

    def check_offset_delete(self) -> None:
        """Whoever asks for a topic that is subscribed to is refused by is_subscribed_to()."""

    def check_delete(self) -> None:
        if self.members:
            raise GroupError(ErrorCode.NON_EMPTY_GROUP, f"Group {self.id} has members.")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        return committed_ms

    def tombstones(self) -> list[Record]:
        return group_tombstones(self.id, self.members, self.subscriptions.resolved)

    def as_of_now(self) -> "ConsumerGroup":
        """A copy of what an assignment is computed from."""
        copy = ConsumerGroup(self.id)
        copy.members.update(self.members)
        copy.static.update(self.static)
        copy.targets.update(self.targets)
        copy.assignors.update(self.assignors)
        return copy

    # Questions of this room

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

    def target_of(self, member: ConsumerMember) -> Assignment:
        """What a member should have; of a static one that comes back with a new id, what it had before."""
        member_id: str | None = member.id
        if member.instance_id is not None:
            member_id = self.static.get(member.instance_id)
        return self.targets.get(member_id or "", {})

    def durable(self) -> object:
        """What the records tell of, as a value to compare."""
        return (
            (self.epoch, self.metadata_hash, self.has_partition_metadata),
            (self.assignment_epoch, self.assignment_ms),
            dict(self.members),
            dict(self.targets),
            dict(self.subscriptions.resolved),
        )

    # What records say

    def put_member(self, member: ConsumerMember) -> set[str]:
        """Returns the topics to which the subscription of the group may have changed."""
        old = self.members.get(member.id)
        self.members[member.id] = member
        if old is None and self.shares is not None:
            self.shares.add(member.id)
            if member.id in self.targets:
                self.shares = None
        # One whose assignment is gone is about to go, and may have been replaced already.
        if member.instance_id is not None and member.epoch != LEAVING:
            self.static[member.instance_id] = member.id
        return self._replace(old, member)

    def remove_member(self, member_id: str) -> set[str]:
        """Returns as put_member()."""
        old = self.members.pop(member_id, None)
        if old is None:
            return set()
        if self.shares is not None and not self.shares.remove(member_id):
            self.shares = None
        # One that has replaced it has its instance id already.
        if old.instance_id is not None and self.static.get(old.instance_id) == member_id:
            del self.static[old.instance_id]
        return self._replace(old, None)

    def put_target(self, member_id: str, target: Assignment | None) -> None:
        """What a member should have from now on."""
        had = self.targets.pop(member_id, None) if target is None else self.targets.get(member_id)
        if target is not None:
            self.targets[member_id] = target
        if self.shares is not None and not self.shares.put(member_id, had, target):
            self.shares = None

    def shared_topics(self, topics: tuple[str, ...]) -> tuple[str, ...]:
        """The same, and the very object that most members have if they name the same."""
        return self._topics_told if topics == self._topics_told else topics

    def sharing_topics(self, member: ConsumerMember) -> ConsumerMember:
        """Most members name the same topics: then they keep them once."""
        if member.topics != self._topics_told:
            self._topics_told = member.topics
        elif member.topics is not self._topics_told:
            return replace(member, topics=self._topics_told)
        return member

    def _replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> set[str]:
        self.ownership.replace(old, new)
        for member, change in ((old, -1), (new, +1)):
            if member is None:
                continue
            if member.state is MemberState.STABLE:
                _count(self._settled, member.epoch, change)
                if self.shares is not None and self._is_settled():
                    self.shares = None
            if member.assignor is not None:
                _count(self.assignors, member.assignor, change)
            if member.classic is not None:
                self.classic_members += change
                for name, _ in member.classic.protocols:
                    _count(self.classic_protocols, name, change)
        return self.subscriptions.replace(old, new)


def stale(member: ConsumerMember, message: str) -> GroupError:
    """An epoch that is not right, as members of either protocol are told of it."""
    code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return GroupError(code, message)


def _count(counts: dict[_Key, int], key: _Key, change: int) -> None:
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        del counts[key]
