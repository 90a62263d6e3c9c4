"""ProduceRequest, versions 3-13, which carries every record (compiled).

The decoder follows the declaration in messages/produce.py field by field and does not look into the
records: they come out as views of the frame.
"""

from librt.strings import read_i32_be
from mypy_extensions import i32, i64, mypyc_attr

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.explain import DECODE_FAILURES, explain_bytes
from barnabas.protocol.tuned.reader import (
    NO_TAGS,
    ZERO_UUID,
    Reader,
    read_count,
    read_int16,
    read_int32,
    read_length,
    read_nullable_string,
    read_string,
    read_tags,
    read_uuid,
)
from barnabas.protocol.wire import BadWire


@mypyc_attr(free_list_len=1, acyclic=True)
class PartitionProduceData:
    def __init__(
        self,
        *,
        index: i32 = 0,
        records: memoryview | bytes | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.index = index
        self.records = records
        # The start of the records in the frame, which is records.obj; -1 without a frame.
        self.start: i64 = -1
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class TopicProduceData:
    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition_data: list[PartitionProduceData] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data: list[PartitionProduceData] = [] if partition_data is None else partition_data
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class ProduceRequest:
    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: i32 = 0,
        timeout_ms: i32 = 0,
        topic_data: list[TopicProduceData] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data: list[TopicProduceData] = [] if topic_data is None else topic_data
        self.unknown_tags = unknown_tags


def decode_produce_request(version: i64, buf: bytes, at: i64) -> tuple[ProduceRequest, i64]:
    """Return the request at `at` and the position after it; raise Malformed and nothing else."""
    try:
        return _request(version, buf, at)
    except DECODE_FAILURES:
        raise explain_bytes(ProduceRequest, version, buf, at) from None


def _request(version: i64, buf: bytes, at: i64) -> tuple[ProduceRequest, i64]:
    r = Reader(version, version >= 9, buf, at)
    request = ProduceRequest()
    request.transactional_id = read_nullable_string(r)
    request.acks = read_int16(r)
    request.timeout_ms = read_int32(r)
    view = memoryview(buf)
    for _ in range(read_count(r, 3)):
        topic = TopicProduceData()
        if version <= 12:
            topic.name = read_string(r)
        else:
            topic.topic_id = read_uuid(r)
        _partitions(r, view, topic.partition_data)
        if r.flexible:
            topic.unknown_tags = read_tags(r)
        request.topic_data.append(topic)
    if r.flexible:
        request.unknown_tags = read_tags(r)
    if r.at > r.end:
        raise BadWire
    return request, r.at


def _partitions(r: Reader, view: memoryview, partitions: list[PartitionProduceData]) -> None:
    for _ in range(read_count(r, 6)):
        partition = PartitionProduceData()
        partition.index = read_int32(r)
        size: i64
        if r.flexible:
            size = read_length(r) - 1
        else:
            size = i64(read_i32_be(r.buf, r.at))
            r.at += 4
        if size >= 0:
            stop = r.at + size
            if stop > r.end:
                raise BadWire
            partition.records = view[r.at : stop]
            partition.start = r.at
            r.at = stop
        if r.flexible:
            partition.unknown_tags = read_tags(r)
        partitions.append(partition)
