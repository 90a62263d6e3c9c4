"""The source with our own client: numbered records in every partition of the input, as source.py writes them.

A program of its own, see orders.py. How far it has come is in the same transactions, as offsets of a group
that has no members.
"""

import asyncio
import random
import time

from barnabas.client import ClientError, Consumer, TopicPartition
from support.eos_runs.journal import Journal
from support.eos_runs.making import EVERY_S, SOURCE_PARTS_ABORTED, SOURCE_RECORDS_MAX, Made
from support.eos_runs.orders import RECONNECT_MS_MAX, Orders, carry_out, told_to_leave
from support.eos_runs.own_transactions import OwnTransactions, run_in_loop
from support.eos_runs.records import INPUT, Mark


class OwnSource:
    """Made in a running loop."""

    def __init__(self, orders: Orders, journal: Journal) -> None:
        self._orders = orders
        self._journal = journal
        self._rng = random.Random(orders.seed)
        self._transactions = OwnTransactions(orders, journal)
        self._progress = Consumer(
            {
                "bootstrap.servers": orders.address,
                "group.id": orders.source_group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
            }
        )

    async def run(self) -> None:
        async with self._transactions.producer, self._progress:
            await self._transactions.serve()
            numbers = await self._find_numbers()
            begun_at = time.monotonic()
            while not told_to_leave():
                before = self._transactions.number
                numbers = await self._write_some(numbers, begun_at)
                if self._transactions.number != before:
                    begun_at = time.monotonic()
                await asyncio.sleep(EVERY_S)
        self._journal.write("left")

    async def _write_some(self, numbers: dict[int, int], since: float) -> dict[int, int]:
        """One transaction. The numbers that come next: the same again if it was aborted."""
        transactions, is_begun = self._transactions, False
        after = dict(numbers)
        try:
            async with transactions.producer.transaction():
                is_begun = True
                transactions.begun()
                for partition in range(self._orders.input_partitions):
                    for _ in range(self._rng.randrange(SOURCE_RECORDS_MAX)):
                        await self._write(partition, after[partition])
                        after[partition] += 1
                offsets = {(self._orders.input_topic, where): number for where, number in after.items()}
                if self._rng.random() < SOURCE_PARTS_ABORTED:
                    await transactions.abort_what_is_complete(offsets, self._orders.source_group)
                    return numbers
                await transactions.make_ready(offsets, self._orders.source_group)
            transactions.committed()
        except ClientError as refused:
            if not is_begun:
                await transactions.wait_after(refused, since)
                return numbers
            return after if await transactions.judge(refused, block_is_left=True) else numbers
        return after

    async def _write(self, partition: int, number: int) -> None:
        orders = self._orders
        mark = Mark(INPUT, orders.run, partition, number, orders.life, self._transactions.number)
        await self._transactions.send(orders.input_topic, Made(partition, mark.text(), partition, number))

    async def _find_numbers(self) -> dict[int, int]:
        places = [
            TopicPartition(self._orders.input_topic, each) for each in range(self._orders.input_partitions)
        ]
        found = await self._transactions.insist(lambda: self._progress.committed(places))
        return {tp.partition: 0 if at is None else at.offset for tp, at in found.items()}


if __name__ == "__main__":
    carry_out(lambda orders, journal: run_in_loop(lambda: OwnSource(orders, journal).run()))
