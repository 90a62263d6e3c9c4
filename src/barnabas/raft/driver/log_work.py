"""Blocking operations on the metadata log: sync, truncate, restart at a snapshot, persist the election.

Each blocks on the disk in the executor and changes state on the loop. A failure is final, because the kernel
may have dropped the pages that it could not write; the error goes to the quorum's owner.
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
from barnabas.storage.removal import remove_all
from barnabas.storage.shortage import RetryingExecutor
from barnabas.storage.truncation import restart_at, truncate


class LogWork:
    """The operations on one metadata log. `Log.turn` serializes those on the same files."""

    def __init__(self, log: MetadataLog, executor: Executor, clock: Clock) -> None:
        self.log: Final = log
        # Retries on a shortage of descriptors, which is temporary.
        self.executor: Final = RetryingExecutor(executor)
        self.clock: Final = clock

    async def sync(self) -> None:
        """Make the current content of the log durable, unless it is truncated first."""
        async with self.log.log.turn():
            job = self.log.begin_sync()
            await self.executor.run(job.run)
            self.log.finish_sync(job)

    async def checkpoint(self, high_watermark: int) -> None:
        """Sync indexes and epochs, too, and write the recovery point, so that a restart trusts them."""
        await flush(self.log.log, self.executor)
        job = self.log.checkpoint_job(high_watermark)
        if job is not None:
            await self.executor.run(job)

    async def persist(self, election: Election, voters: Iterable[int]) -> None:
        log = self.log.log
        bases = tuple(log.bases)
        await self.executor.run(partial(write_quorum_state, log.fs, log.directory, election, voters))
        # Writing the file has synced the log's directory.
        self.log.names_are_synced(bases)

    async def truncate(self, offset: int) -> None:
        log = self.log.log
        gone = await truncate(log, self.executor, offset, self._lower, self.clock.now_ms())
        await self._settle(gone)

    async def restart_at(self, offset: int) -> None:
        """Replace the log by an empty one that starts at a snapshot."""
        log = self.log.log
        # Lower to 0: a crash in between leaves no segments, which recovery must not take for a loss.
        gone = await restart_at(log, self.executor, offset, lambda _: self._lower(0), self.clock.now_ms())
        await self._settle(gone)

    async def _settle(self, gone: list[str]) -> None:
        self.log.all_is_synced()
        # No reader opens these files by name, so remove them without a delay.
        await self.executor.run(partial(remove_all, self.log.log.fs, gone))

    async def _lower(self, offset: int) -> None:
        log = self.log.log
        await self.executor.run(partial(write_recovery_point, log.fs, log.directory, offset))
        self.log.checkpoint_is(offset)

    async def close(self, high_watermark: int) -> None:
        """Close the log so that the next start needs no recovery."""
        await close(self.log.log, self.executor)
        self.log.all_is_synced()
        job = self.log.checkpoint_job(high_watermark)
        if job is not None:
            await self.executor.run(job)
