"""What is asked about transactions: the requests, and producers who remember what they were told."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.transaction_admin import DescribeTransactionsRequest, ListTransactionsRequest
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from differential.broker.batches import batch
from differential.broker.producers import init
from differential.broker.sending import produce
from differential.broker.talk import Talk

TRANSACTIONS = 1
ONE_REPLICA = {
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "offsets.topic.num.partitions": 1,
}
STATE_TOPIC, OFFSETS_TOPIC = "__transaction_state", "__consumer_offsets"
# The last versions of clients that tell the coordinator of their partitions themselves.
OLD_PRODUCE, OLD_ADD, OLD_END, OLD_COMMIT = 11, 3, 4, 4
# The ones that know a version 2 of transactions.
PRODUCE, ADD, END, COMMIT = 13, 5, 5, 5

NOT_FOUND = 105
Topics = Mapping[str, Iterable[int]]


def ready(talk: Talk, transactional_id: str = "any") -> None:
    """Wait until transactions are coordinated here: the first question makes their topic."""
    asked = FindCoordinatorRequest(key_type=TRANSACTIONS, coordinator_keys=[transactional_id])
    talk.until(asked, 4, lambda answer: answer.coordinators[0].error_code == 0)
    described = describe("nobody has this id")
    talk.until(described, 0, lambda answer: answer.transaction_states[0].error_code == NOT_FOUND)
    talk.until(init(), 5, lambda answer: answer.error_code == 0)


def describe(*transactional_ids: str) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=list(transactional_ids))


def listed(
    *states: str, producers: Iterable[int] = (), longer_ms: int = -1, pattern: str | None = None
) -> ListTransactionsRequest:
    return ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producers),
        duration_filter=longer_ms,
        transactional_id_pattern=pattern,
    )


def transaction(
    transactional_id: str, producer_id: int, epoch: int, topics: Topics, *, verify: bool = False
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        verify_only=verify,
        topics=[AddPartitionsToTxnTopic(name=name, partitions=list(rows)) for name, rows in topics.items()],
    )


def add(version: int, *transactions: AddPartitionsToTxnTransaction) -> AddPartitionsToTxnRequest:
    """In the form of that version: up to 3 there is one transaction, and nothing is only verified."""
    if version > OLD_ADD:
        return AddPartitionsToTxnRequest(transactions=list(transactions))
    (only,) = transactions
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=only.transactional_id,
        v3_and_below_producer_id=only.producer_id,
        v3_and_below_producer_epoch=only.producer_epoch,
        v3_and_below_topics=only.topics,
    )


def add_offsets(transactional_id: str, producer_id: int, epoch: int, group: str) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, group_id=group
    )


def end(transactional_id: str, producer_id: int, epoch: int, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=commit
    )


def commit_offsets(
    transactional_id: str,
    producer: tuple[int, int],
    group: str,
    topic: str,
    offset: int = 1,
    *partitions: int,
    member_id: str = "",
    generation: int = -1,
    instance_id: str | None = None,
    note: str | None = "",
) -> TxnOffsetCommitRequest:
    rows = [
        TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=note
        )
        for index in partitions or (0,)
    ]
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=rows)],
    )


def marker(
    producer_id: int,
    epoch: int,
    topics: Topics,
    *,
    commit: bool = True,
    coordinator_epoch: int = 0,
    version: int = 0,
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=list(rows)) for name, rows in topics.items()
        ],
    )


def markers(*rows: WritableTxnMarker) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=list(rows))


class Producer:
    """One transactional id, with the producer id and epoch that it was last given, and its sequences."""

    def __init__(self, talk: Talk, transactional_id: str, *, is_old: bool = False) -> None:
        self.talk = talk
        self.name = transactional_id
        self.is_old = is_old
        self.id = -1
        self.epoch = -1
        self._sequences: dict[tuple[str, int, int], int] = {}

    @property
    def pair(self) -> tuple[int, int]:
        return self.id, self.epoch

    def init(self, step: str, version: int = 5, timeout_ms: int = 60_000) -> Any:
        return self.heard(self.talk.ask(step, init(self.name, timeout_ms), version))

    def heard(self, answer: Any) -> Any:
        """Remember what it says."""
        if answer is not None and answer.error_code == 0 and answer.producer_id >= 0:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def add(self, step: str, topic: str, *partitions: int, version: int = OLD_ADD) -> Any:
        asked = transaction(self.name, self.id, self.epoch, {topic: partitions or (0,)})
        return self.talk.ask(step, add(version, asked), version)

    def batch(self, topic: str, partition: int, values: Sequence[bytes]) -> bytes:
        """The next one for this partition."""
        place = (topic, partition, self.epoch)
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + len(values)
        return batch(
            *values, at_ms=self.talk.base_ms, producer=(self.id, self.epoch, sequence), transactional=True
        )

    def send(
        self, step: str, topic: str, *values: bytes, topic_id: Uuid = ZERO_UUID, partition: int = 0
    ) -> Any:
        records = self.batch(topic, partition, values)
        request = produce(topic, records, topic_id=topic_id, partition=partition, transactional_id=self.name)
        return self.talk.ask(step, request, OLD_PRODUCE if self.is_old else PRODUCE)

    def end(self, step: str, commit: bool, version: int | None = None) -> Any:
        used = version if version is not None else OLD_END if self.is_old else END
        return self.heard(self.talk.ask(step, end(self.name, self.id, self.epoch, commit), used))

    def settled(self) -> None:
        """Wait until nothing is being decided: the markers are written."""
        self.talk.until(
            describe(self.name),
            0,
            lambda answer: "Prepare" not in answer.transaction_states[0].transaction_state,
        )

    def ended(self, step: str, commit: bool, version: int | None = None) -> Any:
        """End it, and wait for the markers."""
        answer = self.end(step, commit, version)
        self.settled()
        return answer

    def describe(self, step: str) -> Any:
        return self.talk.ask(step, describe(self.name))


def started(talk: Talk, step: str, transactional_id: str, *, is_old: bool = False) -> Producer:
    """One that has its id and epoch."""
    producer = Producer(talk, transactional_id, is_old=is_old)
    producer.init(step)
    return producer
