"""The worker with our own client: it reads in a group, writes, and commits both together, as worker.py does.

A program of its own, see orders.py. A transaction is a block, as docs/guides/delivery.md has it, which goes
on over several batches. When partitions are revoked meanwhile, what was made of them is committed within the
callback; when they are lost, it is aborted. The rebalance comes while this process waits for records or has
found none, never between records and the next batch. In the first case the transaction may be open, so the
two take turns: whoever works with it has the turn.
"""

import asyncio
import random
import time

from barnabas.client import CallbackFailed, ClientError, Consumer, Message, TopicPartition
from support.eos_runs.journal import Journal
from support.eos_runs.making import PARTS_ABORTED, RECORDS_MAX, TRANSACTION_S_MAX, group_settings, make_of
from support.eos_runs.orders import RECONNECT_MS_MAX, Fatal, Orders, carry_out, told_to_leave
from support.eos_runs.own_transactions import OwnTransactions, run_in_loop


class OwnWorker:
    """Made in a running loop."""

    def __init__(self, orders: Orders, journal: Journal) -> None:
        self._orders = orders
        self._journal = journal
        self._rng = random.Random(orders.seed)
        self._consumer = Consumer(consumer_settings(orders))
        self._transactions = OwnTransactions(orders, journal)
        self._turn = asyncio.Lock()
        # Records were handed to this process, and it has not come for more since.
        self._has_records = False
        # Partitions that were read further than the group has committed, by a transaction that was aborted.
        self._ahead: set[TopicPartition] = set()

    async def run(self) -> None:
        async with self._transactions.producer, self._consumer:
            await self._transactions.serve()
            await self._consumer.subscribe(
                [self._orders.input_topic],
                on_assigned=self._assigned,
                on_revoked=self._revoked,
                on_lost=self._lost,
            )
            async with self._turn:
                await self._work()
            self._has_records = False
        self._journal.write("left")

    async def _work(self) -> None:
        messages: list[Message] = []
        begun_at = time.monotonic()
        while not told_to_leave():
            messages = messages or await self._read(self._orders.poll_ms)
            if not messages:
                continue
            before = self._transactions.number
            messages = await self._transact(messages, begun_at)
            if self._transactions.number != before:
                begun_at = time.monotonic()

    async def _read(self, wait_ms: float) -> list[Message]:
        """Records that nobody has made anything of; none if there are none, or if they came too early."""
        await self._go_back()
        self._has_records = False
        self._turn.release()
        try:
            found = await self._consumer.batch(RECORDS_MAX, wait_ms)
            self._has_records = bool(found)
        except CallbackFailed as failed:
            # What it was is this program's own: Fatal, or a rule that the client has broken.
            raise failed.__cause__ or failed from failed
        except ClientError as refused:
            raise Fatal(f"reading: {refused}") from refused
        finally:
            await self._turn.acquire()
        # A callback may have aborted: then these are not what comes after the committed ones.
        return [] if self._ahead else found

    async def _transact(self, messages: list[Message], since: float) -> list[Message]:
        """One transaction. Those of these messages, and of others, of which nothing was made yet."""
        transactions, is_begun = self._transactions, False
        try:
            async with transactions.producer.transaction():
                is_begun = True
                transactions.begun()
                messages = await self._fill(messages)
                if transactions.is_open:
                    await self._end()
            if transactions.is_open:
                transactions.committed()
        except ClientError as refused:
            if not is_begun:
                await transactions.wait_after(refused, since)
                return messages
            if not await transactions.judge(refused, block_is_left=True):
                self._must_go_back()
            return []
        finally:
            transactions.is_open = False
        return messages

    async def _fill(self, messages: list[Message]) -> list[Message]:
        """Until its time is over, or a callback has ended it: then what was read since is left."""
        records = 0
        ends_at = time.monotonic() + self._rng.uniform(0.0, TRANSACTION_S_MAX)
        while self._transactions.is_open:
            for message in messages:
                place = f"{message.tp} offset {message.offset}"
                made = make_of(message.value or b"", place, self._orders, self._transactions.number)
                await self._transactions.send(self._orders.output_topic, made)
            records += len(messages)
            left_s = ends_at - time.monotonic()
            if left_s <= 0 or records >= RECORDS_MAX:
                return []
            messages = await self._read(min(left_s * 1000, self._orders.poll_ms))
        return messages

    async def _end(self) -> None:
        """Within the block, whose end commits what is not aborted here."""
        if self._rng.random() < PARTS_ABORTED:
            await self._transactions.abort_what_is_complete(self._consumer.delivered, self._consumer)
            self._must_go_back()
        else:
            await self._transactions.make_ready(self._consumer.delivered, self._consumer)

    def _must_go_back(self) -> None:
        self._ahead = set(self._consumer.assignment)

    async def _go_back(self) -> None:
        """To where the group has committed, in every partition that is still here."""
        if not self._ahead:
            return
        committed = await self._transactions.insist(lambda: self._consumer.committed(self._ahead))
        for tp, at in committed.items():
            if at is None:
                self._consumer.seek_to_beginning(tp)
            else:
                self._consumer.seek(tp, at.offset)
        self._ahead.clear()

    # What the consumer calls

    def _assigned(self, tps: frozenset[TopicPartition]) -> None:
        self._journal.write("assigned", *sorted(tp.partition for tp in tps))

    async def _revoked(self, tps: frozenset[TopicPartition]) -> None:
        assert not self._has_records, f"{tps} are revoked while their records are in work"
        async with self._turn:
            transactions, delivered = self._transactions, self._consumer.delivered
            if transactions.is_open and not await transactions.commit(delivered, self._consumer):
                self._must_go_back()
            self._ahead -= tps
            self._journal.write("revoked", *sorted(tp.partition for tp in tps))

    async def _lost(self, tps: frozenset[TopicPartition]) -> None:
        assert not self._has_records, f"{tps} are lost while their records are in work"
        async with self._turn:
            if self._transactions.is_open:
                await self._transactions.abort()
                self._must_go_back()
            self._ahead -= tps
            self._journal.write("lost", *sorted(tp.partition for tp in tps))


def consumer_settings(orders: Orders) -> dict[str, object]:
    chosen: dict[str, object] = {
        "bootstrap.servers": orders.address,
        "group.id": orders.group,
        "group.protocol": orders.protocol,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.max.wait.ms": orders.poll_ms,
        "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
    }
    return chosen | group_settings(orders)


if __name__ == "__main__":
    carry_out(lambda orders, journal: run_in_loop(lambda: OwnWorker(orders, journal).run()))
