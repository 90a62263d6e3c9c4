"""A transactional client whose messages may be late: each travels alone, and the client gives up waiting.

It does what client libraries do: what is not answered in time is sent again, over another connection. The
message that was late still arrives, and nobody knows when. The journal says what the client was told.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
)
from barnabas.records.builder import build_batch
from barnabas.server.broker import Broker
from support.stories import connect
from support.txn.wire import TIME_MS, TxnProducer, Versions
from support.wire.requests import TIMEOUT_MS

PATIENCE_S = 0.2
LATE_S = (0.21, 3.0)
LATE_SHARE = 0.15
ATTEMPTS_MAX = 40
_AGAIN = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS)


@dataclass
class Told:
    """One transaction as its client knows it. `outcome` is None if it was told of an error."""

    values: list[bytes] = field(default_factory=list)
    outcome: bool | None = None


class Surrender(Exception):
    """An error with which a client ends its transaction, and does not know how it ended."""


class TornClient:
    """Runs transactions one after another on one transactional id."""

    def __init__(self, broker: Broker, versions: Versions, rng: Random) -> None:
        self._broker = broker
        self._versions = versions
        self._rng = rng
        self._producer: TxnProducer | None = None
        self._sequences: dict[int, int] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self.journal: list[Told] = []

    async def run(self, topic: str, transactions: int) -> None:
        await self._start()
        for number in range(transactions):
            told = Told()
            self.journal.append(told)
            try:
                await self._transaction(topic, number, told)
            except Surrender:
                await self._start()
        for task in list(self._late):
            await task

    async def _start(self) -> None:
        self._producer = await TxnProducer.of(self._broker, "torn", self._versions)
        self._sequences.clear()

    async def _transaction(self, topic: str, number: int, told: Told) -> None:
        for at in range(4):
            value = b"%d-%d" % (number, at)
            told.values.append(value)
            await self._produce(topic, at % 2, value)
        commit = self._rng.random() < 0.7
        await self._end(commit)
        told.outcome = commit

    # Requests

    async def _produce(self, topic: str, partition: int, value: bytes) -> None:
        assert self._producer is not None
        producer = self._producer
        if not self._versions.adds:
            await self._insist(lambda: self._add(topic, partition))
        sequence = self._sequences.get(partition, 0)
        data = build_batch(
            [(TIME_MS, None, value, ())],
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        sent = PartitionProduceData(index=partition, records=data)
        request = ProduceRequest(
            transactional_id=producer.transactional_id,
            acks=-1,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=topic, partition_data=[sent])],
        )

        async def once() -> ErrorCode | None:
            answer = await self._ask(request, self._versions.produce)
            return (
                None if answer is None else ErrorCode(answer.responses[0].partition_responses[0].error_code)
            )

        await self._insist(once)
        self._sequences[partition] = sequence + 1

    async def _add(self, topic: str, partition: int) -> ErrorCode | None:
        assert self._producer is not None
        answer = await self._ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._producer.transactional_id,
                v3_and_below_producer_id=self._producer.id,
                v3_and_below_producer_epoch=self._producer.epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[partition])],
            ),
            3,
        )
        if answer is None:
            return None
        result = answer.results_by_topic_v3_and_below[0].results_by_partition[0]
        return ErrorCode(result.partition_error_code)

    async def _end(self, commit: bool) -> None:
        assert self._producer is not None
        producer = self._producer
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=commit,
        )

        async def once() -> ErrorCode | None:
            answer = await self._ask(request, self._versions.end)
            if answer is None:
                return None
            if answer.error_code == 0 and self._versions.adds:
                # Each epoch begins to count anew.
                producer.id, producer.epoch = answer.producer_id, answer.producer_epoch
                self._sequences.clear()
            return ErrorCode(answer.error_code)

        await self._insist(once)

    # The way there

    async def _insist(self, once: Any) -> None:
        for _ in range(ATTEMPTS_MAX):
            code = await once()
            if code is ErrorCode.NONE:
                return
            if code is not None and code not in _AGAIN:
                raise Surrender(code.name)
            await asyncio.sleep(0.02)
        raise Surrender("no end of it")

    async def _ask(self, request: object, version: int) -> Any:
        """The answer, or None if it takes too long. The request arrives all the same, at some time."""
        delay_s = self._rng.uniform(*LATE_S) if self._rng.random() < LATE_SHARE else 0.0
        travel = self._travel(delay_s, request, version)
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(travel)
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        done, _ = await asyncio.wait((task,), timeout=PATIENCE_S)
        return task.result() if done else None

    def _travel(self, delay_s: float, request: object, version: int) -> Coroutine[Any, Any, Any]:
        async def travel() -> Any:
            await asyncio.sleep(delay_s)
            client = await connect(self._broker)
            try:
                return await client.asked(request, version)
            finally:
                client.close()

        return travel()


def torn(journal: list[Told], seen: set[bytes]) -> list[str]:
    """What is wrong: a part of a transaction is there, or the client was told something else."""
    wrong = []
    for number, told in enumerate(journal):
        there = [value for value in told.values if value in seen]
        if there and len(there) < len(told.values):
            wrong.append(f"transaction {number} is torn: {there} of {told.values}")
        elif told.outcome is True and not there:
            wrong.append(f"transaction {number} was told to be committed, and is not there")
        elif told.outcome is False and there:
            wrong.append(f"transaction {number} was told to be aborted, and is there")
    return wrong
