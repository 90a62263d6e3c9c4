"""ProduceResponse, versions 3-13, sent for every produce request (compiled).

The encoder follows the declaration in messages/produce.py field by field. Single records that were refused,
and leaders that moved, are unusual.
"""

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64, mypyc_attr

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.encoder import ENCODE_FAILURES, Unwritable
from barnabas.protocol.tuned.reader import NO_TAGS, ZERO_UUID
from barnabas.protocol.tuned.writer import (
    write_count,
    write_int16,
    write_no_tags,
    write_nullable_string,
    write_string,
    write_uuid,
)


class BatchIndexAndErrorMessage:
    def __init__(
        self,
        *,
        batch_index: i32 = 0,
        batch_index_error_message: str | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message
        self.unknown_tags = unknown_tags


class LeaderIdAndEpoch:
    def __init__(
        self,
        *,
        leader_id: i32 = -1,
        leader_epoch: i32 = -1,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class PartitionProduceResponse:
    def __init__(
        self,
        *,
        index: i32 = 0,
        error_code: i32 = 0,
        base_offset: i64 = 0,
        log_append_time_ms: i64 = -1,
        log_start_offset: i64 = -1,
        record_errors: list[BatchIndexAndErrorMessage] | None = None,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors: list[BatchIndexAndErrorMessage] = [] if record_errors is None else record_errors
        self.error_message = error_message
        self.current_leader = current_leader
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class TopicProduceResponse:
    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition_responses: list[PartitionProduceResponse] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses: list[PartitionProduceResponse] = (
            [] if partition_responses is None else partition_responses
        )
        self.unknown_tags = unknown_tags


class NodeEndpoint:
    def __init__(
        self,
        *,
        node_id: i32 = 0,
        host: str = "",
        port: i32 = 0,
        rack: str | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class ProduceResponse:
    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] | None = None,
        throttle_time_ms: i32 = 0,
        node_endpoints: list[NodeEndpoint] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.responses: list[TopicProduceResponse] = [] if responses is None else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is None else node_endpoints
        self.unknown_tags = unknown_tags


def encode_produce_response(version: i64, response: ProduceResponse, parts: list[bytes]) -> bool:
    """Append the response to `parts`; return False and append nothing if its shape is unusual."""
    w = BytesWriter()
    try:
        _response(w, version, response)
    except ENCODE_FAILURES:
        return False
    parts.append(w.getvalue())
    return True


def _response(w: BytesWriter, version: i64, response: ProduceResponse) -> None:
    flexible = version >= 9
    if response.node_endpoints:
        raise Unwritable
    write_count(w, flexible, len(response.responses))
    for topic in response.responses:
        if version <= 12:
            write_string(w, flexible, topic.name)
        else:
            write_uuid(w, topic.topic_id)
        _partitions(w, version, topic.partition_responses)
        write_no_tags(w, flexible, topic.unknown_tags)
    write_i32_be(w, response.throttle_time_ms)
    write_no_tags(w, flexible, response.unknown_tags)


def _partitions(w: BytesWriter, version: i64, partitions: list[PartitionProduceResponse]) -> None:
    flexible = version >= 9
    write_count(w, flexible, len(partitions))
    for partition in partitions:
        if partition.record_errors or partition.current_leader is not None:
            raise Unwritable
        write_i32_be(w, partition.index)
        write_int16(w, partition.error_code)
        write_i64_be(w, partition.base_offset)
        write_i64_be(w, partition.log_append_time_ms)
        if version >= 5:
            write_i64_be(w, partition.log_start_offset)
        if version >= 8:
            write_count(w, flexible, 0)
            write_nullable_string(w, flexible, partition.error_message)
        write_no_tags(w, flexible, partition.unknown_tags)
