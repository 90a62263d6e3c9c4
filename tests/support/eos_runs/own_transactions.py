"""A transactional producer of our own client, with the errors handled as docs/guides/client.md asks.

What may be tried again is tried again, and what asks for an abort is aborted. What is unknown is asked for
until it is known. What is to be given up ends the process: it is started again under the same transactional
id. Every step is in the journal.
"""

import asyncio
import faulthandler
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from barnabas.client import (
    ClientError,
    Consumer,
    OffsetAndMetadata,
    OutcomeUnknown,
    Producer,
    Remedy,
    TransactionError,
)
from support.eos_runs.journal import Journal
from support.eos_runs.making import (
    CALL_TIMEOUT_S,
    LINGER_MS,
    PATIENCE_S,
    TRY_AGAIN_AFTER_S,
    Made,
    Written,
    hesitation_s,
)
from support.eos_runs.orders import RECONNECT_MS_MAX, Fatal, Orders

# So long a producer waits for an answer before it says that it does not know. In the shorter time no broker
# comes back that was killed.
WAITS_S = (0.3, CALL_TIMEOUT_S)

Found = TypeVar("Found")
Offsets = Mapping[tuple[str, int], int | OffsetAndMetadata]


class OwnTransactions:
    """One at a time, begun by `async with producer.transaction()`. Made in a running loop."""

    def __init__(self, orders: Orders, journal: Journal) -> None:
        self._journal = journal
        self._rng = random.Random(orders.seed)
        self.producer = Producer(producer_settings(orders, wait_s=self._rng.choice(WAITS_S)))
        self.number = 0
        self.is_open = False
        self._written = Written()

    async def serve(self) -> None:
        """Take the id over: what another process left open under it is ended before this returns."""
        await self.insist(self.producer.init_transactions)
        self._journal.write("serving")

    # Within the block

    def begun(self) -> None:
        self.number += 1
        self.is_open = True

    async def send(self, topic: str, made: Made) -> None:
        self._written.add(made.of, made.number)
        await self.producer.send(topic, made.value, partition=made.to)

    async def make_ready(self, offsets: Offsets, group: Consumer | str) -> None:
        """The next step is to commit."""
        self._tell_written()
        await self.producer.send_offsets_to_transaction(offsets, group)
        await asyncio.sleep(hesitation_s(self._rng))
        self._journal.write("committing", self.number)

    async def abort_what_is_complete(self, offsets: Offsets, group: Consumer | str) -> None:
        """First its records and offsets get into the logs: there is something that must not be seen."""
        self._tell_written()
        await self.producer.flush()
        await self.producer.send_offsets_to_transaction(offsets, group)
        await self.producer.abort_transaction()
        self._ended("aborted")

    async def commit(self, offsets: Offsets, group: Consumer | str) -> bool:
        """In single calls, for a callback. Whether it is committed: else it is aborted."""
        try:
            await self.make_ready(offsets, group)
            await self.producer.commit_transaction()
        except ClientError as refused:
            return await self.judge(refused, block_is_left=False)
        self.committed()
        return True

    async def abort(self) -> None:
        self._tell_written()
        await self.insist(self.producer.abort_transaction)
        self._ended("aborted")

    # After the block

    def committed(self) -> None:
        self._ended("committed")

    async def judge(self, refused: ClientError, *, block_is_left: bool) -> bool:
        """Whether it is committed: else it is aborted now. A block that was left has aborted by itself."""
        self._journal.write("trouble", refused)
        # What the abort met, if the error itself is not about transactions.
        notes = getattr(refused, "__notes__", [])
        if isinstance(refused, OutcomeUnknown):
            return await self._ask_again(refused)
        if _gives_up(refused) or (block_is_left and notes):
            raise Fatal(" ".join([str(refused), *notes])) from refused
        if block_is_left:
            self._tell_written()
            self._ended("aborted")
        else:
            await self.abort()
        return False

    async def _ask_again(self, unknown: OutcomeUnknown) -> bool:
        if unknown.commit:
            try:
                await self.insist(self.producer.commit_transaction)
            except TransactionError as refused:
                # Now it is known: it was not committed.
                self._journal.write("trouble", refused)
            else:
                self.committed()
                return True
        await self.abort()
        return False

    async def insist(self, call: Callable[[], Awaitable[Found]]) -> Found:
        """Ask until there is an answer. TransactionError if it is to abort; what else it is, is fatal."""
        since = time.monotonic()
        while True:
            try:
                return await call()
            except ClientError as refused:
                if isinstance(refused, TransactionError) and refused.remedy is Remedy.ABORT:
                    raise
                await self.wait_after(refused, since)

    async def wait_after(self, refused: ClientError, since: float) -> None:
        """Comes back if the same may be tried again."""
        is_unknown = isinstance(refused, OutcomeUnknown)
        if not (is_unknown or refused.retriable) or time.monotonic() > since + PATIENCE_S:
            raise Fatal(str(refused)) from refused
        self._journal.write("trouble", refused)
        await asyncio.sleep(TRY_AGAIN_AFTER_S)

    def _tell_written(self) -> None:
        self._written.tell(self._journal, self.number)

    def _ended(self, how: str) -> None:
        self._journal.write(how, self.number)
        self.is_open = False


def _gives_up(refused: ClientError) -> bool:
    return isinstance(refused, TransactionError) and refused.remedy is Remedy.GIVE_UP


def producer_settings(orders: Orders, *, wait_s: float) -> dict[str, object]:
    return {
        "bootstrap.servers": orders.address,
        "transactional.id": orders.transactional_id,
        "transaction.timeout.ms": orders.transaction_timeout_ms,
        "max.block.ms": round(wait_s * 1000),
        "linger.ms": LINGER_MS,
        "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
    }


def run_in_loop(program: Callable[[], Awaitable[None]]) -> None:
    """Whoever waits for this process in vain gets its tasks beside its threads: see own_orders()."""

    async def run() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _show_tasks)
        faulthandler.register(signal.SIGUSR1, all_threads=True, chain=True)
        await program()

    asyncio.run(run())


def _show_tasks() -> None:
    for task in asyncio.all_tasks():
        task.print_stack(file=sys.stderr)
