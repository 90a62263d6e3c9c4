"""Online migration of groups between the classic and the consumer protocol.

The first member that joins with the consumer protocol converts a classic group to a consumer group; classic
members remain, and classic_members.py serves them. When the last member of the consumer protocol has left,
the group becomes a classic group again, and rebalances.

This module also reads and writes the subscriptions and assignments of the classic protocol.
"""

from collections.abc import Collection, Iterable, Mapping
from struct import unpack_from
from sys import intern
from typing import Final, NamedTuple

from barnabas.base.errors import Malformed
from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Now, Outcome, Record
from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.classic.group import STABLE, ClassicGroup
from barnabas.coordinators.group.classic.groups import ClassicGroups
from barnabas.coordinators.group.classic.member import CONSUMER_TYPE, ClassicMember
from barnabas.coordinators.group.consumer import records
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import NO_PARTITIONS, ClassicMetadata, ConsumerMember
from barnabas.coordinators.group.consumer.member_update import MEMBER_TIMERS, SESSION
from barnabas.coordinators.group.consumer.reconcile import Owned
from barnabas.coordinators.group.consumer.subscriptions import TopicIndex
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import Group, GroupError
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from barnabas.protocol.stored.framing import decode_versioned, encode_value


class GroupToJoin(NamedTuple):
    """The group that a member joins; if converted from `classic`, with the records of the conversion."""

    group: ConsumerGroup
    classic: ClassicGroup | None = None
    records: tuple[Record, ...] = ()


