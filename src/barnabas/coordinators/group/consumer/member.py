"""One member of a consumer group, as its two records have it: what it told us, and how far it has come."""

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

# What a member has: of each topic its partitions, with the epoch in which each was assigned. Never changed.
Held: TypeAlias = Mapping[Uuid, Mapping[int, int]]
# One for all who have nothing.
NOTHING: Final[Mapping[Any, Any]] = {}


def _nothing() -> Held:
    return NOTHING


# Epochs that are none: of a member that joins, leaves, or is away for a while and keeps its place.
JOINING: Final = 0
LEAVING: Final = -1
AWAY: Final = -2


class MemberState(IntEnum):
    """Where a member stands on its way to the target assignment. The numbers are Kafka's."""

    STABLE = 0
    # It must give up partitions before it goes on.
    UNREVOKED = 1
    # It waits for partitions that others have not given up.
    UNRELEASED = 2
    # A later release has written a state that is not known here.
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, _: object) -> "MemberState":
        return cls.UNKNOWN


class ClassicSide(NamedTuple):
    """What is kept of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@value(kw_only=True)
class ConsumerMember:
    """A member. It is replaced as a whole; what did not change is shared with the one before."""

    id: str
    # What it told us of itself: the member's record.
    instance_id: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    # Sorted, without doubles.
    topics: tuple[str, ...] = ()
    regex: str | None = ""
    assignor: str | None = None
    classic: ClassicSide | None = None
    # How far it has come: the record of its assignment.
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
        """The member after a step of reconciliation. The epoch that it leaves behind is remembered."""
        return replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            assigned=self.assigned if assigned == self.assigned else assigned,
            revoking=revoking or NOTHING,
        )

    def told(self, record: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        """The member as its record has it. Strings that many members share are kept once."""
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
        """The member as the record of its assignment has it, with what the record says that it holds."""
        return replace(
            self,
            epoch=record.member_epoch,
            previous_epoch=record.previous_member_epoch,
            state=MemberState(record.state),
            assigned=assigned,
            revoking=revoking,
        )

    def displaced(self) -> "ConsumerMember":
        """The member after the tombstone of its assignment."""
        return replace(self, epoch=LEAVING, previous_epoch=LEAVING, assigned=NOTHING, revoking=NOTHING)

    def away(self) -> "ConsumerMember":
        """A static member that goes for a while: it keeps its partitions, in an epoch before all."""
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
    """Releases before 4.3 wrote no epochs of partitions; then the member's own stands for them."""
    epochs = topic.assignment_epochs
    if epochs is not None and len(epochs) == len(topic.partitions):
        return epochs
    return [max(member_epoch, 0)] * len(topic.partitions)
