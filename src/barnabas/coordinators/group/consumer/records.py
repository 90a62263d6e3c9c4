"""The records of consumer groups, in the format of Kafka 4.3.

The records of a rebalance hold in-memory values, so that they are applied without being encoded and decoded.
Records read from a log are messages; replay.py handles both.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, cast

from barnabas.coordinators.decision.outcome import Record, StoredRecord
from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.consumer import packing
from barnabas.coordinators.group.consumer.member import ConsumerMember
from barnabas.protocol.stored.consumer_groups import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from barnabas.protocol.stored.framing import encode_value
from barnabas.records.header import HEADER_SIZE

# Upper bound of a record's size without key and value.
_FRAME_BYTES_MAX: Final = 36


class EpochKey(NamedTuple):
    group_id: str


class TargetEpochKey(NamedTuple):
    group_id: str


class MemberKey(NamedTuple):
    group_id: str
    member_id: str


class TargetKey(NamedTuple):
    group_id: str
    member_id: str


class CurrentKey(NamedTuple):
    group_id: str
    member_id: str


class Epoch(NamedTuple):
    """The group epoch with the metadata hash, or the assignment epoch with its time."""

    epoch: int
    number: int


class EpochRecord(StoredRecord):
    """EpochKey and Epoch."""

    __slots__ = ()

    def encoded(self) -> tuple[bytes, bytes]:
        epoch, metadata_hash = cast(Epoch, self.value)
        (group_id,) = cast(EpochKey, self.key)
        return packing.pack_group_key(packing.EPOCH, group_id), packing.pack_epoch(epoch, metadata_hash)


class TargetEpochRecord(StoredRecord):
    """TargetEpochKey and Epoch."""

    __slots__ = ()

    def encoded(self) -> tuple[bytes, bytes]:
        epoch, time_ms = cast(Epoch, self.value)
        (group_id,) = cast(TargetEpochKey, self.key)
        return packing.pack_group_key(packing.TARGET_EPOCH, group_id), packing.pack_epoch(epoch, time_ms)


class MemberRecord(StoredRecord):
    """MemberKey and ConsumerMember; stores the member's metadata."""

    __slots__ = ()

    def encoded(self) -> tuple[bytes, bytes]:
        group_id, member_id = cast(MemberKey, self.key)
        key = packing.pack_member_key(packing.MEMBER, group_id, member_id)
        member = cast(ConsumerMember, self.value)
        if member.classic is not None:
            return key, encode_value(_member_value(member), 0)
        strings = [member.instance_id, member.rack, member.client_id, member.client_host]
        return key, packing.pack_member(
            strings, member.topics, member.regex, member.rebalance_timeout_ms, member.assignor
        )


class TargetRecord(StoredRecord):
    """TargetKey and an Assignment."""

    __slots__ = ()

    def encoded(self) -> tuple[bytes, bytes]:
        group_id, member_id = cast(TargetKey, self.key)
        key = packing.pack_member_key(packing.TARGET, group_id, member_id)
        return key, packing.pack_target(cast(Assignment, self.value))


class CurrentRecord(StoredRecord):
    """CurrentKey and ConsumerMember; stores the member's current assignment."""

    __slots__ = ()

    def encoded(self) -> tuple[bytes, bytes]:
        group_id, member_id = cast(CurrentKey, self.key)
        key = packing.pack_member_key(packing.CURRENT, group_id, member_id)
        member = cast(ConsumerMember, self.value)
        return key, packing.pack_current(
            member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking
        )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    return EpochRecord(EpochKey(group_id), Epoch(epoch, metadata_hash))


def partition_metadata_tombstone(group_id: str) -> Record:
    """Deletes the record that releases before 4.1 wrote instead of the metadata hash."""
    return StoredRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_record(group_id: str, member: ConsumerMember) -> Record:
    return MemberRecord(MemberKey(group_id, member.id), member)


def _member_value(member: ConsumerMember) -> ConsumerGroupMemberMetadataValue:
    classic = None
    if member.classic is not None:
        classic = ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.classic.protocols
            ],
        )
    return ConsumerGroupMemberMetadataValue(
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


def target_record(group_id: str, member_id: str, target: Assignment) -> Record:
    return TargetRecord(TargetKey(group_id, member_id), target)


def target_epoch_record(group_id: str, epoch: int, time_ms: int) -> Record:
    return TargetEpochRecord(TargetEpochKey(group_id), Epoch(epoch, time_ms))


def current_record(group_id: str, member: ConsumerMember) -> Record:
    """The current assignment of a member; its metadata record must come earlier."""
    return CurrentRecord(CurrentKey(group_id, member.id), member)


def size_of(records: Iterable[Record]) -> int:
    """Upper bound of the size of a batch with these records."""
    return HEADER_SIZE + sum(
        _FRAME_BYTES_MAX + len(key) + (0 if value is None else len(value))
        for key, value in (record.encoded() for record in records)
    )


def regex_record(group_id: str, regex: str, topics: Iterable[str], *, version: int, time_ms: int) -> Record:
    return StoredRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=time_ms),
    )


def regex_tombstone(group_id: str, regex: str) -> Record:
    return StoredRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """The tombstones of a member, in an order that never leaves an assignment without its member."""
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
