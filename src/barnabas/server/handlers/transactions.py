"""AddPartitionsToTxn (key 24), versions 0-5; AddOffsetsToTxn (25), versions 0-4; EndTxn (26), versions 0-5.

Supported: adds partitions to a transaction or, with verify_only, checks whether they are in it. If any
partition does not exist, or belongs to an internal topic and the requester is a client, none is added.
Versions up to 3 are for clients; from 4 on for brokers, with several transactions. EndTxn commits or aborts a
transaction: the response is sent when the decision is committed to the log; the markers follow.
AddPartitionsToTxn: v2 PRODUCER_FENCED; v3 flexible; v4 several transactions, verify_only; v5 transactions
version 2.
AddOffsetsToTxn: v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE.
EndTxn: v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE; v5 returns the bumped epoch of the next
transaction.
"""

from functools import partial
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo
from barnabas.coordinators.runtime.shards import partition_of
from barnabas.coordinators.txn.adding import decide_add_offsets, decide_add_partitions
from barnabas.coordinators.txn.answers import result_of
from barnabas.coordinators.txn.ending import decide_end
from barnabas.coordinators.txn.shard import TxnShard
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
)
from barnabas.server.coordination.calls import ask_shard, ask_with_new_id, when_given
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from barnabas.server.requests.api import Answer, Api, Context, Later
from barnabas.server.services import Services
from barnabas.server.topic_rows import INTERNAL_TOPICS

_SEVERAL_FROM: Final = 4


# AddPartitionsToTxn


def add_partitions(ctx: Context, request: Request) -> Answer:
    body: AddPartitionsToTxnRequest = request.body
    version = request.version
    answers = [_added(ctx, version, txn) for txn in _transactions(body, version)]
    if any(isinstance(answer, Later) for answer in answers):
        return _when_all_are_given(answers, version)
    return _response(answers, version)


async def _when_all_are_given(answers: list[Answer], version: int) -> AddPartitionsToTxnResponse:
    return _response([await when_given(answer) for answer in answers], version)


def _transactions(body: AddPartitionsToTxnRequest, version: int) -> list[AddPartitionsToTxnTransaction]:
    if version >= _SEVERAL_FROM:
        return body.transactions
    only = AddPartitionsToTxnTransaction(
        transactional_id=body.v3_and_below_transactional_id,
        producer_id=body.v3_and_below_producer_id,
        producer_epoch=body.v3_and_below_producer_epoch,
        topics=body.v3_and_below_topics,
    )
    return [only]


def _added(ctx: Context, version: int, txn: AddPartitionsToTxnTransaction) -> Answer:
    wrong = _wrong(ctx.broker.image, txn.topics, is_client=version < _SEVERAL_FROM)
    if wrong:
        return result_of(txn, lambda tp: wrong.get(tp, ErrorCode.OPERATION_NOT_ATTEMPTED))
    refused = partial(_refused_result, txn)
    if not txn.transactional_id:
        return refused(ErrorCode.INVALID_REQUEST)
    return ask_shard(
        ctx.broker.transactions.host_of(txn.transactional_id),
        refused,
        lambda shard, to, now: decide_add_partitions(shard.table, txn, version, to, now),
    )


def _wrong(
    image: MetadataImage, topics: list[AddPartitionsToTxnTopic], *, is_client: bool
) -> dict[TopicPartition, ErrorCode]:
    """Unknown partitions and, for clients, those of internal topics, which only brokers write to."""
    found = {}
    for topic in topics:
        known = image.topics.get(topic.name)
        count = 0 if known is None else len(known.partitions)
        for index in topic.partitions:
            if is_client and topic.name in INTERNAL_TOPICS:
                found[TopicPartition(topic.name, index)] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not 0 <= index < count:
                found[TopicPartition(topic.name, index)] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return found


def _refused_result(txn: AddPartitionsToTxnTransaction, code: ErrorCode) -> AddPartitionsToTxnResult:
    return result_of(txn, lambda _: code)


def _response(results: list[object], version: int) -> AddPartitionsToTxnResponse:
    given = []
    for result in results:
        assert isinstance(result, AddPartitionsToTxnResult), f"unexpected result: {result!r}"
        given.append(result)
    if version >= _SEVERAL_FROM:
        if any(_is_beyond(result) for result in given):
            return AddPartitionsToTxnResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        return AddPartitionsToTxnResponse(results_by_transaction=given)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=given[0].topic_results)


def _is_beyond(result: AddPartitionsToTxnResult) -> bool:
    """Whether the cluster's transaction.version is too low. Kafka then fails the whole request."""
    return any(
        one.partition_error_code == ErrorCode.UNSUPPORTED_VERSION
        for topic in result.topic_results
        for one in topic.results_by_partition
    )


def refuse_partitions(
    body: AddPartitionsToTxnRequest, version: int, code: ErrorCode
) -> AddPartitionsToTxnResponse:
    if version >= _SEVERAL_FROM:
        return AddPartitionsToTxnResponse(error_code=code)
    return _response([_refused_result(txn, code) for txn in _transactions(body, version)], version)


# AddOffsetsToTxn


def add_offsets(ctx: Context, request: Request) -> Answer:
    body: AddOffsetsToTxnRequest = request.body
    if not body.transactional_id:
        return refuse_offsets(body, request.version, ErrorCode.INVALID_REQUEST)
    partition = TopicPartition(OFFSETS_TOPIC, partition_of(body.group_id, _offsets_partitions(ctx.broker)))
    return ask_shard(
        ctx.broker.transactions.host_of(body.transactional_id),
        partial(refuse_offsets, body, request.version),
        lambda shard, to, now: decide_add_offsets(shard.table, body, request.version, partition, to, now),
    )


def _offsets_partitions(broker: Services) -> int:
    """The current or, before the topic is created, the future number of partitions of __consumer_offsets."""
    topic = broker.image.topics.get(OFFSETS_TOPIC)
    return broker.settings.now.offsets_topic_num_partitions if topic is None else len(topic.partitions)


def refuse_offsets(body: AddOffsetsToTxnRequest, version: int, code: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=code)


# EndTxn


def end(ctx: Context, request: Request) -> Answer:
    body: EndTxnRequest = request.body
    if not body.transactional_id:
        return refuse_end(body, request.version, ErrorCode.INVALID_REQUEST)

    def act(shard: TxnShard, new_id: int | None, to: ReplyTo, now: Now) -> Outcome:
        return decide_end(shard.table, body, request.version, new_id, to, now)

    return ask_with_new_id(ctx, body.transactional_id, partial(refuse_end, body, request.version), act)


def refuse_end(body: EndTxnRequest, version: int, code: ErrorCode) -> EndTxnResponse:
    return EndTxnResponse(error_code=code)


APIS = (
    Api(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        versions=range(6),
        handle=add_partitions,
        refuse=refuse_partitions,
    ),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, versions=range(5), handle=add_offsets, refuse=refuse_offsets),
    Api(ApiKey.END_TXN, versions=range(6), handle=end, refuse=refuse_end),
)
