"""OffsetCommitRequest, versions 2-10, sent regularly by every consumer (compiled).

The decoder follows the declaration in messages/group_offsets.py field by field.
"""

from mypy_extensions import i32, i64, mypyc_attr

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.explain import DECODE_FAILURES, explain_bytes
from barnabas.protocol.tuned.reader import (
    NO_TAGS,
    ZERO_UUID,
    Reader,
    read_count,
    read_int32,
    read_int64,
    read_nullable_string,
    read_string,
    read_tags,
    read_uuid,
)


@mypyc_attr(free_list_len=1, acyclic=True)
class OffsetCommitRequestPartition:
    def __init__(
        self,
        *,
        partition_index: i32 = 0,
        committed_offset: i64 = 0,
        committed_leader_epoch: i32 = -1,
        committed_metadata: str | None = "",
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class OffsetCommitRequestTopic:
    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[OffsetCommitRequestPartition] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[OffsetCommitRequestPartition] = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class OffsetCommitRequest:
    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: i32 = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: i64 = -1,
        topics: list[OffsetCommitRequestTopic] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics: list[OffsetCommitRequestTopic] = [] if topics is None else topics
        self.unknown_tags = unknown_tags


def decode_offset_commit_request(version: i64, buf: bytes, at: i64) -> tuple[OffsetCommitRequest, i64]:
    """Return the request at `at` and the position after it; raise Malformed and nothing else."""
    try:
        return _request(version, buf, at)
    except DECODE_FAILURES:
        raise explain_bytes(OffsetCommitRequest, version, buf, at) from None


def _request(version: i64, buf: bytes, at: i64) -> tuple[OffsetCommitRequest, i64]:
    r = Reader(version, version >= 8, buf, at)
    request = OffsetCommitRequest()
    request.group_id = read_string(r)
    request.generation_id_or_member_epoch = read_int32(r)
    request.member_id = read_string(r)
    if version >= 7:
        request.group_instance_id = read_nullable_string(r)
    if version <= 4:
        request.retention_time_ms = read_int64(r)
    for _ in range(read_count(r, 3)):
        topic = OffsetCommitRequestTopic()
        if version <= 9:
            topic.name = read_string(r)
        else:
            topic.topic_id = read_uuid(r)
        _partitions(r, topic.partitions)
        if r.flexible:
            topic.unknown_tags = read_tags(r)
        request.topics.append(topic)
    if r.flexible:
        request.unknown_tags = read_tags(r)
    return request, r.at


def _partitions(r: Reader, partitions: list[OffsetCommitRequestPartition]) -> None:
    for _ in range(read_count(r, 14)):
        partition = OffsetCommitRequestPartition()
        partition.partition_index = read_int32(r)
        partition.committed_offset = read_int64(r)
        if r.version >= 6:
            partition.committed_leader_epoch = read_int32(r)
        partition.committed_metadata = read_nullable_string(r)
        if r.flexible:
            partition.unknown_tags = read_tags(r)
        partitions.append(partition)
