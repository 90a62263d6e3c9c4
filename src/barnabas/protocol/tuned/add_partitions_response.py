"""AddPartitionsToTxnResponse, versions 0-5 (compiled).

The encoder follows the declaration in messages/transactions.py field by field.
"""

from librt.strings import BytesWriter, write_i32_be
from mypy_extensions import i32, i64, mypyc_attr

from barnabas.protocol.schema.encoder import ENCODE_FAILURES, Unwritable
from barnabas.protocol.tuned.reader import NO_TAGS
from barnabas.protocol.tuned.writer import write_count, write_int16, write_no_tags, write_string


@mypyc_attr(free_list_len=1, acyclic=True)
class AddPartitionsToTxnPartitionResult:
    def __init__(
        self,
        *,
        partition_index: i32 = 0,
        partition_error_code: i32 = 0,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class AddPartitionsToTxnTopicResult:
    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.name = name
        self.results_by_partition: list[AddPartitionsToTxnPartitionResult] = (
            [] if results_by_partition is None else results_by_partition
        )
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class AddPartitionsToTxnResult:
    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results: list[AddPartitionsToTxnTopicResult] = (
            [] if topic_results is None else topic_results
        )
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class AddPartitionsToTxnResponse:
    def __init__(
        self,
        *,
        throttle_time_ms: i32 = 0,
        error_code: i32 = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] | None = None,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction: list[AddPartitionsToTxnResult] = (
            [] if results_by_transaction is None else results_by_transaction
        )
        self.results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = (
            [] if results_by_topic_v3_and_below is None else results_by_topic_v3_and_below
        )
        self.unknown_tags = unknown_tags


def encode_add_partitions_response(
    version: i64, response: AddPartitionsToTxnResponse, parts: list[bytes]
) -> bool:
    """Append the response to `parts`; return False and append nothing if its shape is unusual."""
    w = BytesWriter()
    try:
        _response(w, version, response)
    except ENCODE_FAILURES:
        return False
    parts.append(w.getvalue())
    return True


def _response(w: BytesWriter, version: i64, response: AddPartitionsToTxnResponse) -> None:
    flexible = version >= 3
    write_i32_be(w, response.throttle_time_ms)
    if version >= 4:
        if response.results_by_topic_v3_and_below:
            raise Unwritable
        write_int16(w, response.error_code)
        write_count(w, flexible, len(response.results_by_transaction))
        for result in response.results_by_transaction:
            write_string(w, flexible, result.transactional_id)
            _topics(w, flexible, result.topic_results)
            write_no_tags(w, flexible, result.unknown_tags)
    else:
        if response.results_by_transaction:
            raise Unwritable
        _topics(w, flexible, response.results_by_topic_v3_and_below)
    write_no_tags(w, flexible, response.unknown_tags)


def _topics(w: BytesWriter, flexible: bool, topics: list[AddPartitionsToTxnTopicResult]) -> None:
    write_count(w, flexible, len(topics))
    for topic in topics:
        write_string(w, flexible, topic.name)
        write_count(w, flexible, len(topic.results_by_partition))
        for partition in topic.results_by_partition:
            write_i32_be(w, partition.partition_index)
            write_int16(w, partition.partition_error_code)
            write_no_tags(w, flexible, partition.unknown_tags)
        write_no_tags(w, flexible, topic.unknown_tags)
