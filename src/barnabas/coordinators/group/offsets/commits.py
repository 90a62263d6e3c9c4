"""OffsetCommit: a record for each partition, or none if the group refuses the commit.

An error of a single partition (metadata too long) is reported for that partition, and the others are
committed. The caller has checked that the topics exist.
"""

from typing import Final, Protocol, cast

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, ReplyTo
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.errors import GroupError
from barnabas.coordinators.group.ground import CLASSIC, Ground, Group
from barnabas.coordinators.group.offsets.record import NO_EXPIRY, OffsetRecord, pack_fields
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

# From this version of OffsetCommit on an unknown group is GROUP_ID_NOT_FOUND. (KIP-848)
_NOT_FOUND_FROM: Final = 9
_NO_RETENTION: Final = -1
_NONE: Final[ErrorCode] = ErrorCode.NONE


class HearsMembers(Protocol):
    """The additional interface of classic groups."""

    def heard_from(self, member_id: str, now: Now) -> None:
        """Extend the session of a committing member, as with a heartbeat."""


def decide_commit(
    ground: Ground, request: OffsetCommitRequest, caller: Caller, to: ReplyTo, now: Now
) -> Outcome:
    """The records and the answer. GroupError if the group refuses the whole commit."""
    group = _check_group(ground, request, caller, now)
    expire_ms = _expire_ms(request.retention_time_ms, now)
    outcome = Outcome(is_tentative=True)
    topics = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            code = _NONE
            metadata = partition.committed_metadata
            if metadata and metadata_length(metadata) > ground.settings.offset_metadata_bytes_max:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                if group is not None and not isinstance(group, ClassicGroup):
                    group.check_commit_of(
                        topic.topic_id,
                        partition.partition_index,
                        request.generation_id_or_member_epoch,
                        request.member_id,
                    )
                outcome.write(_record(request.group_id, topic, partition, now, expire_ms))
            partitions.append(
                OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            )
        topics.append(
            OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
        )
    outcome.answer(to, OffsetCommitResponse(topics=topics))
    return outcome


def refused_commit(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """The response with the same code for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _check_group(ground: Ground, request: OffsetCommitRequest, caller: Caller, now: Now) -> Group | None:
    """The group, after its checks; None if the first record will create one without members."""
    group = ground.groups.get(request.group_id)
    if group is None:
        if request.generation_id_or_member_epoch < 0:
            return None
        code = (
            ErrorCode.GROUP_ID_NOT_FOUND
            if caller.version >= _NOT_FOUND_FROM
            else ErrorCode.ILLEGAL_GENERATION
        )
        raise GroupError(code, f"Group {request.group_id} not found.")
    member_id, instance_id = request.member_id, request.group_instance_id
    generation, version = request.generation_id_or_member_epoch, caller.version
    if isinstance(group, ClassicGroup):
        # The same as below for the most common class: compiled code calls it without an attribute lookup.
        group.check_commit(member_id, instance_id, generation, is_txn=False, version=version)
        if not group.is_empty:
            group.heard_from(member_id, now)
        return group
    group.check_commit(member_id, instance_id, generation, is_txn=False, version=version)
    if group.kind == CLASSIC and not group.is_empty:
        cast(HearsMembers, group).heard_from(member_id, now)
    return group


def _record(
    group_id: str,
    topic: OffsetCommitRequestTopic,
    partition: OffsetCommitRequestPartition,
    now: Now,
    expire_ms: int,
) -> OffsetRecord:
    value = pack_fields(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now.ms,
        expire_ms,
        topic.topic_id,
    )
    return OffsetRecord(group_id, topic.name, partition.partition_index, value)


def _expire_ms(retention_ms: int, now: Now) -> int:
    """The expiry of commits in versions 2 to 4, which may set their own retention."""
    if retention_ms == _NO_RETENTION:
        return NO_EXPIRY
    # Wraps around at 64 bits, as in Kafka.
    return (now.ms + retention_ms + 2**63) % 2**64 - 2**63


def metadata_length(metadata: str | None) -> int:
    """The length in UTF-16 code units, as in Java."""
    if metadata is None:
        return 0
    return len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le")) // 2
