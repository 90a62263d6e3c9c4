"""The records of consumer groups, as Kafka 4.3 writes them."""

from collections.abc import Iterable, Mapping

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Record, StoredRecord
from barnabas.coordinators.group.consumer.member import ConsumerMember, Held
from barnabas.protocol.stored.consumer_groups import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    return StoredRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def partition_metadata_tombstone(group_id: str) -> Record:
    """For what releases before 4.1 wrote instead of the metadata hash."""
    return StoredRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_record(group_id: str, member: ConsumerMember) -> Record:
    classic = None
    if member.classic is not None:
        classic = ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.classic.protocols
            ],
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return StoredRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.id), value)


def target_record(group_id: str, member_id: str, target: Mapping[Uuid, frozenset[int]]) -> Record:
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in target.items()
        ]
    )
    return StoredRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group_id: str, epoch: int, time_ms: int) -> Record:
    return StoredRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=time_ms),
    )


def current_record(group_id: str, member: ConsumerMember) -> Record:
    return StoredRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_partitions(member.assigned),
            partitions_pending_revocation=_partitions(member.revoking),
        ),
    )


def regex_record(group_id: str, regex: str, topics: Iterable[str], *, version: int, time_ms: int) -> Record:
    return StoredRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=time_ms),
    )


def regex_tombstone(group_id: str, regex: str) -> Record:
    return StoredRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """In this order, so that nobody who reads on sees a member that is half gone."""
    return [
        _current_tombstone(group_id, member_id),
        _target_tombstone(group_id, member_id),
        _member_tombstone(group_id, member_id),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> list[Record]:
    ids = list(member_ids)
    return [
        *(_current_tombstone(group_id, one) for one in ids),
        *(_target_tombstone(group_id, one) for one in ids),
        StoredRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(_member_tombstone(group_id, one) for one in ids),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        partition_metadata_tombstone(group_id),
        StoredRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def _current_tombstone(group_id: str, member_id: str) -> Record:
    return StoredRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def _target_tombstone(group_id: str, member_id: str) -> Record:
    return StoredRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def _member_tombstone(group_id: str, member_id: str) -> Record:
    return StoredRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def _partitions(held: Held) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic_id, epochs in held.items()
    ]
