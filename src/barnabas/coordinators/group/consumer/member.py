"""One member of a consumer group, as in its two records: its metadata and its current assignment."""

from collections.abc import Mapping
from dataclasses import field, replace
from enum import IntEnum
from sys import intern
from typing import Any, Final, NamedTuple, TypeAlias

from barnabas.base.ids import Uuid
from barnabas.base.values import value
from barnabas.protocol.stored.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    TopicPartitions,
)

# Partitions of a member by topic id, with the epoch in which each was assigned. Immutable by convention.
Held: TypeAlias = Mapping[Uuid, Mapping[int, int]]
# Shared by all members without partitions.
NOTHING: Final[Mapping[Any, Any]] = {}


def _nothing() -> Held:
    return NOTHING


# Special epochs: joining, leaving, and a static member that has left temporarily.
JOINING: Final = 0
LEAVING: Final = -1
AWAY: Final = -2


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


class ClassicSide(NamedTuple):
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
    classic: ClassicSide | None = None
    # The current assignment record.
    epoch: int = JOINING
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Held = field(default_factory=_nothing)
    revoking: Held = field(default_factory=_nothing)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.epoch == epoch and self.state is MemberState.STABLE

    def moved(
        self, epoch: int, state: MemberState, assigned: Held, revoking: Held = NOTHING
    ) -> "ConsumerMember":
        """The member after a reconciliation step, with its previous epoch."""
        return replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            assigned=self.assigned if assigned == self.assigned else assigned,
            revoking=revoking or NOTHING,
        )

    def told(self, record: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
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
            else ClassicSide(
                classic.session_timeout_ms,
                tuple((one.name, one.metadata) for one in classic.supported_protocols),
            ),
        )

    def placed(
        self, record: ConsumerGroupCurrentMemberAssignmentValue, assigned: Held, revoking: Held
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

    def displaced(self) -> "ConsumerMember":
        """The member after the tombstone of its current assignment."""
        return replace(self, epoch=LEAVING, previous_epoch=LEAVING, assigned=NOTHING, revoking=NOTHING)

    def away(self) -> "ConsumerMember":
        """A static member that leaves temporarily: it keeps its partitions, with assignment epoch 0."""
        kept = {topic: dict.fromkeys(partitions, 0) for topic, partitions in self.assigned.items()}
        return replace(self, epoch=AWAY, assigned=kept or NOTHING, revoking=NOTHING)


def held_of(topics: list[TopicPartitions], member_epoch: int) -> Held:
    if not topics:
        return NOTHING
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
