"""One member of a consumer group, as in its two records: its metadata and its current assignment.

Equal assignments are interned to save memory. Most groups are small and many read the same topics, so
thousands of members have partition 0 of the same topic, assigned in the same epoch. While a group grows, each
member gets one assignment after the other; unused ones are dropped, because otherwise this history would soon
outgrow the assignments in use.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from enum import IntEnum
from sys import getrefcount, intern
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from barnabas.base.ids import Uuid
from barnabas.base.values import value
from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.protocol.stored.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    TopicPartition,
    TopicPartitions,
)

# Partitions of a member by topic id, with the epoch in which each was assigned. Immutable by convention.
PartitionEpochs: TypeAlias = Mapping[Uuid, Mapping[int, int]]
# Shared by all members without partitions.
NO_PARTITIONS: Final[Mapping[Any, Any]] = {}


def _no_partitions() -> PartitionEpochs:
    return NO_PARTITIONS


# Special epochs: joining, leaving, and a static member that has left temporarily.
JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
STATIC_LEAVING_EPOCH: Final = -2


class MemberState(IntEnum):
    """The reconciliation state of a member. The numbers are Kafka's."""

    STABLE = 0
    # It must revoke partitions before it advances.
    UNREVOKED = 1
    # It waits for partitions that others have not revoked.
    UNRELEASED = 2
    # A state written by a later release.
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, _: object) -> "MemberState":
        return cls.UNKNOWN


