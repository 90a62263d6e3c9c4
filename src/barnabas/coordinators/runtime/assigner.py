"""Computes the target assignments of large groups in the executor, one at a time."""

import asyncio

from barnabas.base.executor import Executor
from barnabas.base.tasks import Tasks
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.host import ShardHost, State


class Assigner:
    """One instance serves all shards of a broker."""

    def __init__(self, executor: Executor, tasks: Tasks) -> None:
        self._executor = executor
        self._tasks = tasks
        # Held during a computation. FIFO, so that no group starves.
        self._turn = asyncio.Lock()
        # Exported as a metric.
        self.computed = 0

    def serve(self, host: ShardHost[GroupShard]) -> None:
        """Compute the assignments that groups of this shard request from now on."""
        host.shard.assigning.on_wanted = lambda: self._begin(host)

    def _begin(self, host: ShardHost[GroupShard]) -> None:
        self._tasks.start(self._compute(host))

    async def _compute(self, host: ShardHost[GroupShard]) -> None:
        assigning = host.shard.assigning
        wanted = assigning.wanted
        try:
            while wanted and host.state is State.ACTIVE:
                async with self._turn:
                    await self._assign(host, next(iter(wanted)))
        finally:
            # The next request for an assignment starts a new task.
            wanted.clear()

    async def _assign(self, host: ShardHost[GroupShard], group_id: str) -> None:
        assigning = host.shard.assigning
        job = assigning.begin(group_id)
        if job is not None:
            targets = await self._executor.run(job.compute)
            self.computed += 1
            # The shard may have been closed during the computation.
            if host.state is State.ACTIVE:
                host.run(lambda now: assigning.finish(job, targets, now))
        # Requests that came during the computation are dropped: later heartbeats repeat them.
        assigning.wanted.pop(group_id, None)
