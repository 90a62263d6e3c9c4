"""Periodic maintenance of logs: flush, checkpoints, retention, compaction, producer expiry, file removal.

One task for each, all owned by run(). A failing disk takes only its directory offline. A log that cannot be
compacted is reported and skipped until the next start.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final

from barnabas.base.faults import report_fault
from barnabas.base.tasks import keep_running, together
from barnabas.base.values import value
from barnabas.storage.cleaner.build import KeysDoNotFit
from barnabas.storage.cleaner.clean import clean, dirty_log
from barnabas.storage.cleaner.facts import CleanedTooLarge, CleaningStopped
from barnabas.storage.cleaner.pick import Candidate, weigh
from barnabas.storage.errors import CorruptLog, DiskFull, StorageError
from barnabas.storage.log import Log
from barnabas.storage.manager import LogManager
from barnabas.storage.removal import remove_all, retain
from barnabas.storage.warming import warmed

logger = logging.getLogger(__name__)

# Delay before a failed file removal is retried.
REMOVAL_RETRY_MS: Final = 60_000

_FOREVER: Final = 0x7FFFFFFFFFFFFFFF


@value(kw_only=True)
class UpkeepSettings:
    """Intervals and limits, with the names and defaults of Kafka's broker settings."""

    # How often flush.ms is checked (Kafka: log.flush.scheduler.interval.ms).
    flush_check_ms: int = 1_000
    # The lowest of log.flush.offset.checkpoint.interval.ms, log.flush.start.offset.checkpoint.interval.ms and
    # replica.high.watermark.checkpoint.interval.ms, because all checkpoints are written in one round.
    checkpoint_ms: int = 60_000
    # log.initial.task.delay.ms: the delay before the first round of each task.
    initial_delay_ms: int = 30_000
    # log.retention.check.interval.ms
    retention_check_ms: int = 300_000
    # log.cleaner.enable, log.cleaner.backoff.ms, log.cleaner.dedupe.buffer.size
    cleaner_enable: bool = True
    cleaner_backoff_ms: int = 15_000
    cleaner_map_bytes: int = 128 * 1024 * 1024
    # producer.id.expiration.check.interval.ms and producer.id.expiration.ms
    producer_check_ms: int = 600_000
    producer_expiration_ms: int = 86_400_000
    # How often `.deleted` files are checked for removal.
    removal_check_ms: int = 1_000