class ClassicMetadata(NamedTuple):
    """Additional data of a classic member."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@value(kw_only=True)
class ConsumerMember:
    """A member. Immutable; a changed copy shares the unchanged fields."""

    id: str
    # The member metadata record.
    instance_id: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    # Sorted, without duplicates.
    topics: tuple[str, ...] = ()
    regex: str | None = ""
    assignor: str | None = None
    classic: ClassicMetadata | None = None
    # The current assignment record.
    epoch: int = JOINING_EPOCH
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: PartitionEpochs = field(default_factory=_no_partitions)
    revoking: PartitionEpochs = field(default_factory=_no_partitions)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.epoch == epoch and self.state is MemberState.STABLE

    def after_step(
        self,
        epoch: int,
        state: MemberState,
        assigned: PartitionEpochs,
        revoking: PartitionEpochs = NO_PARTITIONS,
    ) -> "ConsumerMember":
        """The member after a reconciliation step, with its previous epoch."""
        return replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            assigned=self.assigned if assigned == self.assigned else assigned,
            revoking=revoking or NO_PARTITIONS,
        )

    def with_metadata(self, record: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        """The member with the metadata of its record. Common strings are interned."""
        topics = tuple(record.subscribed_topic_names)
        classic = record.classic_member_metadata
        return replace(
            self,
            instance_id=record.instance_id,
            rack=record.rack_id if record.rack_id is None else intern(record.rack_id),
            client_id=intern(record.client_id),
            client_host=intern(record.client_host),
            rebalance_timeout_ms=record.rebalance_timeout_ms,
            topics=self.topics if topics == self.topics else topics,
            regex=record.subscribed_topic_regex,
            assignor=record.server_assignor
            if record.server_assignor is None
            else intern(record.server_assignor),
            classic=None
            if classic is None
            else ClassicMetadata(
                classic.session_timeout_ms,
                tuple((one.name, one.metadata) for one in classic.supported_protocols),
            ),
        )

    def with_assignment(
        self,
        record: ConsumerGroupCurrentMemberAssignmentValue,
        assigned: PartitionEpochs,
        revoking: PartitionEpochs,
    ) -> "ConsumerMember":
        """The member with the current assignment of its record."""
        return replace(
            self,
            epoch=record.member_epoch,
            previous_epoch=record.previous_member_epoch,
            state=MemberState(record.state),
            assigned=assigned,
            revoking=revoking,
        )

    def without_assignment(self) -> "ConsumerMember":
        """The member after the tombstone of its current assignment."""
        return replace(
            self,
            epoch=LEAVING_EPOCH,
            previous_epoch=LEAVING_EPOCH,
            assigned=NO_PARTITIONS,
            revoking=NO_PARTITIONS,
        )

    def left_temporarily(self) -> "ConsumerMember":
        """A static member that leaves temporarily: it keeps its partitions, with assignment epoch 0."""
        kept = {topic: dict.fromkeys(partitions, 0) for topic, partitions in self.assigned.items()}
        return replace(
            self, epoch=STATIC_LEAVING_EPOCH, assigned=kept or NO_PARTITIONS, revoking=NO_PARTITIONS
        )


def partition_epochs_of(topics: list[TopicPartitions], member_epoch: int) -> PartitionEpochs:
    if not topics:
        return NO_PARTITIONS
    return {
        topic.topic_id: dict(zip(topic.partitions, epochs_of(topic, member_epoch), strict=True))
        for topic in topics
    }


def epochs_of(topic: TopicPartitions, member_epoch: int) -> list[int]:
    """The assignment epochs. Releases before 4.3 did not write them; then the member epoch is used."""
    epochs = topic.assignment_epochs
    if epochs is not None and len(epochs) == len(topic.partitions):
        return epochs
    return [max(member_epoch, 0)] * len(topic.partitions)


# Interning

# Maximum number of interned assignments. Dropped ones stay alive with their holders, but are no longer
# shared.
INTERNED_MAX: Final = 10_000
# Size at which the table is first swept for unused assignments.
SWEEP_MIN: Final = 256
# Reference count of an unused assignment: the table's reference and that of getrefcount().
_UNUSED: Final = 2

# Per topic: id, number of partitions, partitions, and epochs if any. Flat, because nested tuples take twice
# the memory.
_Key: TypeAlias = tuple[Any, ...]
_Interned = TypeVar("_Interned")


class InternTable(Generic[_Interned]):
    """A table of interned values by a key with their complete content."""

    __slots__ = ("_by_key", "_sweep_at")

    def __init__(self) -> None:
        self._by_key: dict[_Key, _Interned] = {}
        self._sweep_at = SWEEP_MIN

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: _Key) -> _Interned | None:
        return self._by_key.get(key)

    def add(self, key: _Key, one: _Interned) -> _Interned:
        if len(self._by_key) >= self._sweep_at:
            self._sweep()
        self._by_key[key] = one
        return one

    def _sweep(self) -> None:
        """Drop unused values; all values if the rest would soon fill the table again.

        The next sweep is at twice the size, so its amortized cost is constant per added value.
        """
        known = self._by_key
        used = [key for key in list(known) if getrefcount(known[key]) > _UNUSED]
        if 2 * len(used) > INTERNED_MAX:
            used = []
        self._by_key = {key: known[key] for key in used}
        self._sweep_at = max(2 * len(used), SWEEP_MIN)


class InternedAssignments:
    """Interned target assignments and held partitions."""

    def __init__(self) -> None:
        self._targets: InternTable[Assignment] = InternTable()
        self._held: InternTable[PartitionEpochs] = InternTable()

    def read_target(self, topics: list[TopicPartition]) -> Assignment:
        """The interned target of a stored record."""
        flat: list[object] = []
        for topic in topics:
            flat += (topic.topic_id, len(topic.partitions), *topic.partitions)
        key = tuple(flat)
        found = self._targets.get(key)
        if found is not None:
            return found
        return self._targets.add(key, {topic.topic_id: frozenset(topic.partitions) for topic in topics})

    def intern_target(self, target: Assignment) -> Assignment:
        """An equal, interned target."""
        flat: list[object] = []
        for topic_id, numbers in target.items():
            flat += (topic_id, len(numbers), *sorted(numbers))
        key = tuple(flat)
        found = self._targets.get(key)
        return self._targets.add(key, target) if found is None else found

    def read_held(self, topics: list[TopicPartitions], member_epoch: int) -> PartitionEpochs:
        """The interned partitions of a stored record."""
        if not topics:
            return NO_PARTITIONS
        flat: list[object] = []
        for topic in topics:
            flat += (topic.topic_id, len(topic.partitions), *topic.partitions)
            flat += epochs_of(topic, member_epoch)
        key = tuple(flat)
        found = self._held.get(key)
        return self._held.add(key, partition_epochs_of(topics, member_epoch)) if found is None else found

    def intern_held(self, held: PartitionEpochs) -> PartitionEpochs:
        """An equal, interned value of held partitions."""
        if not held:
            return NO_PARTITIONS
        flat: list[object] = []
        for topic_id, since in held.items():
            flat += (topic_id, len(since), *since, *since.values())
        key = tuple(flat)
        found = self._held.get(key)
        return self._held.add(key, held) if found is None else found


# Shared by all shards, because their groups read the same topics.
INTERNED: Final = InternedAssignments()
