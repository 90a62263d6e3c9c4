"""Replacement of a static member that returns with a new id. No other member is affected."""

from dataclasses import replace

from barnabas.coordinators.decision.outcome import Record
from barnabas.coordinators.group.consumer import records
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import JOINING, ConsumerMember


def replacing(existing: ConsumerMember, member_id: str) -> ConsumerMember:
    """The same member with a new id and its old partitions."""
    return replace(existing, id=member_id, epoch=JOINING, previous_epoch=JOINING)


def replacement_records(
    group: ConsumerGroup, replaced: ConsumerMember, member: ConsumerMember
) -> list[Record]:
    return [
        *records.member_tombstones(group.id, replaced.id),
        records.member_record(group.id, member),
        records.target_record(group.id, member.id, group.targets.get(replaced.id, {})),
        records.current_record(group.id, member),
    ]
