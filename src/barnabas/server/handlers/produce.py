"""Produce (key 0), versions 3-13.

Does: acks 0, 1 and all; checks and appends each partition's batch; recompresses where the topic says so.
Does not: transactions. Their coordinator is not built yet, so nobody can have begun one.
v5 log_start_offset; v8 record_errors; v9 flexible; v10 current_leader hints; v13 topic ids.

Versions from 0 are advertised, as Kafka does: librdkafka learns from them which codecs it may use.
"""

import logging
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition, format_uuid
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.records.decode import decode_batch
from barnabas.records.header import ATTRIBUTES_AT, HEADER_SIZE, TRANSACTIONAL_BIT
from barnabas.replication.errors import NotLeader, NoTransactionalId, UnknownTopicId
from barnabas.replication.partition import Partition
from barnabas.server.api import CLOSE, NO_ANSWER, Answer, Api, Context
from barnabas.server.endpoints import endpoints_of
from barnabas.server.errors import code_of
from barnabas.server.produced import checked, only_batch
from barnabas.server.recompress import needs_recompression, recompressed
from barnabas.server.services import Services
from barnabas.storage.append_errors import InvalidTimestamp, MissingKey
from barnabas.storage.files import Buffer
from barnabas.storage.producers.errors import InvalidTxnState

logger = logging.getLogger(__name__)

ALL: Final = -1
NOBODY: Final = 0
_ACKS: Final = (ALL, NOBODY, 1)
_TOPIC_IDS_FROM: Final = 13
# Batches that no client should send: worth a line.
_CLIENTS_MISTAKES: Final = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)
# Errors with which Kafka does not tell where the log starts.
_WITHOUT_START: Final = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
_HINTS_FROM: Final = 10


def handle(ctx: Context, request: Request) -> Answer:
    body: ProduceRequest = request.body
    if body.acks not in _ACKS:
        return refuse(body, request.version, ErrorCode.INVALID_REQUIRED_ACKS)
    produce = _Produce(ctx, body, request.version)
    if produce.must_wait():
        return produce.recompress_first()
    return produce.append_all()


class _Produce:
    """One request on its way: every partition is looked up once, then appended to."""

    __slots__ = ("_body", "_broker", "_client", "_listener", "_moved", "_now_ms", "_targets", "_version")

    def __init__(self, ctx: Context, body: ProduceRequest, version: int) -> None:
        self._broker: Final = ctx.broker
        self._listener: Final = ctx.listener
        self._client: Final = ctx.client_address
        self._body: Final = body
        self._version: Final = version
        self._now_ms: Final = ctx.broker.clock.now_ms()
        # Leaders that the client should ask instead.
        self._moved: set[int] = set()
        self._targets = [
            [_Target(self._broker, topic, data, version, body) for data in topic.partition_data]
            for topic in body.topic_data
        ]

    def must_wait(self) -> bool:
        return any(target.must_wait() for targets in self._targets for target in targets)

    async def recompress_first(self) -> Answer:
        for targets in self._targets:
            for target in targets:
                await target.recompress(self._broker)
        return self.append_all()

    def append_all(self) -> Answer:
        topics = []
        failed = False
        for topic, targets in zip(self._body.topic_data, self._targets, strict=True):
            answers = []
            for target in targets:
                answer = self._append(topic, target)
                failed = failed or answer.error_code != 0
                answers.append(answer)
            topics.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
            )
        if self._body.acks == NOBODY:
            return CLOSE if failed else NO_ANSWER
        return ProduceResponse(
            responses=topics,
            node_endpoints=endpoints_of(self._broker.image, self._listener, self._moved, NodeEndpoint),
        )

    def _append(self, topic: TopicProduceData, target: "_Target") -> PartitionProduceResponse:
        partition, wrong = target.partition, target.wrong
        if wrong is None:
            assert partition is not None
            try:
                appended = partition.append(target.batch, self._broker.checksums, self._now_ms)
                return PartitionProduceResponse(
                    index=target.index,
                    base_offset=appended.base_offset,
                    log_append_time_ms=appended.log_append_time_ms,
                    log_start_offset=partition.log.start_offset,
                )
            except BarnabasError as error:
                wrong = error
            except OSError as error:
                wrong = self._broker.logs.failed(partition.log, error)
        return self._refused(topic, target, wrong)

    def _refused(
        self, topic: TopicProduceData, target: "_Target", wrong: BarnabasError
    ) -> PartitionProduceResponse:
        code = code_of(wrong)
        if code is None:
            raise wrong
        if code in _CLIENTS_MISTAKES:
            logger.warning(
                "batch refused peer=%s tp=%s-%d error=%s",
                self._client,
                topic.name or format_uuid(topic.topic_id),
                target.index,
                wrong,
            )
        answer = PartitionProduceResponse(
            index=target.index, error_code=code, base_offset=-1, error_message=str(wrong)
        )
        if target.partition is not None and target.is_batch and code not in _WITHOUT_START:
            answer.log_start_offset = target.partition.log.start_offset
        if isinstance(wrong, MissingKey | InvalidTimestamp):
            answer.record_errors = _record_errors(target.batch, wrong)
        if isinstance(wrong, NotLeader) and self._version >= _HINTS_FROM:
            answer.current_leader = LeaderIdAndEpoch(leader_id=wrong.leader, leader_epoch=wrong.leader_epoch)
            self._moved.add(wrong.leader)
        return answer


