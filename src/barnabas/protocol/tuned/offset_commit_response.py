"""OffsetCommitResponse, versions 2-10 (compiled).

The encoder follows the declaration in messages/group_offsets.py field by field.
"""

from librt.strings import BytesWriter, write_i32_be
from mypy_extensions import i32, i64, mypyc_attr

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.encoder import ENCODE_FAILURES
from barnabas.protocol.tuned.reader import NO_TAGS, ZERO_UUID
from barnabas.protocol.tuned.writer import (
    write_count,
    write_int16,
    write_no_tags,
    write_string,
    write_uuid,
)


@mypyc_attr(free_list_len=1, acyclic=True)
class OffsetCommitResponsePartition:
    def __init__(
        self,
        *,
        partition_index: i32 = 0,
        error_code: i32 = 0,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class OffsetCommitResponseTopic:
    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[OffsetCommitResponsePartition] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[OffsetCommitResponsePartition] = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class OffsetCommitResponse:
    def __init__(
        self,
        *,
        throttle_time_ms: i32 = 0,
        topics: list[OffsetCommitResponseTopic] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[OffsetCommitResponseTopic] = [] if topics is None else topics
        self.unknown_tags = unknown_tags


def encode_offset_commit_response(version: i64, response: OffsetCommitResponse, parts: list[bytes]) -> bool:
    """Append the response to `parts`; return False and append nothing if its shape is unusual."""
    w = BytesWriter()
    try:
        _response(w, version, response)
    except ENCODE_FAILURES:
        return False
    parts.append(w.getvalue())
    return True


def _response(w: BytesWriter, version: i64, response: OffsetCommitResponse) -> None:
    flexible = version >= 8
    if version >= 3:
        write_i32_be(w, response.throttle_time_ms)
    write_count(w, flexible, len(response.topics))
    for topic in response.topics:
        if version <= 9:
            write_string(w, flexible, topic.name)
        else:
            write_uuid(w, topic.topic_id)
        write_count(w, flexible, len(topic.partitions))
        for partition in topic.partitions:
            write_i32_be(w, partition.partition_index)
            write_int16(w, partition.error_code)
            write_no_tags(w, flexible, partition.unknown_tags)
        write_no_tags(w, flexible, topic.unknown_tags)
    write_no_tags(w, flexible, response.unknown_tags)
