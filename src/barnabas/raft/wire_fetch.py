"""Fetch of the metadata log: convert messages to events, and effects to messages (pure)."""

from typing import Final

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
    SnapshotId,
)
from barnabas.raft.effects import FetchAnswer, SendFetch
from barnabas.raft.events import FetchAnswered, FetchRequested, Unanswered
from barnabas.raft.facts import METADATA, METADATA_TOPIC_ID, NONE, OffsetAndEpoch
from barnabas.raft.wire import error_of, is_of_cluster, or_minus_one, or_none

TOPIC, PARTITION = METADATA

# How long a leader waits for new records before it responds. Well below the fetch timeout.
FETCH_WAIT_MS: Final = 500


def fetch_request(effect: SendFetch, *, me: int, cluster_id: str, bytes_max: int) -> FetchRequest:
    """Build a request of version 15 or later, which identifies the replica in replica_state."""
    partition = FetchPartition(
        partition=PARTITION,
        current_leader_epoch=effect.epoch,
        fetch_offset=effect.end.offset,
        last_fetched_epoch=effect.end.epoch,
        partition_max_bytes=bytes_max,
    )
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=ReplicaState(replica_id=me),
        max_wait_ms=FETCH_WAIT_MS,
        max_bytes=bytes_max,
        topics=[FetchTopic(topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def is_for_metadata(request: FetchRequest) -> bool:
    """Whether it fetches only the metadata log, by name up to version 12, then by id."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return False
    topic = request.topics[0]
    return topic.partitions[0].partition == PARTITION and (
        topic.topic_id == METADATA_TOPIC_ID or topic.topic == TOPIC
    )


def fetch_requested(request: FetchRequest, *, cluster_id: str) -> FetchRequested | ErrorCode:
    if not is_of_cluster(request.cluster_id, cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if not is_for_metadata(request) or request.max_wait_ms < 0:
        return ErrorCode.INVALID_REQUEST
    found = request.topics[0].partitions[0]
    state = request.replica_state
    return FetchRequested(
        replica=state.replica_id if state is not None and state.replica_id >= 0 else request.replica_id,
        epoch=found.current_leader_epoch,
        offset=found.fetch_offset,
        last_epoch=found.last_fetched_epoch,
    )


def fetch_response(answer: FetchAnswer | ErrorCode, records: bytes, *, log_start: int) -> FetchResponse:
    if isinstance(answer, ErrorCode):
        return FetchResponse(error_code=answer)
    diverging, snapshot = answer.diverging, answer.snapshot
    partition = PartitionData(
        partition_index=PARTITION,
        error_code=answer.error,
        high_watermark=NONE if answer.high_watermark is None else answer.high_watermark,
        log_start_offset=log_start,
        diverging_epoch=None
        if diverging is None
        else EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset),
        current_leader=LeaderIdAndEpoch(leader_id=or_minus_one(answer.leader), leader_epoch=answer.epoch),
        snapshot_id=None
        if snapshot is None
        else SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        records=records,
    )
    topic = FetchableTopicResponse(topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return FetchResponse(responses=[topic])


def fetch_answered(effect: SendFetch, response: FetchResponse) -> FetchAnswered | Unanswered:
    topics = response.responses
    if response.error_code != ErrorCode.NONE or len(topics) != 1 or len(topics[0].partitions) != 1:
        return Unanswered(effect.to)
    found = topics[0].partitions[0]
    if found.partition_index != PARTITION or found.current_leader is None:
        return Unanswered(effect.to)
    records = b"" if found.records is None else bytes(found.records)
    return FetchAnswered(
        peer=effect.to,
        serial=effect.serial,
        error=error_of(found.error_code),
        leader=or_none(found.current_leader.leader_id),
        epoch=found.current_leader.leader_epoch,
        high_watermark=None if found.high_watermark < 0 else found.high_watermark,
        diverging=_diverging(found.diverging_epoch),
        snapshot=_snapshot(found.snapshot_id),
        records=records or None,
    )


def _diverging(found: EpochEndOffset | None) -> OffsetAndEpoch | None:
    if found is None or found.epoch < 0 or found.end_offset < 0:
        return None
    return OffsetAndEpoch(found.end_offset, found.epoch)


def _snapshot(found: SnapshotId | None) -> OffsetAndEpoch | None:
    if found is None or found.epoch < 0 or found.end_offset < 0:
        return None
    return OffsetAndEpoch(found.end_offset, found.epoch)
