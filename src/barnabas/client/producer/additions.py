"""AddPartitionsToTxn, which version 1 of transactions requires before the first batch of a partition.

One request is in flight at a time and carries all partitions requested by then. A partition's batches wait in
its queue, which is scheduled once the coordinator has added the partition.
"""

import asyncio
from typing import TYPE_CHECKING

from barnabas.client.errors import ClientError, Closed, Refused
from barnabas.client.producer.partition_queue import PartitionQueue

if TYPE_CHECKING:
    from barnabas.client.producer.transactions import Transactions


class Additions:
    def __init__(self, transactions: "Transactions") -> None:
        self._transactions = transactions
        self._wanted: dict[PartitionQueue, None] = {}
        self._task: asyncio.Task[None] | None = None

    def want(self, queue: PartitionQueue) -> None:
        self._wanted[queue] = None
        if self._task is None:
            self._task = self._transactions.sender.run_beside(self._add())

    async def stop(self) -> None:
        """Stop adding partitions: a request after the end of the transaction would begin another one."""
        self._wanted.clear()
        if self._task is not None:
            # A request may be in flight. A new epoch makes it harmless.
            self._transactions.state.needs_epoch = True
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _add(self) -> None:
        try:
            while self._wanted:
                queues, self._wanted = list(self._wanted), {}
                await self._add_all(queues)
        finally:
            self._task = None

    async def _add_all(self, queues: list[PartitionQueue]) -> None:
        transactions, state = self._transactions, self._transactions.state
        identity = state.identity
        if not state.sends or identity is None:
            return
        tps = {queue.tp for queue in queues}
        state.may_exist = True
        try:
            await transactions.ask(
                "ADD_PARTITIONS_TO_TXN",
                lambda: transactions.requests.add_partitions(identity, tps),
                transactions.deadline(),
            )
        except Closed:
            return
        except ClientError as error:
            state.needs_epoch = True
            if isinstance(error, Refused):
                transactions.refused(error)
            else:
                transactions.must_abort(error)
            return
        state.exists = True
        state.partitions |= tps
        for queue in queues:
            if queue.batches:
                transactions.sender.schedule(queue)
