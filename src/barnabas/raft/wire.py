"""Vote, BeginQuorumEpoch and EndQuorumEpoch: convert messages to events, and effects to messages (pure).

Messages of other nodes are validated here: the cluster id, the single partition, the addressed voter. An
invalid request becomes an error code for the whole response, an invalid response becomes Unanswered. Fetch is
in wire_fetch.py.
"""

from collections.abc import Sequence
from typing import Any

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.quorum import (
    BeginQuorumEpochPartitionData,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    BeginQuorumEpochResponsePartitionData,
    BeginQuorumEpochResponseTopicData,
    BeginQuorumEpochTopicData,
    EndQuorumEpochPartitionData,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    EndQuorumEpochResponsePartitionData,
    EndQuorumEpochResponseTopicData,
    EndQuorumEpochTopicData,
    ReplicaInfo,
    VotePartitionData,
    VoteRequest,
    VoteResponse,
    VoteResponsePartitionData,
    VoteResponseTopicData,
    VoteTopicData,
)
from barnabas.raft.effects import EpochAnswer, SendBeginEpoch, SendEndEpoch, SendVote, VoteAnswer
from barnabas.raft.events import (
    BeginEpochAnswered,
    BeginEpochRequested,
    EndEpochAnswered,
    EndEpochRequested,
    Unanswered,
    VoteAnswered,
    VoteRequested,
)
from barnabas.raft.facts import METADATA, NONE, OffsetAndEpoch

TOPIC, PARTITION = METADATA


def or_none(node: int) -> int | None:
    return None if node < 0 else node


def or_minus_one(node: int | None) -> int:
    return NONE if node is None else node


def is_of_cluster(asked: str | None, cluster_id: str) -> bool:
    """Whether the request is for this cluster. A request without a cluster id is accepted."""
    return asked is None or asked == cluster_id


def only_partition(topics: Sequence[Any]) -> Any | None:
    """The metadata partition of a message; None if the message has another partition or several."""
    if len(topics) != 1 or topics[0].topic_name != TOPIC or len(topics[0].partitions) != 1:
        return None
    found = topics[0].partitions[0]
    return found if found.partition_index == PARTITION else None