class _Target:
    """One partition of the request: where its records go, or why they go nowhere."""

    __slots__ = ("batch", "index", "is_batch", "partition", "wrong")

    def __init__(
        self,
        broker: Services,
        topic: TopicProduceData,
        data: PartitionProduceData,
        version: int,
        body: ProduceRequest,
    ) -> None:
        self.index = data.index
        self.batch: Buffer = b""
        # There is one batch, whatever is in it.
        self.is_batch = False
        self.partition: Partition | None = None
        self.wrong: BarnabasError | None = None
        try:
            self.partition = _find(broker, topic, data.index, version)
            self.batch = only_batch(data.records, version)
            self.is_batch = True
            _refuse_transactional(self.batch, body.transactional_id)
            self.partition.need_leader()
            if body.acks == ALL:
                self.partition.need_in_sync()
            self.batch = checked(self.batch, data)
        except BarnabasError as error:
            self.wrong = error

    def must_wait(self) -> bool:
        return (
            self.wrong is None
            and self.partition is not None
            and needs_recompression(self.partition.log.config, self.batch)
        )

    async def recompress(self, broker: Services) -> None:
        if not self.must_wait() or self.partition is None:
            return
        try:
            self.batch = await recompressed(broker.executor, self.partition.log.config, self.batch)
            # The partition may have moved or gone while the batch was worked on.
            self.partition.need_leader()
        except BarnabasError as error:
            self.wrong = error


def _find(broker: Services, topic: TopicProduceData, index: int, version: int) -> Partition:
    name = topic.name
    if version >= _TOPIC_IDS_FROM:
        known = broker.image.topics_by_id.get(topic.topic_id)
        if known is None:
            raise UnknownTopicId("no topic has this id")
        name = known.name
    return broker.replicas.get(TopicPartition(name, index))


def _refuse_transactional(batch: Buffer, transactional_id: str | None) -> None:
    if len(batch) >= HEADER_SIZE and batch[ATTRIBUTES_AT + 1] & TRANSACTIONAL_BIT:
        if transactional_id is None:
            raise NoTransactionalId("a transactional batch came without a transactional id")
        raise InvalidTxnState(-1, "no transaction has begun: this broker has no transactions yet")


def _record_errors(batch: Buffer, wrong: MissingKey | InvalidTimestamp) -> list[BatchIndexAndErrorMessage]:
    """Which records of the batch it is that may not be."""
    found = []
    for index, record in enumerate(decode_batch(bytes(batch))):
        if isinstance(wrong, MissingKey) and record.key is None:
            found.append((index, "A compacted topic takes no record without a key."))
        elif isinstance(wrong, InvalidTimestamp) and not wrong.allows(record.timestamp):
            found.append(
                (index, f"Timestamp {record.timestamp} is not within {wrong.earliest} and {wrong.latest}.")
            )
    return [
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text) for index, text in found
    ]


def refuse(body: ProduceRequest, version: int, code: ErrorCode) -> object:
    if body.acks == NOBODY:
        return CLOSE
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
                    for data in topic.partition_data
                ],
            )
            for topic in body.topic_data
        ]
    )


API = Api(ApiKey.PRODUCE, versions=range(3, 14), handle=handle, refuse=refuse, advertised=range(14))
