"""A transactional producer on the wire, in either version of transactions, that keeps nothing to itself."""

import asyncio
from typing import Any, NamedTuple

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.records.builder import build_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import CONTROL_BIT, read_header
from barnabas.server.broker import Broker
from support.stories import Client, connect
from support.wire.requests import TIMEOUT_MS, fetched

TIME_MS = 1_767_225_600_000
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_FETCH_VERSION = 12
_NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


class Versions(NamedTuple):
    """Which version of each request belongs to one of transactions."""

    produce: int
    end: int
    offsets: int
    adds: bool


V1 = Versions(produce=11, end=4, offsets=4, adds=False)
V2 = Versions(produce=12, end=5, offsets=5, adds=True)


class TxnProducer:
    """One transactional id. What a client library would retry is retried by start() only."""

    def __init__(self, client: Client, transactional_id: str, versions: Versions = V2) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.versions = versions
        self.id = self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    @classmethod
    async def of(
        cls, broker: Broker, transactional_id: str, versions: Versions = V2, *, timeout_ms: int = 60_000
    ) -> "TxnProducer":
        producer = cls(await connect(broker), transactional_id, versions)
        await producer.start(timeout_ms)
        return producer

    async def start(self, timeout_ms: int = 60_000) -> None:
        asked = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id])
        while (await self.client.asked(asked, 4)).coordinators[0].error_code:
            await asyncio.sleep(0.05)
        while (code := await self.init(timeout_ms)) in _NOT_YET:
            await asyncio.sleep(0.05)
        assert code is ErrorCode.NONE, code.name

    async def init(self, timeout_ms: int = 60_000, *, version: int = 5) -> ErrorCode:
        answer = await self.client.asked(
            InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms),
            version,
        )
        if answer.error_code == 0:
            self._now(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    def _now(self, producer_id: int, epoch: int) -> None:
        if (self.id, self.epoch) != (producer_id, epoch):
            self.id, self.epoch = producer_id, epoch
            self._sequences.clear()

    async def add(self, topic: str, *partitions: int) -> ErrorCode:
        """Put partitions into the transaction, as clients of the first version do."""
        codes = set((await self.add_each(topic, *partitions)).values())
        assert len(codes) == 1, codes
        return codes.pop()

    async def add_each(self, topic: str, *partitions: int) -> dict[int, ErrorCode]:
        answer = await self.client.asked(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
            ),
            3,
        )
        (result,) = answer.results_by_topic_v3_and_below
        return {
            one.partition_index: ErrorCode(one.partition_error_code) for one in result.results_by_partition
        }

    async def send(
        self, topic: str, *values: bytes, partition: int = 0, epoch: int | None = None
    ) -> ErrorCode:
        """One batch. With the first version the partition must have been added."""
        return ErrorCode((await self.sent(topic, *values, partition=partition, epoch=epoch)).error_code)

    async def sent(self, topic: str, *values: bytes, partition: int = 0, epoch: int | None = None) -> Any:
        sequence = self._sequences.get((topic, partition), 0)
        request = self.produce_request(topic, *values, partition=partition, epoch=epoch, sequence=sequence)
        answer = await self.client.asked(request, self.versions.produce)
        result = answer.responses[0].partition_responses[0]
        if result.error_code == 0:
            self._sequences[topic, partition] = sequence + len(values)
        return result

    def produce_request(
        self, topic: str, *values: bytes, partition: int = 0, epoch: int | None = None, sequence: int = 0
    ) -> ProduceRequest:
        data = build_batch(
            [(TIME_MS, None, value, ()) for value in values],
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
            transactional=True,
        )
        sent = PartitionProduceData(index=partition, records=data)
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=topic, partition_data=[sent])],
        )

    def end_request(self, commit: bool, epoch: int | None = None) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            committed=commit,
        )

    async def begin_and_send(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """The first batch of a transaction for a partition, whichever the version."""
        if not self.versions.adds:
            while (code := await self.add(topic, partition)) is ErrorCode.CONCURRENT_TRANSACTIONS:
                await asyncio.sleep(0.02)
            assert code is ErrorCode.NONE, code.name
        code = await self.send(topic, *values, partition=partition)
        assert code is ErrorCode.NONE, code.name

    async def commit_offset(self, group: str, topic: str, offset: int, partition: int = 0) -> ErrorCode:
        """Without a membership, as a part of the transaction."""
        if not self.versions.adds:
            added = await self.client.asked(
                AddOffsetsToTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=self.id,
                    producer_epoch=self.epoch,
                    group_id=group,
                ),
                3,
            )
            if added.error_code:
                return ErrorCode(added.error_code)
        place = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        answer = await self.client.asked(
            TxnOffsetCommitRequest(
                transactional_id=self.transactional_id,
                group_id=group,
                producer_id=self.id,
                producer_epoch=self.epoch,
                topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[place])],
            ),
            self.versions.offsets,
        )
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    async def end(self, commit: bool, *, epoch: int | None = None) -> ErrorCode:
        answer = await self.client.asked(self.end_request(commit, epoch), self.versions.end)
        if answer.error_code == 0 and self.versions.adds:
            self._now(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    async def commit(self) -> None:
        code = await self.end(True)
        assert code is ErrorCode.NONE, code.name

    async def abort(self) -> None:
        code = await self.end(False)
        assert code is ErrorCode.NONE, code.name


async def fetch(
    client: Client, topic: str, offset: int = 0, *, partition: int = 0, isolation: int = READ_COMMITTED
) -> PartitionData:
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=50 << 20,
        isolation_level=isolation,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )
    return fetched(await client.asked(request, _FETCH_VERSION))


async def seen(
    client: Client, topic: str, *, partition: int = 0, isolation: int = READ_COMMITTED
) -> list[bytes | None]:
    """The values that a consumer of that isolation sees, now."""
    found: list[bytes | None] = []
    offset = 0
    while True:
        data = await fetch(client, topic, offset, partition=partition, isolation=isolation)
        assert data.error_code == 0, ErrorCode(data.error_code).name
        batches = whole_batches(bytes(data.records or b""))
        if not batches:
            return found
        aborted = {(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()}
        for batch in batches:
            header = read_header(batch)
            offset = header.base_offset + header.last_offset_delta + 1
            if not header.attributes & CONTROL_BIT and not _is_aborted(batches, batch, aborted):
                found += [record.value for record in decode_batch(batch)]


def whole_batches(data: bytes) -> list[bytes]:
    batches, at = [], 0
    while at + 12 <= len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        if at + size > len(data):
            break
        batches.append(data[at : at + size])
        at += size
    return batches


def _is_aborted(batches: list[bytes], batch: bytes, aborted: set[tuple[int, int]]) -> bool:
    """Whether a transaction that was aborted has this batch: it began before, and its marker comes behind."""
    header = read_header(batch)
    for producer_id, first_offset in aborted:
        if producer_id != header.producer_id or header.base_offset < first_offset:
            continue
        ends = [
            read_header(one).base_offset
            for one in batches
            if read_header(one).producer_id == producer_id
            and read_header(one).attributes & CONTROL_BIT
            and read_header(one).base_offset >= first_offset
        ]
        if not ends or header.base_offset < min(ends):
            return True
    return False
