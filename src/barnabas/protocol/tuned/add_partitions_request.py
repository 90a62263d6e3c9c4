"""AddPartitionsToTxnRequest, versions 0-5, which older clients send in every transaction (compiled).

The decoder follows the declaration in messages/transactions.py field by field.
"""

from mypy_extensions import i32, i64, mypyc_attr

from barnabas.protocol.schema.explain import DECODE_FAILURES, explain_bytes
from barnabas.protocol.tuned.reader import (
    NO_TAGS,
    Reader,
    read_bool,
    read_count,
    read_int16,
    read_int32,
    read_int64,
    read_string,
    read_tags,
)


@mypyc_attr(free_list_len=1, acyclic=True)
class AddPartitionsToTxnTopic:
    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class AddPartitionsToTxnTransaction:
    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: i64 = 0,
        producer_epoch: i32 = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics: list[AddPartitionsToTxnTopic] = [] if topics is None else topics
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class AddPartitionsToTxnRequest:
    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnTransaction] | None = None,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: i64 = 0,
        v3_and_below_producer_epoch: i32 = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.transactions: list[AddPartitionsToTxnTransaction] = [] if transactions is None else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics: list[AddPartitionsToTxnTopic] = (
            [] if v3_and_below_topics is None else v3_and_below_topics
        )
        self.unknown_tags = unknown_tags


def decode_add_partitions_request(version: i64, buf: bytes, at: i64) -> tuple[AddPartitionsToTxnRequest, i64]:
    """Return the request at `at` and the position after it; raise Malformed and nothing else."""
    try:
        return _request(version, buf, at)
    except DECODE_FAILURES:
        raise explain_bytes(AddPartitionsToTxnRequest, version, buf, at) from None


def _request(version: i64, buf: bytes, at: i64) -> tuple[AddPartitionsToTxnRequest, i64]:
    r = Reader(version, version >= 3, buf, at)
    request = AddPartitionsToTxnRequest()
    if version >= 4:
        _transactions(r, request.transactions)
    else:
        request.v3_and_below_transactional_id = read_string(r)
        request.v3_and_below_producer_id = read_int64(r)
        request.v3_and_below_producer_epoch = read_int16(r)
        _topics(r, request.v3_and_below_topics)
    if r.flexible:
        request.unknown_tags = read_tags(r)
    return request, r.at


def _transactions(r: Reader, transactions: list[AddPartitionsToTxnTransaction]) -> None:
    for _ in range(read_count(r, 14)):
        transaction = AddPartitionsToTxnTransaction()
        transaction.transactional_id = read_string(r)
        transaction.producer_id = read_int64(r)
        transaction.producer_epoch = read_int16(r)
        transaction.verify_only = read_bool(r)
        _topics(r, transaction.topics)
        transaction.unknown_tags = read_tags(r)
        transactions.append(transaction)


def _topics(r: Reader, topics: list[AddPartitionsToTxnTopic]) -> None:
    for _ in range(read_count(r, 3)):
        topic = AddPartitionsToTxnTopic()
        topic.name = read_string(r)
        for _ in range(read_count(r, 4)):
            topic.partitions.append(read_int32(r))
        if r.flexible:
            topic.unknown_tags = read_tags(r)
        topics.append(topic)