class Migration:
    """Converts groups of one kind into the other."""

    def __init__(self, context: ShardContext, topics: TopicIndex, classic: ClassicGroups) -> None:
        self._context = context
        self._topics = topics
        self._classic = classic

    # Upgrade

    def prepare_upgrade(self, group: Group) -> GroupToJoin:
        """A consumer group converted from a classic one. Changes nothing yet. Raises GroupError."""
        assert isinstance(group, ClassicGroup)
        if group.is_empty:
            return GroupToJoin(ConsumerGroup(group.id), group, tuple(group.tombstones()))
        self._check_upgrade(group)
        upgraded = ConsumerGroup(group.id)
        upgraded.epoch = upgraded.assignment_epoch = group.generation
        for member in group.members.values():
            self._convert_member(upgraded, group, member)
        upgraded.metadata_hash = self._topics.hash_of(upgraded.subscriptions)
        return GroupToJoin(upgraded, group, (*group.tombstones(), *_records_of(upgraded)))

    def finish_upgrade(self, joined: GroupToJoin, now: Now) -> Outcome:
        """Refuse the pending requests of the classic group, and continue its sessions in the consumer
        group."""
        outcome = Outcome()
        if joined.classic is not None:
            outcome.add(self._classic.release(joined.classic, ErrorCode.REBALANCE_IN_PROGRESS))
            outcome.records += joined.records
            for member in joined.group.members.values():
                assert member.classic is not None
                ends_ms = now.tick_ms + member.classic.session_timeout_ms
                self._context.timers.set((SESSION, joined.group.id, member.id), ends_ms)
        return outcome

    def _check_upgrade(self, group: ClassicGroup) -> None:
        settings = self._context.settings
        if not settings.upgrades:
            raise _refused(group, "group.consumer.migration.policy does not allow upgrades")
        if group.protocol_type != CONSUMER_TYPE:
            raise _refused(group, "its protocol type is not consumer")
        if len(group.members) > settings.consumer_size_max:
            raise _refused(group, f"it has more than {settings.consumer_size_max} members")

    def _convert_member(self, upgraded: ConsumerGroup, group: ClassicGroup, member: ClassicMember) -> None:
        metadata = dict(member.protocols).get(group.protocol or "")
        if metadata is None:
            # Kafka fails here as well, for a group that has not finished its first rebalance.
            raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Group {group.id} has no generation yet.")
        try:
            subscription = read_subscription(metadata)
            target = read_assignment(member.assignment, self._context.image)
        except Malformed as malformed:
            raise _refused(group, str(malformed)) from None
        if _overlaps(upgraded, target):
            raise GroupError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"Group {group.id} has a partition with two owners."
            )
        upgraded.put_target(member.id, target)
        upgraded.put_member(
            ConsumerMember(
                id=member.id,
                instance_id=member.instance_id,
                rack=subscription.rack_id or None,
                client_id=intern(member.client_id),
                client_host=intern(member.client_host),
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                topics=tuple(sorted(set(subscription.topics))),
                classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
                epoch=group.generation,
                previous_epoch=group.generation,
                assigned={
                    topic: dict.fromkeys(sorted(numbers), group.generation)
                    for topic, numbers in target.items()
                }
                or NO_PARTITIONS,
            )
        )

    # Downgrade

    def downgrades_without(self, group: ConsumerGroup, leaving: Collection[ConsumerMember]) -> bool:
        """Whether only classic members remain after these have left, and the downgrade is allowed."""
        staying = len(group.members) - len(leaving)
        classic = group.classic_members - sum(member.classic is not None for member in leaving)
        return 0 < staying == classic and self._allows_downgrade(staying)

    def downgrades_by_replacing(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Whether all members are classic once this one is replaced by a classic member, and the downgrade is
        allowed."""
        if replaced.classic is not None:
            return False
        size = len(group.members)
        return group.classic_members == size - 1 and self._allows_downgrade(size)

    def _allows_downgrade(self, size: int) -> bool:
        settings = self._context.settings
        return settings.downgrades and size <= settings.classic_size_max

    def downgrade(
        self,
        group: ConsumerGroup,
        leaving: Collection[ConsumerMember],
        now: Now,
        *,
        joining: ConsumerMember | None = None,
        rebalance: bool = True,
    ) -> Outcome:
        """Replace the group by a classic one, without the leaving members and with the joining one."""
        classic = ClassicGroup(
            group.id,
            self._context.timers,
            state=STABLE,
            state_ms=now.ms,
            generation=group.epoch,
            protocol_type=CONSUMER_TYPE,
        )
        leaving_ids = {member.id for member in leaving}
        staying = [member for member in group.members.values() if member.id not in leaving_ids]
        if joining is not None:
            staying.append(joining)
        for member in staying:
            classic.add(_classic_member(member))
        classic.protocol = classic.elected_protocol()
        classic.note_subscriptions()
        for member in staying:
            given = classic.members[member.id]
            metadata = given.metadata(classic.protocol)
            # Until the rebalance, a member keeps reading the partitions it holds. Kafka writes its target
            # instead: if the group is upgraded again before the member has joined, others get partitions it
            # has not revoked.
            partitions = _held(member) if rebalance else group.target_of(member)
            given.assignment = write_assignment(partitions, metadata, self._context.image)
        outcome = Outcome()
        outcome.records += group.tombstones()
        self._forget(group)
        self._classic.adopt(classic, now)
        outcome.write(classic.record())
        if rebalance:
            outcome.add(self._classic.rebalance(classic, "all members speak the classic protocol", now))
        return outcome

    def _forget(self, group: ConsumerGroup) -> None:
        for member_id in group.members:
            for kind in MEMBER_TIMERS:
                self._context.timers.cancel((kind, group.id, member_id))
        self._topics.update(group.id, list(group.subscriptions), ())


def _records_of(group: ConsumerGroup) -> list[Record]:
    members = group.members.values()
    return [
        *(records.member_record(group.id, member) for member in members),
        records.epoch_record(group.id, group.epoch, group.metadata_hash),
        *(records.target_record(group.id, member.id, group.targets[member.id]) for member in members),
        records.target_epoch_record(group.id, group.assignment_epoch, group.assignment_ms),
        *(records.current_record(group.id, member) for member in members),
    ]


def _held(member: ConsumerMember) -> Assignment:
    """The partitions that a member may still be reading."""
    held: dict[Uuid, set[int]] = {}
    for part in (member.assigned, member.revoking):
        for topic_id, partitions in part.items():
            held.setdefault(topic_id, set()).update(partitions)
    return {topic_id: frozenset(numbers) for topic_id, numbers in held.items()}


def _overlaps(group: ConsumerGroup, target: Assignment) -> bool:
    return any(
        group.ownership.holder(topic_id, number) is not None
        for topic_id, numbers in target.items()
        for number in numbers
    )


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member_id=member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocol_type=CONSUMER_TYPE,
        protocols=member.classic.protocols,
    )


def _refused(group: ClassicGroup, why: str) -> GroupError:
    return GroupError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Classic group {group.id} cannot be converted to a consumer group: {why}.",
    )


_VERSION_MAX: Final = 3


# Subscriptions and assignments of the classic protocol


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Malformed if it cannot be decoded."""
    subscription, _ = decode_versioned(ConsumerProtocolSubscription, metadata, newer_as_last=True)
    return subscription


def owned_partitions(subscription: ConsumerProtocolSubscription, image: MetadataImage) -> Owned:
    return [
        (image.topics[owned.topic].id, owned.partitions)
        for owned in subscription.owned_partitions
        if owned.topic in image.topics
    ]


def read_assignment(assignment: bytes, image: MetadataImage) -> Assignment:
    """Malformed if it cannot be decoded, or has user data that only the client's assignor understands."""
    if not assignment:
        return {}
    read, _ = decode_versioned(ConsumerProtocolAssignment, assignment, newer_as_last=True)
    if read.user_data:
        raise Malformed("contains user data of a custom assignor", where="assignment")
    return {
        image.topics[given.topic].id: frozenset(given.partitions)
        for given in read.assigned_partitions
        if given.topic in image.topics
    }


def write_assignment(
    partitions: Mapping[Uuid, Iterable[int]], metadata: bytes, image: MetadataImage
) -> bytes:
    """Encode in the version of the member's subscription."""
    (version,) = unpack_from(">h", metadata)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(
                topic=image.topics_by_id[topic_id].name, partitions=sorted(numbers)
            )
            for topic_id, numbers in partitions.items()
            if topic_id in image.topics_by_id
        ],
        user_data=None,
    )
    return encode_value(assignment, min(version, _VERSION_MAX))
