"""What takes longer with the metadata log: syncing, cutting, starting anew, writing down what must be kept.

Each waits for the disk in the executor and changes state on the loop. What fails here is final: the kernel
may have dropped what it could not write, so nothing can be promised any more, and the error goes to the
quorum's owner.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.executor import Executor
from barnabas.raft.driver.metadata_log import MetadataLog, write_recovery_point
from barnabas.raft.facts import Election
from barnabas.raft.quorum_state import write_quorum_state
from barnabas.storage.flush import close, flush
from barnabas.storage.patience import PatientExecutor
from barnabas.storage.removal import remove_all
from barnabas.storage.truncation import restart_at, truncate


class LogWork:
    """The jobs of one metadata log. `Log.turn` keeps those apart that touch the same files."""

    def __init__(self, log: MetadataLog, executor: Executor, clock: Clock) -> None:
        self.log: Final = log
        # A lack of descriptors passes; the disk is all right.
        self.executor: Final = PatientExecutor(executor)
        self.clock: Final = clock

    async def sync(self) -> None:
        """Everything that is in the log now is on the disk then, unless the log was cut meanwhile."""
        async with self.log.log.turn():
            job = self.log.begin_sync()
            await self.executor.run(job.run)
            self.log.finish_sync(job)

    async def checkpoint(self, high_watermark: int) -> None:
        """Sync indexes and epochs as well, and write down that they are: a restart believes them."""
        await flush(self.log.log, self.executor)
        job = self.log.checkpoint_job(high_watermark)
        if job is not None:
            await self.executor.run(job)

    async def persist(self, election: Election, voters: Iterable[int]) -> None:
        log = self.log.log
        bases = tuple(log.bases)
        await self.executor.run(partial(write_quorum_state, log.fs, log.directory, election, voters))
        # The file is in the log's directory, which was synced for it.
        self.log.names_are_synced(bases)

    async def truncate(self, offset: int) -> None:
        log = self.log.log
        gone = await truncate(log, self.executor, offset, self._lower, self.clock.now_ms())
        await self._settle(gone)

    async def restart_at(self, offset: int) -> None:
        """Throw the log away, and go on with an empty one behind a snapshot."""
        log = self.log.log
        # A restart in the middle of it finds no segments, and must not take that for a loss.
        gone = await restart_at(log, self.executor, offset, lambda _: self._lower(0), self.clock.now_ms())
        await self._settle(gone)

    async def _settle(self, gone: list[str]) -> None:
        self.log.all_is_synced()
        # Nobody else reads this log by the names of its files, so they need not stay for a while.
        await self.executor.run(partial(remove_all, self.log.log.fs, gone))

    async def _lower(self, offset: int) -> None:
        log = self.log.log
        await self.executor.run(partial(write_recovery_point, log.fs, log.directory, offset))
        self.log.checkpoint_is(offset)

    async def close(self, high_watermark: int) -> None:
        """Leave the log so that the next start has nothing to mend."""
        await close(self.log.log, self.executor)
        self.log.all_is_synced()
        job = self.log.checkpoint_job(high_watermark)
        if job is not None:
            await self.executor.run(job)
