"""Produce (key 0), versions 3-13.

Supported: acks 0, 1 and all; each partition's batch is validated, recompressed if the topic's
compression.type requires it, and appended. The first batch of a transaction in a partition is appended after
the coordinator has verified the partition (verification.py).
v5 log_start_offset; v8 record_errors; v9 flexible; v10 current_leader hints; v11 TRANSACTION_ABORTABLE;
v12 adds partitions to transactions; v13 topic ids.

Versions from 0 are advertised, as in Kafka: librdkafka derives the supported codecs from them.
"""

import logging
from collections.abc import Awaitable
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.base.faults import report_fault
from barnabas.base.ids import format_uuid
from barnabas.coordinators.txn.state import TxnProducer
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.records.decode import decode_first
from barnabas.replication.errors import NotForClients, NotLeader
from barnabas.server.cluster.brokers import endpoints_of
from barnabas.server.coordination.verification import Codes, Speech, for_produce, verify
from barnabas.server.errors import code_of
from barnabas.server.produce.partition_batch import ALL_IN_SYNC, NotVerified, PartitionBatch
from barnabas.server.requests.api import CLOSE, NO_ANSWER, Answer, Api, Context
from barnabas.server.requests.slices import Slices
from barnabas.server.topic_rows import INTERNAL_TOPICS
from barnabas.storage.errors import InvalidTimestamp, MissingKey
from barnabas.storage.files import Buffer

logger = logging.getLogger(__name__)

# A batch may hold a million invalid records; reporting each would take seconds.
RECORD_ERRORS_MAX: Final = 1_000
NOBODY: Final = 0
_NONE: Final = ErrorCode.NONE
_ACKS: Final = (ALL_IN_SYNC, NOBODY, 1)
# Errors that indicate a client bug, and are logged.
_CLIENTS_MISTAKES: Final = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)
# Errors for which Kafka does not return the log start offset.
_WITHOUT_START: Final = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
)
# The client id that may write to internal topics: as in Kafka, that of its admin tools.
_ADMINISTRATOR: Final = "__admin_client"
_HINTS_FROM: Final = 10


def handle(ctx: Context, request: Request) -> Answer:
    body: ProduceRequest = request.body
    if body.acks not in _ACKS:
        return refuse(body, request.version, ErrorCode.INVALID_REQUIRED_ACKS)
    produce = _Produce(ctx, body, request)
    verified: Codes | Awaitable[Codes] | None = None
    if produce.transactional:
        if produce.has_several_producers():
            why = (
                "batches have different producer ids or epochs; "
                "all batches of a transaction must have the same producer id and epoch"
            )
            return refuse(body, request.version, ErrorCode.INVALID_PRODUCER_ID_MAPPING, why)
        verified = produce.verify()
    if isinstance(verified, dict):
        produce.take_verified(verified)
        verified = None
    if verified is None and not produce.must_wait():
        return produce.append_all()
    return produce.append_later(verified)


