"""FetchRequest, versions 4-18, sent continuously by consumers and followers (compiled).

The decoder follows the declaration in messages/fetch.py field by field. Like a generated one, it only
makes sure that it stays inside the frame and ends; explain.py finds the words when it gives up.
"""

from typing import Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i32, i64, mypyc_attr

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.explain import DECODE_FAILURES, explain_bytes
from barnabas.protocol.tuned.reader import (
    NO_TAGS,
    ZERO_UUID,
    Reader,
    read_count,
    read_int32,
    read_length,
    read_nullable_string,
    read_string,
    read_tag,
    read_tags,
    read_uuid,
)
from barnabas.protocol.wire import BadWire

HIGH_WATERMARK_UNSUPPORTED: Final = 0x7FFFFFFFFFFFFFFF


class ReplicaState:
    def __init__(
        self,
        *,
        replica_id: i32 = -1,
        replica_epoch: i64 = -1,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class FetchPartition:
    def __init__(
        self,
        *,
        partition: i32 = 0,
        current_leader_epoch: i32 = -1,
        fetch_offset: i64 = 0,
        last_fetched_epoch: i32 = -1,
        log_start_offset: i64 = -1,
        partition_max_bytes: i32 = 0,
        replica_directory_id: Uuid = ZERO_UUID,
        high_watermark: i64 = HIGH_WATERMARK_UNSUPPORTED,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class FetchTopic:
    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[FetchPartition] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions: list[FetchPartition] = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class ForgottenTopic:
    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[int] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class FetchRequest:
    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: i32 = -1,
        replica_state: ReplicaState | None = None,
        max_wait_ms: i32 = 0,
        min_bytes: i32 = 0,
        max_bytes: i32 = 0x7FFFFFFF,
        isolation_level: i32 = 0,
        session_id: i32 = 0,
        session_epoch: i32 = -1,
        topics: list[FetchTopic] | None = None,
        forgotten_topics_data: list[ForgottenTopic] | None = None,
        rack_id: str = "",
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics: list[FetchTopic] = [] if topics is None else topics
        self.forgotten_topics_data: list[ForgottenTopic] = (
            [] if forgotten_topics_data is None else forgotten_topics_data
        )
        self.rack_id = rack_id
        self.unknown_tags = unknown_tags


def decode_fetch_request(version: i64, buf: bytes, at: i64) -> tuple[FetchRequest, i64]:
    """Return the request at `at` and the position after it; raise Malformed and nothing else."""
    try:
        return _request(version, buf, at)
    except DECODE_FAILURES:
        raise explain_bytes(FetchRequest, version, buf, at) from None


def _request(version: i64, buf: bytes, at: i64) -> tuple[FetchRequest, i64]:
    r = Reader(version, version >= 12, buf, at)
    request = FetchRequest()
    if version <= 14:
        request.replica_id = read_int32(r)
    request.max_wait_ms = read_int32(r)
    request.min_bytes = read_int32(r)
    request.max_bytes = read_int32(r)
    isolation: i64 = buf[r.at]
    request.isolation_level = i32(isolation - 256 if isolation > 127 else isolation)
    r.at += 1
    if version >= 7:
        request.session_id = read_int32(r)
        request.session_epoch = read_int32(r)
    _topics(r, request.topics)
    if version >= 7:
        _forgotten(r, request.forgotten_topics_data)
    if version >= 11:
        request.rack_id = read_string(r)
    if r.flexible:
        _request_tags(r, request)
    if r.at > r.end:
        raise BadWire
    return request, r.at


def _topics(r: Reader, topics: list[FetchTopic]) -> None:
    count = read_count(r, 3)
    for _ in range(count):
        topic = FetchTopic()
        if r.version <= 12:
            topic.topic = read_string(r)
        else:
            topic.topic_id = read_uuid(r)
        _partitions(r, topic.partitions)
        if r.flexible:
            topic.unknown_tags = read_tags(r)
        topics.append(topic)


def _partitions(r: Reader, partitions: list[FetchPartition]) -> None:
    count = read_count(r, 16)
    version = r.version
    flexible = r.flexible
    buf = r.buf
    at = r.at
    for _ in range(count):
        partition = FetchPartition()
        partition.partition = read_i32_be(buf, at)
        at += 4
        if version >= 9:
            partition.current_leader_epoch = read_i32_be(buf, at)
            at += 4
        partition.fetch_offset = read_i64_be(buf, at)
        at += 8
        if flexible:
            partition.last_fetched_epoch = read_i32_be(buf, at)
            at += 4
        if version >= 5:
            partition.log_start_offset = read_i64_be(buf, at)
            at += 8
        partition.partition_max_bytes = read_i32_be(buf, at)
        at += 4
        if flexible:
            if buf[at]:
                r.at = at
                _partition_tags(r, partition)
                at = r.at
            else:
                at += 1
        partitions.append(partition)
    r.at = at


def _forgotten(r: Reader, topics: list[ForgottenTopic]) -> None:
    count = read_count(r, 3)
    for _ in range(count):
        topic = ForgottenTopic()
        if r.version <= 12:
            topic.topic = read_string(r)
        else:
            topic.topic_id = read_uuid(r)
        for _ in range(read_count(r, 4)):
            topic.partitions.append(read_int32(r))
        if r.flexible:
            topic.unknown_tags = read_tags(r)
        topics.append(topic)


def _partition_tags(r: Reader, partition: FetchPartition) -> None:
    unknown: list[tuple[int, bytes]] = []
    for _ in range(read_length(r)):
        tag, stop = read_tag(r)
        if tag == 0 and r.version >= 17:
            partition.replica_directory_id = read_uuid(r)
        elif tag == 1 and r.version >= 18:
            partition.high_watermark = read_i64_be(r.buf, r.at)
            r.at += 8
        else:
            unknown.append((tag, r.buf[r.at : stop]))
            r.at = stop
        if r.at != stop:
            raise BadWire
    if unknown:
        partition.unknown_tags = tuple(unknown)


def _request_tags(r: Reader, request: FetchRequest) -> None:
    count = read_length(r)
    if count <= 0:
        return
    unknown: list[tuple[int, bytes]] = []
    for _ in range(count):
        tag, stop = read_tag(r)
        if tag == 0:
            request.cluster_id = read_nullable_string(r)
        elif tag == 1 and r.version >= 15:
            state = ReplicaState()
            state.replica_id = read_int32(r)
            state.replica_epoch = read_i64_be(r.buf, r.at)
            r.at += 8
            state.unknown_tags = read_tags(r)
            request.replica_state = state
        else:
            unknown.append((tag, r.buf[r.at : stop]))
            r.at = stop
        if r.at != stop:
            raise BadWire
    if unknown:
        request.unknown_tags = tuple(unknown)
