"""TxnOffsetCommit: pending offsets, and their end with the transaction's marker.

The checks are those of plain commits in offsets.py, with Kafka's differences: clients of this API do not know
the error codes of the consumer protocol, and do not use topic ids. A decision changes no state before it is
applied, not even a member's session, because the log may refuse its records.
"""

from typing import Final, NamedTuple, NoReturn

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinators.decision.outcome import (
    Caller,
    EndMarker,
    InTransaction,
    Now,
    Outcome,
    ReplyTo,
    answered,
)
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import Group, GroupError
from barnabas.coordinators.group.offsets.record import (
    CommittedOffset,
    OffsetRecord,
    metadata_length,
    pack_offset,
)
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.records.header import NO_PRODUCER_EPOCH

_ANY_PARTITION: Final = 0


class PendingOffset(NamedTuple):
    """An offset that becomes visible when the producer's transaction commits."""

    producer_id: int
    offset: OffsetRecord

    def encoded(self) -> tuple[bytes, bytes | None]:
        return self.offset.encoded()


class TransactionEnd(NamedTuple):
    """The end of a producer's transaction, which commits or drops its pending offsets."""

    producer_id: int
    commit: bool

    def encoded(self) -> NoReturn:
        raise AssertionError("a marker is a control batch, built from the stamp of its outcome")


def decide_txn_commit(
    ground: ShardContext, request: TxnOffsetCommitRequest, caller: Caller, to: ReplyTo, now: Now
) -> Outcome:
    """The records and the answer. GroupError if the whole commit is refused."""
    _check_ids(request)
    group = _check_group(ground, request, caller)
    outcome = Outcome(InTransaction(request.producer_id, request.producer_epoch))
    response = TxnOffsetCommitResponse(topics=[])
    for topic in request.topics:
        topic_id = _topic_id(ground, topic.name)
        if topic_id == ZERO_UUID:
            # An unknown topic has no assigned partitions, so a commit with an older member epoch is refused.
            _check_commit_of(group, request, topic_id, _ANY_PARTITION)
        partitions = []
        for partition in topic.partitions:
            code = ErrorCode.NONE
            if metadata_length(partition.committed_metadata) > ground.settings.offset_metadata_bytes_max:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                _check_commit_of(group, request, topic_id, partition.partition_index)
                outcome.write(_pending(request, topic, partition, now))
            partitions.append(
                TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            )
        response.topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
    if not outcome.records:
        return answered(to, response)
    outcome.answer(to, response)
    return outcome


def refused_txn_commit(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """The response with the same code for every partition."""
    if code is ErrorCode.STALE_MEMBER_EPOCH:
        # Producers do not know member epochs. This code makes them abort as well.
        code = ErrorCode.ILLEGAL_GENERATION
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def decide_end(marker: EndMarker, to: ReplyTo) -> Outcome:
    """Write a marker, even for a producer without pending offsets: a marker may be sent twice."""
    if marker.producer_id < 0 or marker.producer_epoch == NO_PRODUCER_EPOCH:
        # Not representable in a batch. Kafka fails with this error code.
        return answered(to, ErrorCode.UNKNOWN_SERVER_ERROR)
    outcome = Outcome(marker)
    outcome.write(TransactionEnd(marker.producer_id, marker.commit))
    outcome.answer(to, ErrorCode.NONE)
    return outcome


def _check_ids(request: TxnOffsetCommitRequest) -> None:
    """Refuse an invalid producer. The transaction coordinator normally does, unless verification is disabled.

    A batch without a producer would be loaded as plain commits.
    """
    if not request.group_id:
        raise GroupError(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
    if request.producer_id < 0:
        raise GroupError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"Producer id {request.producer_id} is invalid."
        )
    if request.producer_epoch < 0:
        raise GroupError(
            ErrorCode.INVALID_PRODUCER_EPOCH, f"Producer epoch {request.producer_epoch} is invalid."
        )


def _check_group(ground: ShardContext, request: TxnOffsetCommitRequest, caller: Caller) -> Group | None:
    """The group, after its checks; None if the first record will create one without members."""
    group = ground.groups.get(request.group_id)
    if group is None:
        if request.generation_id < 0:
            return None
        raise GroupError(ErrorCode.ILLEGAL_GENERATION, f"Group {request.group_id} not found.")
    group.check_commit(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        is_txn=True,
        version=caller.version,
    )
    return group


def _check_commit_of(
    group: Group | None, request: TxnOffsetCommitRequest, topic_id: Uuid, partition: int
) -> None:
    if group is not None:
        group.check_commit_of(topic_id, partition, request.generation_id, request.member_id)


def _topic_id(ground: ShardContext, name: str) -> Uuid:
    topic = ground.image.topics.get(name)
    return ZERO_UUID if topic is None else topic.id


def _pending(
    request: TxnOffsetCommitRequest,
    topic: TxnOffsetCommitRequestTopic,
    partition: TxnOffsetCommitRequestPartition,
    now: Now,
) -> PendingOffset:
    # Without the topic id, as in Kafka, so that the records are identical.
    value = pack_offset(
        CommittedOffset(
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.committed_metadata or "",
            now.ms,
        )
    )
    return PendingOffset(
        request.producer_id, OffsetRecord(request.group_id, topic.name, partition.partition_index, value)
    )
