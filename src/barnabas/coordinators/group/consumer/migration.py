"""Online migration of groups between the classic and the consumer protocol.

The first member that joins with the consumer protocol converts a classic group to a consumer group; classic
members remain, and classic_members.py serves them. When the last member of the consumer protocol has left,
the group becomes a classic group again, and rebalances.
"""

from collections.abc import Collection
from sys import intern
from typing import NamedTuple

from barnabas.base.errors import Malformed
from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Now, Outcome, Record
from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.classic.group import STABLE, ClassicGroup
from barnabas.coordinators.group.classic.groups import ClassicGroups
from barnabas.coordinators.group.classic.member import ClassicMember
from barnabas.coordinators.group.consumer import records
from barnabas.coordinators.group.consumer.embedded import (
    read_assignment,
    read_subscription,
    write_assignment,
)
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import NOTHING, ClassicSide, ConsumerMember
from barnabas.coordinators.group.consumer.steps import JOIN, REBALANCE, SESSION, SYNC
from barnabas.coordinators.group.consumer.topics import Topics
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import Group, GroupError
from barnabas.protocol.error_codes import ErrorCode

_PROTOCOL_TYPE = "consumer"


class Opening(NamedTuple):
    """The group that a member joins; if converted from `classic`, with the records of the conversion."""

    group: ConsumerGroup
    classic: ClassicGroup | None = None
    records: tuple[Record, ...] = ()


class Migration:
    """Converts groups of one kind into the other."""

    def __init__(self, context: ShardContext, topics: Topics, classic: ClassicGroups) -> None:
        self._context = context
        self._topics = topics
        self._classic = classic

    # Upgrade

    def opened(self, group: Group) -> Opening:
        """A consumer group converted from a classic one. Changes nothing yet. Raises GroupError."""
        assert isinstance(group, ClassicGroup)
        if group.is_empty:
            return Opening(ConsumerGroup(group.id), group, tuple(group.tombstones()))
        self._check_upgrade(group)
        made = ConsumerGroup(group.id)
        made.epoch = made.assignment_epoch = group.generation
        for member in group.members.values():
            self._take_over(made, group, member)
        made.metadata_hash = self._topics.hash_of(made.subscriptions)
        return Opening(made, group, (*group.tombstones(), *_records_of(made)))

    def carried_out(self, opening: Opening, now: Now) -> Outcome:
        """Refuse the pending requests of the classic group, and continue its sessions in the consumer
        group."""
        outcome = Outcome()
        if opening.classic is not None:
            outcome.add(self._classic.release(opening.classic, ErrorCode.REBALANCE_IN_PROGRESS))
            outcome.records += opening.records
            for member in opening.group.members.values():
                assert member.classic is not None
                ends_ms = now.tick_ms + member.classic.session_timeout_ms
                self._context.timers.set((SESSION, opening.group.id, member.id), ends_ms)
        return outcome

    def _check_upgrade(self, group: ClassicGroup) -> None:
        settings = self._context.settings
        if not settings.upgrades:
            raise _refused(group, "group.consumer.migration.policy does not allow upgrades")
        if group.protocol_type != _PROTOCOL_TYPE:
            raise _refused(group, "its protocol type is not consumer")
        if len(group.members) > settings.consumer_size_max:
            raise _refused(group, f"it has more than {settings.consumer_size_max} members")

    def _take_over(self, made: ConsumerGroup, group: ClassicGroup, member: ClassicMember) -> None:
        metadata = dict(member.protocols).get(group.protocol or "")
        if metadata is None:
            # Kafka fails here as well, for a group that has not finished its first rebalance.
            raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Group {group.id} has no generation yet.")
        try:
            subscription = read_subscription(metadata)
            target = read_assignment(member.assignment, self._context.image)
        except Malformed as malformed:
            raise _refused(group, str(malformed)) from None
        if _overlaps(made, target):
            raise GroupError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"Group {group.id} has a partition with two owners."
            )
        made.put_target(member.id, target)
        made.put_member(
            ConsumerMember(
                id=member.id,
                instance_id=member.instance_id,
                rack=subscription.rack_id or None,
                client_id=intern(member.client_id),
                client_host=intern(member.client_host),
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                topics=tuple(sorted(set(subscription.topics))),
                classic=ClassicSide(member.session_timeout_ms, member.protocols),
                epoch=group.generation,
                previous_epoch=group.generation,
                assigned={
                    topic: dict.fromkeys(sorted(numbers), group.generation)
                    for topic, numbers in target.items()
                }
                or NOTHING,
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

    def downgraded(
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
            protocol_type=_PROTOCOL_TYPE,
        )
        gone = {member.id for member in leaving}
        staying = [member for member in group.members.values() if member.id not in gone]
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
            has = _held(member) if rebalance else group.target_of(member)
            given.assignment = write_assignment(has, metadata, self._context.image)
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
            for kind in (SESSION, REBALANCE, JOIN, SYNC):
                self._context.timers.cancel((kind, group.id, member_id))
        self._topics.follow(group.id, list(group.subscriptions), ())


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
        protocol_type=_PROTOCOL_TYPE,
        protocols=member.classic.protocols,
    )


def _refused(group: ClassicGroup, why: str) -> GroupError:
    return GroupError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Classic group {group.id} cannot be converted to a consumer group: {why}.",
    )
