"""TxnOffsetCommit (key 28), versions 0-5.

Supported: offsets that become visible when their transaction commits, for existing partitions. The
transaction coordinator verifies the partition of __consumer_offsets first, as for a batch (verification.py).
v2 leader epochs; v3 flexible, group membership; v4 TRANSACTION_ABORTABLE; v5 adds the partition to the
transaction.
"""

from collections.abc import Iterable
from typing import Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import InTransaction, Now, Outcome, ReplyTo
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.host import ShardHost
from barnabas.coordinators.runtime.shards import partition_of
from barnabas.coordinators.txn.state import TxnProducer
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.server.coordination.calls import ask_shard, caller_of, when_given
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from barnabas.server.coordination.verification import Codes, Speech, verify
from barnabas.server.errors import code_of
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.combining import merged_by_topic
from barnabas.server.requests.slices import Slices
from barnabas.storage.producers.state import Verification

# Older producers do not handle COORDINATOR_LOAD_IN_PROGRESS. (KAFKA-7296)
_KNOWS_LOADING_FROM: Final = 2
_NO_SEQUENCE: Final = -1


def handle(ctx: Context, request: Request) -> Answer:
    body: TxnOffsetCommitRequest = request.body
    known, failed = _known_topics(ctx.broker.image, body.topics)
    if not known:
        return TxnOffsetCommitResponse(topics=failed)
    commit = _Commit(ctx, request, _only(body, known), failed)
    if not body.group_id:
        return commit.refused(ErrorCode.INVALID_GROUP_ID)
    if commit.lacks_topic:
        return commit.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    host = ctx.broker.groups.shards.host_of(body.group_id)
    if not isinstance(host, ShardHost):
        return commit.refused(host)
    try:
        commit.start_verification()
    except BarnabasError as error:
        return commit.refused(code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR)
    codes = commit.verify()
    if isinstance(codes, dict):
        return commit.write(codes)
    return commit.write_later(codes)


class _Commit:
    """One request: verified by the transaction coordinator, then written by the group's shard."""

    def __init__(
        self,
        ctx: Context,
        request: Request,
        body: TxnOffsetCommitRequest,
        failed: list[TxnOffsetCommitResponseTopic],
    ) -> None:
        self._ctx = ctx
        self._body = body
        self._failed = failed
        self._version = request.version
        self._speech = Speech.of_offset_commit(request.version)
        self._caller = caller_of(ctx, request)
        self._must_verify = ctx.broker.settings.now.transaction_partition_verification_enable
        self._proof: Verification | None = None
        topic = ctx.broker.image.topics.get(OFFSETS_TOPIC)
        count = 1 if topic is None else len(topic.partitions)
        self._tp = TopicPartition(OFFSETS_TOPIC, partition_of(body.group_id, count))

    @property
    def _is_verified(self) -> bool:
        return self._must_verify or self._speech.adds

    @property
    def lacks_topic(self) -> bool:
        """Checked first: Kafka looks up the log before the group coordinator."""
        return self._is_verified and OFFSETS_TOPIC not in self._ctx.broker.image.topics

    def start_verification(self) -> None:
        """Start verification in the log, unless the transaction is already open there."""
        if self._is_verified:
            self._ctx.broker.transactions.settle()
            partition = self._ctx.broker.replicas.get(self._tp)
            self._proof = partition.log.producers.start_verification(
                self._body.producer_id,
                sequence=_NO_SEQUENCE,
                epoch=int(self._body.producer_epoch),
                now_ms=self._ctx.broker.clock.now_ms(),
                epoch_bump=self._speech.adds,
            )

    def verify(self) -> Any:
        if self._proof is None:
            return {}
        body = self._body
        producer = TxnProducer(body.transactional_id, body.producer_id, body.producer_epoch)
        return verify(self._ctx.broker, producer, [self._tp], self._speech, self.start_verification)

    async def write_later(self, codes: Any) -> object:
        try:
            found = await codes
        except BarnabasError as error:
            # The log refused to start the verification again.
            return self.refused(code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR)
        return await when_given(self.write(found))

    def write(self, codes: Codes) -> Answer:
        code = codes.get(self._tp, ErrorCode.NONE)
        if code is not ErrorCode.NONE:
            return self.refused(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if code is ErrorCode.NETWORK_EXCEPTION else code
            )
        host = self._ctx.broker.groups.shards.host_of(self._body.group_id)
        return ask_shard(host, self.refused, self._act)

    def _act(self, shard: GroupShard, to: ReplyTo, now: Now) -> Outcome:
        outcome = shard.commit_in_transaction(self._body, self._caller, to, now)
        if isinstance(outcome.stamp, InTransaction):
            outcome.stamp = outcome.stamp._replace(proof=self._proof, must_verify=self._must_verify)
        for _, answer in outcome.answers:
            assert isinstance(answer, TxnOffsetCommitResponse), "unexpected response"
            answer.topics = merged_by_topic(self._failed, answer.topics)
        return outcome

    def refused(self, code: ErrorCode) -> TxnOffsetCommitResponse:
        if self._version < _KNOWS_LOADING_FROM and code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        refused = _all_failed(self._body.topics, code)
        return TxnOffsetCommitResponse(topics=merged_by_topic(self._failed, refused))


def _known_topics(
    image: MetadataImage, topics: list[TxnOffsetCommitRequestTopic]
) -> tuple[list[TxnOffsetCommitRequestTopic], list[TxnOffsetCommitResponseTopic]]:
    """The existing partitions, and the results of the others."""
    known, failed = [], []
    for topic in topics:
        found = image.topics.get(topic.name)
        count = 0 if found is None else len(found.partitions)
        there = [one for one in topic.partitions if 0 <= one.partition_index < count]
        missing = [one.partition_index for one in topic.partitions if not 0 <= one.partition_index < count]
        if missing:
            failed.append(_failed(topic.name, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if there:
            known.append(TxnOffsetCommitRequestTopic(name=topic.name, partitions=there))
    return known, failed


def _only(body: TxnOffsetCommitRequest, topics: list[TxnOffsetCommitRequestTopic]) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=body.transactional_id,
        group_id=body.group_id,
        producer_id=body.producer_id,
        producer_epoch=body.producer_epoch,
        generation_id=body.generation_id,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        topics=topics,
    )


def _failed(name: str, indexes: Iterable[int], code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=one, error_code=code) for one in indexes
        ],
    )


def _all_failed(
    topics: list[TxnOffsetCommitRequestTopic], code: ErrorCode
) -> list[TxnOffsetCommitResponseTopic]:
    return [_failed(topic.name, (one.partition_index for one in topic.partitions), code) for topic in topics]


def refuse(body: TxnOffsetCommitRequest, version: int, code: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=_all_failed(body.topics, code))


API = Api(
    ApiKey.TXN_OFFSET_COMMIT,
    versions=range(6),
    handle=handle,
    refuse=refuse,
    slices=(Slices(("topics", "partitions"), is_change=True),),
)