class _Produce:
    """One request. Every partition is looked up once, then appended to."""

    __slots__ = (
        "_body",
        "_broker",
        "_client",
        "_is_administrator",
        "_listener",
        "_moved",
        "_must_verify",
        "_now_ms",
        "_speech",
        "_targets",
        "_version",
        "transactional",
    )

    def __init__(self, ctx: Context, body: ProduceRequest, request: Request) -> None:
        version = request.version
        self._broker: Final = ctx.broker
        self._listener: Final = ctx.listener
        self._client: Final = ctx.client_address
        self._is_administrator: Final = request.client_id == _ADMINISTRATOR
        self._body: Final = body
        self._version: Final = version
        self._now_ms: Final = ctx.broker.clock.now_ms()
        # Leaders that the client is redirected to.
        self._moved: set[int] = set()
        self._targets = [
            [PartitionBatch(self._broker, topic, data, version, body) for data in topic.partition_data]
            for topic in body.topic_data
        ]

        self._must_verify = False
        self._speech: Speech | None = None
        self.transactional = [
            target for targets in self._targets for target in targets if target.is_transactional
        ]

    # Transactions

    def has_several_producers(self) -> bool:
        first = self.transactional[0]
        for target in self.transactional:
            if target.producer_id != first.producer_id or target.producer_epoch != first.producer_epoch:
                return True
        return False

    def verify(self) -> Codes | Awaitable[Codes]:
        """Ask the coordinator to verify the batches whose transaction is not known to be open in the log."""
        self._speech = speech = Speech.of_produce(self._version)
        self._must_verify = self._broker.settings.now.transaction_partition_verification_enable
        if not self._must_verify and not speech.adds:
            return {}
        self._broker.transactions.settle()
        wanted = [target for target in self.transactional if target.start_verification(self._now_ms, speech)]
        if not wanted:
            return {}
        transactional_id = self._body.transactional_id
        assert transactional_id is not None
        producer = TxnProducer(transactional_id, wanted[0].producer_id, wanted[0].producer_epoch)

        def start_again() -> None:
            self._broker.transactions.settle()
            for target in wanted:
                target.start_verification(self._now_ms, speech)

        return verify(self._broker, producer, [target.tp for target in wanted], speech, start_again)

    def take_verified(self, codes: Codes) -> None:
        assert self._speech is not None
        for target in self.transactional:
            code = codes.get(target.tp, _NONE)
            if code is not _NONE and target.wrong is None:
                target.wrong = NotVerified(for_produce(code, self._speech), code.name)

    # Batches

    def must_wait(self) -> bool:
        return any(target.must_wait() for targets in self._targets for target in targets)

    async def append_later(self, verified: Awaitable[Codes] | None) -> Answer:
        """Append after the coordinator has answered and batches are recompressed."""
        if verified is not None:
            self.take_verified(await verified)
            for target in self.transactional:
                target.check_leader()
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
            node_endpoints=self._endpoints_of_moved() if self._moved else [],
        )

    def _endpoints_of_moved(self) -> list[NodeEndpoint]:
        return endpoints_of(self._broker.image, self._listener, self._moved, NodeEndpoint)

    def _append(self, topic: TopicProduceData, target: PartitionBatch) -> PartitionProduceResponse:
        partition = target.partition
        if target.wrong is not None:
            return self._refused(topic, target, target.wrong)
        assert partition is not None
        # An error must not outlive its except block: its traceback references this frame, and so the request.
        try:
            if partition.tp.topic in INTERNAL_TOPICS and not self._is_administrator:
                raise NotForClients(f"{partition.tp.topic} is an internal topic; clients cannot write to it")
            appended = partition.append(
                target.batch,
                self._broker.checksums,
                self._now_ms,
                target.verification,
                self._must_verify,
                target.start,
            )
        except BarnabasError as error:
            return self._refused(topic, target, error)
        except OSError as error:
            return self._refused(topic, target, self._broker.logs.failed(partition.log, error))
        except Exception as error:
            # A bug. The log may hold half of the batch, so it must not be appended to any more.
            report_fault(logger, error, "append failed tp=%s", partition.tp)
            refusal = self._broker.logs.fail_log(partition.log, error)
            partition.changed()
            return self._refused(topic, target, refusal)
        return PartitionProduceResponse(
            index=target.index,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=partition.log.start_offset,
        )

    def _refused(
        self, topic: TopicProduceData, target: PartitionBatch, wrong: BarnabasError
    ) -> PartitionProduceResponse:
        record_errors: list[BatchIndexAndErrorMessage] = []
        if isinstance(wrong, MissingKey | InvalidTimestamp):
            try:
                record_errors = _record_errors(target.batch, wrong)
            except BarnabasError as unreadable:
                # Kafka decompresses a batch before it checks timestamps.
                wrong = unreadable
        code = wrong.code if isinstance(wrong, NotVerified) else code_of(wrong)
        if code is None:
            report_fault(logger, wrong, "append failed")
            code = ErrorCode.UNKNOWN_SERVER_ERROR
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
        was_tried = target.is_batch and not isinstance(wrong, NotVerified) and code not in _WITHOUT_START
        if target.partition is not None and was_tried:
            answer.log_start_offset = target.partition.log.start_offset
        answer.record_errors = record_errors
        if isinstance(wrong, NotLeader) and self._version >= _HINTS_FROM:
            answer.current_leader = LeaderIdAndEpoch(leader_id=wrong.leader, leader_epoch=wrong.leader_epoch)
            self._moved.add(wrong.leader)
        return answer


def _record_errors(batch: Buffer, wrong: MissingKey | InvalidTimestamp) -> list[BatchIndexAndErrorMessage]:
    """The invalid records among the first RECORD_ERRORS_MAX of the batch."""
    found = []
    for index, record in enumerate(decode_first(bytes(batch), RECORD_ERRORS_MAX)):
        if isinstance(wrong, MissingKey) and record.key is None:
            found.append((index, "Compacted topic cannot accept a record without a key."))
        elif isinstance(wrong, InvalidTimestamp) and not wrong.allows(record.timestamp):
            found.append(
                (index, f"Timestamp {record.timestamp} is out of range [{wrong.earliest}, {wrong.latest}].")
            )
    return [
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text) for index, text in found
    ]


def refuse(body: ProduceRequest, version: int, code: ErrorCode, why: str | None = None) -> object:
    if body.acks == NOBODY:
        return CLOSE
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=data.index, error_code=code, base_offset=-1, error_message=why
                    )
                    for data in topic.partition_data
                ],
            )
            for topic in body.topic_data
        ]
    )


API = Api(
    ApiKey.PRODUCE,
    versions=range(3, 14),
    handle=handle,
    refuse=refuse,
    advertised=range(14),
    slices=(
        Slices(
            ("topic_data", "partition_data"),
            ("responses", "partition_responses"),
            same=("name", "topic_id"),
            merged=("node_endpoints",),
            is_hot=True,
            is_change=True,
        ),
    ),
)
