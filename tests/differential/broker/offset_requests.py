"""What is asked about committed offsets: commits and fetches, by the names of topics or by their ids."""

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

_GROUPS_FROM = 8

# Partitions of topics, by the topic's name or its id.
Partitions = Mapping[str | Uuid, Iterable[int]]


def commit(
    group: str,
    topic: str | Uuid,
    offset: int = 1,
    *partitions: int,
    member_id: str = "",
    generation: int = -1,
    instance_id: str | None = None,
    note: str | None = "",
    leader_epoch: int = -1,
    retention_ms: int = -1,
) -> OffsetCommitRequest:
    rows = [
        OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=note,
        )
        for index in partitions or (0,)
    ]
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequestTopic(**_named(topic), partitions=rows)],
    )


def _named(topic: str | Uuid) -> dict[str, Any]:
    if isinstance(topic, str):
        return {"name": topic, "topic_id": ZERO_UUID}
    return {"name": "", "topic_id": topic}


def of_group(
    group: str, partitions: Partitions | None = None, *, member_id: str | None = None, epoch: int = -1
) -> OffsetFetchRequestGroup:
    """All that the group has, unless told."""
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopics(**_named(topic), partition_indexes=list(indexes))
            for topic, indexes in partitions.items()
        ]
    return OffsetFetchRequestGroup(group_id=group, member_id=member_id, member_epoch=epoch, topics=topics)


def fetch_offsets(
    group: str,
    partitions: Partitions | None = None,
    *,
    version: int = _GROUPS_FROM,
    stable: bool = False,
    member_id: str | None = None,
    epoch: int = -1,
) -> OffsetFetchRequest:
    """One group's, in the form of that version."""
    if version >= _GROUPS_FROM:
        one = of_group(group, partitions, member_id=member_id, epoch=epoch)
        return OffsetFetchRequest(topics=[], groups=[one], require_stable=stable)
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopic(name=str(topic), partition_indexes=list(indexes))
            for topic, indexes in partitions.items()
        ]
    return OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable)
