"""OffsetFetch (key 9), versions 1-10.

Supported: committed offsets of one group (up to v7) or several, for the given or all partitions. Each group
is looked up in its shard; a group of another coordinator has its own error.
v2 all topics, error_code; v5 leader epoch; v6 flexible; v7 require_stable; v8 several groups;
v9 member epochs; v10 topic ids.
"""

from collections.abc import Sequence
from typing import Final

from barnabas.base.ids import ZERO_UUID
from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo, answered
from barnabas.coordinators.group.shard import GroupShard
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.server.coordination.calls import ask_shard
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.combining import gathered
from barnabas.server.requests.slices import Slices

_GROUP_ERROR_FROM: Final = 2
_SEVERAL_FROM: Final = 8
_TOPIC_IDS_FROM: Final = 10
_NO_OFFSET: Final = -1
_NO_EPOCH: Final = -1


def handle(ctx: Context, request: Request) -> Answer:
    body: OffsetFetchRequest = request.body
    if request.version >= _SEVERAL_FROM:
        return gathered(
            [_of_group(ctx, group, request.version, body.require_stable) for group in body.groups],
            lambda groups: OffsetFetchResponse(groups=groups),
        )
    return gathered(
        [_of_group(ctx, _as_group(body), request.version, body.require_stable)],
        lambda groups: _as_one(groups[0], request.version),
    )


def _as_group(body: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if body.topics is not None:
        topics = [
            OffsetFetchRequestTopics(
                name=topic.name, topic_id=ZERO_UUID, partition_indexes=topic.partition_indexes
            )
            for topic in body.topics
        ]
    return OffsetFetchRequestGroup(group_id=body.group_id, topics=topics)


def _of_group(ctx: Context, group: OffsetFetchRequestGroup, version: int, require_stable: bool) -> Answer:
    image = ctx.broker.image
    by_id = version >= _TOPIC_IDS_FROM
    unknown: list[OffsetFetchResponseTopics] = []
    asked = group
    if by_id and group.topics is not None:
        known = []
        for topic in group.topics:
            found = image.topics_by_id.get(topic.topic_id)
            if found is None:
                unknown.append(_failed(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                topic.name = found.name
                known.append(topic)
        asked = OffsetFetchRequestGroup(
            group_id=group.group_id,
            member_id=group.member_id,
            member_epoch=group.member_epoch,
            topics=known,
        )

    def refused(code: ErrorCode) -> OffsetFetchResponseGroup:
        return _group_failed(group, version, code)

    def act(shard: GroupShard, to: ReplyTo, now: Now) -> Outcome:
        answer = shard.fetch(asked, require_stable=require_stable)
        if answer.error_code != ErrorCode.NONE:
            return answered(to, refused(ErrorCode.of(answer.error_code)))
        if by_id:
            answer.topics = [*unknown, *_with_ids(image, answer.topics)]
        return answered(to, answer)

    return ask_shard(ctx.broker.groups.shards.host_of(group.group_id), refused, act)


def _with_ids(
    image: MetadataImage, topics: Sequence[OffsetFetchResponseTopics]
) -> list[OffsetFetchResponseTopics]:
    """Fill in topic ids. Offsets of deleted topics are dropped, because their ids are unknown."""
    there = []
    for topic in topics:
        found = image.topics.get(topic.name)
        if found is not None:
            topic.topic_id = found.id
            there.append(topic)
    return there


def _failed(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=_NO_OFFSET,
                committed_leader_epoch=_NO_EPOCH,
                metadata="",
                error_code=code,
            )
            for index in topic.partition_indexes
        ],
    )


def _group_failed(group: OffsetFetchRequestGroup, version: int, code: ErrorCode) -> OffsetFetchResponseGroup:
    """The error of a whole group. Versions without a group error repeat it for every partition."""
    topics = group.topics if version < _GROUP_ERROR_FROM and group.topics is not None else []
    return OffsetFetchResponseGroup(
        group_id=group.group_id, error_code=code, topics=[_failed(topic, code) for topic in topics]
    )


def _as_one(group: OffsetFetchResponseGroup, version: int) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=one.partition_index,
                        committed_offset=one.committed_offset,
                        committed_leader_epoch=one.committed_leader_epoch,
                        metadata=one.metadata,
                        error_code=one.error_code,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def refuse(body: OffsetFetchRequest, version: int, code: ErrorCode) -> object:
    if version >= _SEVERAL_FROM:
        return OffsetFetchResponse(groups=[_group_failed(group, version, code) for group in body.groups])
    return _as_one(_group_failed(_as_group(body), version, code), version)


API = Api(
    ApiKey.OFFSET_FETCH,
    versions=range(1, 11),
    handle=handle,
    refuse=refuse,
    slices=(
        Slices(
            ("groups", "topics", "partition_indexes"),
            ("groups", "topics", "partitions"),
            same=("group_id",),
            same_topic=("name", "topic_id"),
        ),
        Slices(("topics", "partition_indexes"), ("topics", "partitions")),
    ),
    long_lists=(("groups", "topics", "partitions"), ("topics", "partitions")),
)
