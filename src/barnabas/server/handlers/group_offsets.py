"""OffsetCommit (key 8), versions 2-10; OffsetDelete (47), version 0. Fetching is in offset_fetch.py.

Supported: commits of members and of consumers without a group membership, for existing partitions. Topic ids
are converted to names, because groups store names. Transactional commits are in txn_offsets.py.
v5 no retention_time_ms; v6 leader epoch; v7 group_instance_id; v8 flexible; v9 member epochs; v10 topic ids.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, PendingReply, ReplyTo
from barnabas.coordinators.group.offsets.offsets import Offsets
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.host import ShardHost
from barnabas.metadata.image import MetadataImage, TopicImage
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.server.coordination.calls import answer_of, ask_shard
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.combining import merged_by_topic
from barnabas.server.requests.slices import Slices

TOPIC_IDS_FROM: Final = 10


# OffsetCommit


def commit(ctx: Context, request: Request) -> Answer:
    body: OffsetCommitRequest = request.body
    services = ctx.broker
    by_id = request.version >= TOPIC_IDS_FROM
    failed: list[OffsetCommitResponseTopic] | None = None
    if not body.topics or not _are_known(services.image, body.topics, by_id):
        known, failed = _known_topics(services.image, body.topics, by_id=by_id)
        if not known:
            return OffsetCommitResponse(topics=failed)
        body = _only(body, known)
    # caller_of() and ask_shard() inlined, to save calls and closures: OffsetCommit is a hot path.
    reply = CommitReply(body.topics)
    fit = None if failed is None else partial(_with_failed, failed)
    host = services.groups.shards.host_of(body.group_id)
    if not isinstance(host, ShardHost):
        refused = reply.refusal(host)
        return refused if fit is None else fit(refused)
    caller = Caller(request.client_id or "", ctx.client_host, request.version)
    now = host.now()
    offsets: Offsets = host.shard.offsets
    try:
        outcome = offsets.commit(body, caller, reply, now)
    except Exception:
        host.lose_after_bug()
        raise
    host.carry_out(outcome, now)
    return reply.answer if fit is None and reply.is_given else answer_of(reply, fit)


class CommitReply(PendingReply):
    """The pending response to a commit of `topics`."""

    __slots__ = ("_topics",)

    def __init__(self, topics: list[OffsetCommitRequestTopic]) -> None:
        super().__init__()
        self._topics = topics

    def refusal(self, code: ErrorCode) -> OffsetCommitResponse:
        return OffsetCommitResponse(topics=_all_failed(self._topics, code))


def _with_failed(
    failed: list[OffsetCommitResponseTopic], response: OffsetCommitResponse
) -> OffsetCommitResponse:
    """Add the results of unknown partitions to a response."""
    response.topics = merged_by_topic(failed, response.topics)
    return response


def _are_known(image: MetadataImage, topics: list[OffsetCommitRequestTopic], by_id: bool) -> bool:
    """Whether all partitions exist. If so, fills in name and id of their topics."""
    for topic in topics:
        found = image.topics_by_id.get(topic.topic_id) if by_id else image.topics.get(topic.name)
        if found is None:
            return False
        count = len(found.partitions)
        for one in topic.partitions:
            if not 0 <= one.partition_index < count:
                return False
        topic.name, topic.topic_id = found.name, found.id
    return True


def _known_topics(
    image: MetadataImage, topics: list[OffsetCommitRequestTopic], *, by_id: bool
) -> tuple[list[OffsetCommitRequestTopic], list[OffsetCommitResponseTopic]]:
    """The existing partitions, with topic name and id, and the results of the others."""
    known: list[OffsetCommitRequestTopic] = []
    failed: list[OffsetCommitResponseTopic] = []
    for topic in topics:
        found = image.topics_by_id.get(topic.topic_id) if by_id else image.topics.get(topic.name)
        if found is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            failed.append(_failed(topic, [one.partition_index for one in topic.partitions], code))
            continue
        topic.name, topic.topic_id = found.name, found.id
        count = len(found.partitions)
        there = [one for one in topic.partitions if 0 <= one.partition_index < count]
        if len(there) < len(topic.partitions):
            asked = (one.partition_index for one in topic.partitions)
            missing = [number for number in asked if not 0 <= number < count]
            failed.append(_failed(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if there:
            known.append(
                OffsetCommitRequestTopic(name=found.name, topic_id=found.id, partitions=there)
                if len(there) < len(topic.partitions)
                else topic
            )
    return known, failed


def _only(body: OffsetCommitRequest, topics: list[OffsetCommitRequestTopic]) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=body.group_id,
        generation_id_or_member_epoch=body.generation_id_or_member_epoch,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        retention_time_ms=body.retention_time_ms,
        topics=topics,
    )


def _failed(
    topic: OffsetCommitRequestTopic, partitions: Iterable[int], code: ErrorCode
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=index, error_code=code) for index in partitions
        ],
    )


def _all_failed(topics: list[OffsetCommitRequestTopic], code: ErrorCode) -> list[OffsetCommitResponseTopic]:
    return [_failed(topic, [one.partition_index for one in topic.partitions], code) for topic in topics]


def refuse_commit(body: OffsetCommitRequest, version: int, code: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=_all_failed(body.topics, code))


# OffsetDelete


def delete(ctx: Context, request: Request) -> Answer:
    body: OffsetDeleteRequest = request.body

    def refused(code: ErrorCode) -> OffsetDeleteResponse:
        return OffsetDeleteResponse(error_code=code, topics=[])

    if not body.group_id:
        return refused(ErrorCode.INVALID_GROUP_ID)
    known, failed = _known_to_delete(ctx.broker.image, body.topics)

    def act(shard: GroupShard, to: ReplyTo, now: Now) -> Outcome:
        outcome = shard.delete_offsets(OffsetDeleteRequest(group_id=body.group_id, topics=known), to)
        for _, answer in outcome.answers:
            assert isinstance(answer, OffsetDeleteResponse)
            if answer.error_code == ErrorCode.NONE:
                answer.topics = merged_by_topic(failed, answer.topics)
        return outcome

    return ask_shard(ctx.broker.groups.shards.host_of(body.group_id), refused, act)


def _known_to_delete(
    image: MetadataImage, topics: list[OffsetDeleteRequestTopic]
) -> tuple[list[OffsetDeleteRequestTopic], list[OffsetDeleteResponseTopic]]:
    known, failed = [], []
    for topic in topics:
        found: TopicImage | None = image.topics.get(topic.name)
        count = 0 if found is None else len(found.partitions)
        there = [one for one in topic.partitions if 0 <= one.partition_index < count]
        missing = [one for one in topic.partitions if not 0 <= one.partition_index < count]
        if missing:
            failed.append(
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=one.partition_index,
                            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        )
                        for one in missing
                    ],
                )
            )
        if there:
            known.append(OffsetDeleteRequestTopic(name=topic.name, partitions=there))
    return known, failed


def refuse_delete(body: OffsetDeleteRequest, version: int, code: ErrorCode) -> object:
    return OffsetDeleteResponse(error_code=code, topics=[])


COMMIT_API = Api(
    ApiKey.OFFSET_COMMIT,
    versions=range(2, 11),
    handle=commit,
    refuse=refuse_commit,
    slices=(
        Slices(
            ("topics", "partitions"),
            ("topics", "partitions"),
            same=("name", "topic_id"),
            is_hot=True,
            is_change=True,
        ),
    ),
)
DELETE_API = Api(
    ApiKey.OFFSET_DELETE,
    versions=range(1),
    handle=delete,
    refuse=refuse_delete,
    slices=(Slices(("topics", "partitions"), is_change=True),),
)