def error_of(code: int) -> ErrorCode:
    """The error code; UNKNOWN_SERVER_ERROR for an unknown one of a later release."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _form_error(request: Any, cluster_id: str) -> ErrorCode:
    if not is_of_cluster(request.cluster_id, cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    return ErrorCode.NONE if only_partition(request.topics) is not None else ErrorCode.INVALID_REQUEST


# Vote


def vote_request(effect: SendVote, *, me: int, cluster_id: str) -> VoteRequest:
    partition = VotePartitionData(
        partition_index=PARTITION,
        replica_epoch=effect.epoch,
        replica_id=me,
        last_offset_epoch=effect.last.epoch,
        last_offset=effect.last.offset,
        pre_vote=effect.pre_vote,
    )
    topics = [VoteTopicData(topic_name=TOPIC, partitions=[partition])]
    return VoteRequest(cluster_id=cluster_id, voter_id=effect.to, topics=topics)


def vote_requested(request: VoteRequest, *, me: int, cluster_id: str) -> VoteRequested | ErrorCode:
    error = _form_error(request, cluster_id)
    if error != ErrorCode.NONE:
        return error
    if request.voter_id >= 0 and request.voter_id != me:
        return ErrorCode.INVALID_VOTER_KEY
    found: VotePartitionData = request.topics[0].partitions[0]
    return VoteRequested(
        candidate=found.replica_id,
        epoch=found.replica_epoch,
        last=OffsetAndEpoch(found.last_offset, found.last_offset_epoch),
        pre_vote=found.pre_vote,
    )


def vote_response(answer: VoteAnswer | ErrorCode) -> VoteResponse:
    if isinstance(answer, ErrorCode):
        return VoteResponse(error_code=answer)
    partition = VoteResponsePartitionData(
        partition_index=PARTITION,
        error_code=answer.error,
        leader_id=or_minus_one(answer.leader),
        leader_epoch=answer.epoch,
        vote_granted=answer.granted,
    )
    return VoteResponse(topics=[VoteResponseTopicData(topic_name=TOPIC, partitions=[partition])])


def vote_answered(effect: SendVote, response: VoteResponse) -> VoteAnswered | Unanswered:
    found = only_partition(response.topics)
    if response.error_code != ErrorCode.NONE or found is None:
        return Unanswered(effect.to)
    return VoteAnswered(
        voter=effect.to,
        asked_epoch=effect.epoch,
        pre_vote=effect.pre_vote,
        error=error_of(found.error_code),
        leader=or_none(found.leader_id),
        epoch=found.leader_epoch,
        granted=found.vote_granted,
    )


# BeginQuorumEpoch


def begin_request(effect: SendBeginEpoch, *, me: int, cluster_id: str) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochPartitionData(
        partition_index=PARTITION, leader_id=me, leader_epoch=effect.epoch
    )
    topics = [BeginQuorumEpochTopicData(topic_name=TOPIC, partitions=[partition])]
    return BeginQuorumEpochRequest(cluster_id=cluster_id, voter_id=effect.to, topics=topics)


def begin_requested(
    request: BeginQuorumEpochRequest, *, me: int, cluster_id: str
) -> BeginEpochRequested | ErrorCode:
    error = _form_error(request, cluster_id)
    if error != ErrorCode.NONE:
        return error
    if request.voter_id >= 0 and request.voter_id != me:
        return ErrorCode.INVALID_VOTER_KEY
    found = request.topics[0].partitions[0]
    return BeginEpochRequested(leader=found.leader_id, epoch=found.leader_epoch)


def begin_response(answer: EpochAnswer | ErrorCode) -> BeginQuorumEpochResponse:
    if isinstance(answer, ErrorCode):
        return BeginQuorumEpochResponse(error_code=answer)
    partition = BeginQuorumEpochResponsePartitionData(
        partition_index=PARTITION,
        error_code=answer.error,
        leader_id=or_minus_one(answer.leader),
        leader_epoch=answer.epoch,
    )
    topics = [BeginQuorumEpochResponseTopicData(topic_name=TOPIC, partitions=[partition])]
    return BeginQuorumEpochResponse(topics=topics)


def begin_answered(
    effect: SendBeginEpoch, response: BeginQuorumEpochResponse
) -> BeginEpochAnswered | Unanswered:
    found = only_partition(response.topics)
    if response.error_code != ErrorCode.NONE or found is None:
        return Unanswered(effect.to)
    return BeginEpochAnswered(
        voter=effect.to,
        asked_epoch=effect.epoch,
        error=error_of(found.error_code),
        leader=or_none(found.leader_id),
        epoch=found.leader_epoch,
    )


# EndQuorumEpoch


def end_request(effect: SendEndEpoch, *, me: int, cluster_id: str) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochPartitionData(
        partition_index=PARTITION,
        leader_id=me,
        leader_epoch=effect.epoch,
        # Version 0 has the successors, version 1 the candidates.
        preferred_successors=list(effect.successors),
        preferred_candidates=[ReplicaInfo(candidate_id=one) for one in effect.successors],
    )
    topics = [EndQuorumEpochTopicData(topic_name=TOPIC, partitions=[partition])]
    return EndQuorumEpochRequest(cluster_id=cluster_id, topics=topics)


def end_requested(request: EndQuorumEpochRequest, *, cluster_id: str) -> EndEpochRequested | ErrorCode:
    error = _form_error(request, cluster_id)
    if error != ErrorCode.NONE:
        return error
    found: EndQuorumEpochPartitionData = request.topics[0].partitions[0]
    candidates = [one.candidate_id for one in found.preferred_candidates]
    return EndEpochRequested(
        leader=found.leader_id,
        epoch=found.leader_epoch,
        successors=tuple(candidates or found.preferred_successors),
    )


def end_response(answer: EpochAnswer | ErrorCode) -> EndQuorumEpochResponse:
    if isinstance(answer, ErrorCode):
        return EndQuorumEpochResponse(error_code=answer)
    partition = EndQuorumEpochResponsePartitionData(
        partition_index=PARTITION,
        error_code=answer.error,
        leader_id=or_minus_one(answer.leader),
        leader_epoch=answer.epoch,
    )
    topics = [EndQuorumEpochResponseTopicData(topic_name=TOPIC, partitions=[partition])]
    return EndQuorumEpochResponse(topics=topics)


def end_answered(effect: SendEndEpoch, response: EndQuorumEpochResponse) -> EndEpochAnswered | Unanswered:
    found = only_partition(response.topics)
    if response.error_code != ErrorCode.NONE or found is None:
        return Unanswered(effect.to)
    return EndEpochAnswered(
        voter=effect.to,
        asked_epoch=effect.epoch,
        error=error_of(found.error_code),
        leader=or_none(found.leader_id),
        epoch=found.leader_epoch,
    )
