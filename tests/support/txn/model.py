"""What producers ask of a coordinator of transactions, and how tests read its answers.

The shard that answers, with its log, markers and time, is in txn_model_shard.py. Producers that go on by
themselves, and the partitions that they write to, are in txn_model_clients.py; what must hold of all of them
when everything is over is in txn_model_scene.py.
"""

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.adding import decide_add_offsets, decide_add_or_verify, decide_add_partitions
from barnabas.coordinators.txn.ending import decide_end
from barnabas.coordinators.txn.initializing import decide_init
from barnabas.coordinators.txn.state import TxnProducer
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from support.txn.model_shard import FIRST_ID, Asked, HostedShard

# The first version of AddPartitionsToTxn that is theirs.
BROKERS_FROM = 4

__all__ = ["FIRST_ID", "Asked", "TxnWorld", "codes", "given_to", "refused"]


class TxnWorld(HostedShard):
    """A coordinator with one shard. A producer is told by its id and epoch; `t` is the transactional id."""

    def init(
        self,
        transactional_id: str | None = "t",
        *,
        version: int = 5,
        timeout_ms: int = 60_000,
        was: tuple[int, int] = (-1, -1),
        two_phase: bool = False,
        keep: bool = False,
    ) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=was[0],
            producer_epoch=was[1],
            enable2_pc=two_phase,
            keep_prepared_txn=keep,
        )
        shard = self.shard
        answer: InitProducerIdResponse = self.ask_with_id(
            lambda new_id, to, now: decide_init(shard.table, request, version, new_id, to, now)
        ).answer
        return answer

    def add(
        self,
        producer: tuple[int, int],
        *partitions: TopicPartition,
        transactional_id: str = "t",
        version: int = 3,
        verify: bool = False,
    ) -> AddPartitionsToTxnResult:
        asked = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify,
            topics=[AddPartitionsToTxnTopic(name=tp.topic, partitions=[tp.partition]) for tp in partitions],
        )
        shard = self.shard
        answer: AddPartitionsToTxnResult = self.ask(
            lambda to, now: decide_add_partitions(shard.table, asked, version, to, now)
        )
        if answer is not None and (verify or version >= BROKERS_FROM):
            # A leader that is here is told the same, and what it adds is there already.
            whose = TxnProducer(transactional_id, *producer)
            told = self.ask(
                lambda to, now: decide_add_or_verify(shard.table, whose, partitions, not verify, to, now)
            )
            assert told == dict(zip(partitions, codes(answer), strict=True)), (told, answer)
        return answer

    def add_offsets(
        self, producer: tuple[int, int], partition: TopicPartition, *, version: int = 3
    ) -> AddOffsetsToTxnResponse:
        request = AddOffsetsToTxnRequest(
            transactional_id="t", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
        )
        shard = self.shard
        answer: AddOffsetsToTxnResponse = self.ask(
            lambda to, now: decide_add_offsets(shard.table, request, version, partition, to, now)
        )
        return answer

    def end(
        self,
        producer: tuple[int, int],
        *,
        commit: bool = True,
        version: int = 5,
        transactional_id: str = "t",
    ) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        shard = self.shard
        answer: EndTxnResponse = self.ask_with_id(
            lambda new_id, to, now: decide_end(shard.table, request, version, new_id, to, now)
        ).answer
        return answer


def given_to(answer: InitProducerIdResponse | EndTxnResponse) -> tuple[int, int]:
    """The producer id and epoch of an answer without an error."""
    assert answer.error_code == ErrorCode.NONE, answer
    return answer.producer_id, answer.producer_epoch


def refused(answer: InitProducerIdResponse | EndTxnResponse) -> ErrorCode:
    """The code of an answer that tells nothing else."""
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1), answer
    return ErrorCode(answer.error_code)


def codes(result: AddPartitionsToTxnResult) -> list[int]:
    """The code of each partition, in the order asked."""
    return [one.partition_error_code for topic in result.topic_results for one in topic.results_by_partition]