class Upkeep:
    """The maintenance tasks of one log manager. Each method does one round; run() schedules them."""

    def __init__(self, manager: LogManager, settings: UpkeepSettings, *, secret: bytes) -> None:
        self.manager: Final = manager
        # May be replaced at run time; the next round uses the new settings.
        self.settings = settings
        # For the cleaner's key hash, so that clients cannot choose colliding keys.
        self._secret = secret
        # Logs that are not compacted before the next start, and why.
        self.uncleanable: dict[Log, str] = {}
        # `.deleted` files, each with the time of its removal.
        self._marked: list[tuple[int, list[str]]] = []
        self._flushed_ms: dict[Log, int] = {}
        self._due: dict[Log, None] = {}
        self._wake = asyncio.Event()
        manager.on_log.append(self._watch)
        manager.on_gone.append(self._forget)
        for log in manager.logs.values():
            self._watch(log)

    def _watch(self, log: Log) -> None:
        log.on_flush_due = self._flush_is_due

    def _forget(self, log: Log) -> None:
        """Drop all references to a deleted log."""
        log.on_flush_due = None
        self._due.pop(log, None)
        self._flushed_ms.pop(log, None)
        self.uncleanable.pop(log, None)

    def _flush_is_due(self, log: Log) -> None:
        self._due[log] = None
        self._wake.set()

    async def run(self) -> None:
        """Run all maintenance tasks until cancelled."""
        chores: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "flush": self._flush_when_due,
            "flush by age": self._every(lambda: self.settings.flush_check_ms, self.flush_old),
            "checkpoints": self._every(lambda: self.settings.checkpoint_ms, self.write_checkpoints),
            "retention": self._every(lambda: self.settings.retention_check_ms, self.enforce_retention),
            "producer expiry": self._every(lambda: self.settings.producer_check_ms, self.expire_producers),
            "removal": self._every(lambda: self.settings.removal_check_ms, self.remove_marked),
        }
        if self.settings.cleaner_enable:
            chores["cleaner"] = self._every(lambda: self.settings.cleaner_backoff_ms, self.clean_all)
        # A failed task is restarted; the others continue.
        await together(*(keep_running(name, chore) for name, chore in chores.items()))

    def _every(
        self, interval_ms: Callable[[], int], chore: Callable[[], Awaitable[object]]
    ) -> Callable[[], Coroutine[Any, Any, None]]:
        async def run() -> None:
            await asyncio.sleep(min(interval_ms(), self.settings.initial_delay_ms) / 1000)
            while True:
                await chore()
                await asyncio.sleep(interval_ms() / 1000)

        return run

    # Flush

    async def _flush_when_due(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.flush_due()

    async def flush_due(self) -> None:
        """Flush the logs with a finished segment or flush.messages unflushed records."""
        due, self._due = self._due, {}
        for log in due:
            await self._flush(log)

    async def flush_old(self) -> None:
        """Flush the logs with records unflushed for flush.ms."""
        now_ms = self.manager.clock.monotonic_ms()
        for log in self._logs():
            limit = log.config.flush_ms
            if limit == _FOREVER or log.end_offset == log.recovery_point:
                continue
            if now_ms - self._flushed_ms.setdefault(log, now_ms) >= limit:
                await self._flush(log)

    async def _flush(self, log: Log) -> None:
        if log.closed:
            return
        try:
            await self.manager.flush(log)
        except StorageError as error:
            self._report("flush failed", log, error)
            return
        except Exception as error:
            report_fault(logger, error, "flush failed tp=%s", log.tp)
            return
        self._flushed_ms[log] = self.manager.clock.monotonic_ms()

    # Checkpoints and expiry

    async def write_checkpoints(self) -> None:
        for directory in self.manager.directories:
            if directory.offline is None:
                try:
                    await self.manager.write_checkpoints(directory)
                except DiskFull:
                    # Logged by LogManager. The next round tries again.
                    continue
                except StorageError as error:
                    logger.error("checkpoints not written error=%s", error)
                except Exception as error:
                    report_fault(logger, error, "checkpoints not written path=%s", directory.path)

    async def expire_producers(self) -> None:
        """Forget inactive producers."""
        now_ms, after_ms = self.manager.clock.now_ms(), self.settings.producer_expiration_ms
        for log in self._logs():
            try:
                log.producers.expire(now_ms, after_ms=after_ms)
            except Exception as error:
                report_fault(logger, error, "producers not expired tp=%s", log.tp)

    # Retention and removal

    async def enforce_retention(self) -> None:
        """Apply retention to all logs."""
        for log in self._logs():
            # Compacted logs too: segments below their log start can be deleted.
            await self._guarded(log, self._retain(log))

    async def _retain(self, log: Log) -> None:
        self._mark(log, await retain(log, self.manager.executor, self.manager.clock.now_ms()))

    def _mark(self, log: Log, paths: list[str]) -> None:
        if paths:
            at = self.manager.clock.monotonic_ms() + log.config.file_delete_delay_ms
            self._marked.append((at, paths))

    async def truncate(self, log: Log, offset: int) -> None:
        """Truncate a log; its files are removed with the others."""
        self._mark(log, await self.manager.truncate(log, offset))

    async def remove_marked(self) -> None:
        """Remove the files and directories whose delay is over."""
        now_ms = self.manager.clock.monotonic_ms()
        ripe = [path for at, paths in self._marked if at <= now_ms for path in paths]
        self._marked = [(at, paths) for at, paths in self._marked if at > now_ms]
        if ripe:
            try:
                await self.manager.executor.run(partial(remove_all, self.manager.fs, ripe))
            except OSError as error:
                logger.error("files not removed error=%s", error)
                self._marked.append((now_ms + REMOVAL_RETRY_MS, ripe))
        await self.manager.remove_doomed()

    # Compaction

    async def clean_all(self) -> None:
        """Compact logs, the dirtiest first, until none is worth it."""
        await self._write_points_of_compacted()
        # A log that changed during its run, so that the run made no progress, waits for the next round.
        waiting: set[Log] = set()
        while True:
            found = await self._dirtiest(waiting)
            if found is None:
                return
            log, candidate = found
            await self._guarded(log, self._clean(log, candidate))
            if self.manager.clean_offsets.get(log.tp, -1) <= candidate.dirty_start:
                waiting.add(log)

    async def _write_points_of_compacted(self) -> None:
        """Write recovery points first, because only data below the written ones is compacted."""
        manager, points = self.manager, self.manager.written_points
        compacted = [log for log in self._logs() if log.config.compacts]
        behind = [log for log in compacted if points.get(log.tp, 0) < log.recovery_point]
        for directory in {manager.home(log).path: manager.home(log) for log in behind}.values():
            try:
                await self.manager.write_recovery_points(directory)
            except DiskFull:
                continue
            except StorageError as error:
                logger.error("checkpoints not written error=%s", error)

    async def _dirtiest(self, waiting: set[Log]) -> tuple[Log, Candidate] | None:
        now_ms = self.manager.clock.now_ms()
        best: tuple[Log, Candidate] | None = None
        for log in self._logs():
            if not log.config.compacts or len(log.segments) < 2 or log in self.uncleanable or log in waiting:
                continue
            candidate = await self._weigh(log, now_ms)
            if candidate is None or not candidate.is_worth_it:
                continue
            if best is None or candidate.dirty_ratio > best[1].dirty_ratio:
                best = (log, candidate)
        return best

    async def _weigh(self, log: Log, now_ms: int) -> Candidate | None:
        manager = self.manager
        facts = partial(
            dirty_log,
            log,
            checkpoint=manager.clean_offsets.get(log.tp),
            flushed=manager.written_points.get(log.tp, 0),
        )
        try:
            return weigh(await warmed(log, manager.executor, facts), now_ms)
        except OSError as error:
            self._report("log not checked for compaction", log, manager.failed(log, error))
        except StorageError as error:
            self._give_up(log, error)
        except Exception as error:
            report_fault(logger, error, "cleaning failed tp=%s", log.tp)
            self.uncleanable[log] = repr(error)
        return None

    async def _clean(self, log: Log, candidate: Candidate) -> None:
        manager = self.manager
        try:
            result = await clean(
                log,
                manager.executor,
                candidate,
                map_bytes=self.settings.cleaner_map_bytes,
                secret=self._secret,
                now_ms=manager.clock.now_ms(),
            )
        except (CorruptLog, KeysDoNotFit, CleanedTooLarge) as error:
            self._give_up(log, error)
            return
        except CleaningStopped:
            return
        except (StorageError, OSError):
            raise
        except Exception as error:
            report_fault(logger, error, "cleaning failed tp=%s", log.tp)
            self.uncleanable[log] = repr(error)
            return
        self._mark(log, result.to_remove)
        stats = result.stats
        logger.info(
            "compacted tp=%s upto=%d bytes=%d->%d records=%d->%d",
            log.tp,
            result.next_dirty_offset,
            stats.bytes_read,
            stats.bytes_kept,
            stats.records_read,
            stats.records_kept,
        )
        if log.closed:
            # The log has since been deleted.
            return
        manager.clean_offsets[log.tp] = result.next_dirty_offset
        await manager.write_clean_offsets(manager.home(log))

    def _give_up(self, log: Log, error: StorageError) -> None:
        if log.closed:
            return
        logger.error("log will not be compacted tp=%s error=%s", log.tp, error)
        self.uncleanable[log] = str(error)

    async def _guarded(self, log: Log, work: Awaitable[None]) -> None:
        """Await work on one log, so that its errors do not stop the work on other logs."""
        try:
            await work
        except OSError as error:
            self._report("upkeep failed", log, self.manager.failed(log, error))
        except StorageError as error:
            self._report("upkeep failed", log, error)
        except Exception as error:
            # A bug. Log it and continue with the other logs; the next round tries again.
            report_fault(logger, error, "upkeep failed tp=%s", log.tp)

    def _report(self, event: str, log: Log, error: StorageError) -> None:
        """Log an error, unless LogManager has: the log is closed or offline, or the disk is full."""
        if not log.closed and not isinstance(error, DiskFull):
            logger.error("%s tp=%s error=%s", event, log.tp, error)

    def _logs(self) -> Iterable[Log]:
        return [log for log in self.manager.logs.values() if not log.closed]
