"""All logs of a broker in all of its log directories: open, create, find, delete, close.

Logs are loaded in parallel. A damaged log stays offline with a reason; a directory whose disk fails takes its
logs offline; the others continue. Periodic work (flush, retention, checkpoints, compaction) is in upkeep.py.
"""

import errno
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.executor import Executor
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.tasks import Coalesced, together
from barnabas.storage.config import LogConfig
from barnabas.storage.directory.log_directory import LogDirectory, open_directory
from barnabas.storage.directory.meta_properties import check_together
from barnabas.storage.directory.partition_metadata import write_partition_metadata
from barnabas.storage.directory.partitions import DirectoryKind, PartitionDirectory, aside_name
from barnabas.storage.errors import (
    CorruptFile,
    CorruptLog,
    DirectoryOffline,
    DiskFull,
    LogClosed,
    LogExists,
    LogFailed,
    Shortage,
    StorageError,
    is_full,
)
from barnabas.storage.files import FileSystem
from barnabas.storage.flush import close, flush
from barnabas.storage.loading import Configs, Loader, OpenReport, Progress
from barnabas.storage.log import Log
from barnabas.storage.names import directory_name
from barnabas.storage.recovery import Opened, open_log
from barnabas.storage.removal import remove_directory
from barnabas.storage.shortage import RetryingExecutor, is_shortage
from barnabas.storage.truncation import truncate

logger = logging.getLogger(__name__)

# Errors of one file, not of its disk: the file was removed, replaced or made unreadable.
_FILE_ERRORS: Final = (
    *(errno.ENOENT, errno.ESTALE, errno.EACCES, errno.EPERM),
    *(errno.EISDIR, errno.ENOTDIR, errno.ELOOP),
)

# Maximum number of damaged segments that are logged between two starts.
DAMAGED_MAX: Final = 1_000

# Deletion delay for a log that was offline, so that its file.delete.delay.ms is unknown.
_BROKEN_DELAY_MS: Final = 60_000

CLUSTER_METADATA: Final = TopicPartition("__cluster_metadata", 0)


class LogManager:
    """The logs of one broker."""

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        executor: Executor,
        *,
        paths: Sequence[str],
        cluster_id: str,
        node_id: int,
        configs: Configs,
        new_id: Callable[[], Uuid],
        loads_at_once: int = 4,
    ) -> None:
        assert paths, "a broker has at least one log directory"
        self.fs: Final = fs
        self.clock: Final = clock
        self.executor: Final = executor
        self.paths: Final = tuple(paths)
        self.directories: list[LogDirectory] = []
        self.logs: dict[TopicPartition, Log] = {}
        self.broken: dict[TopicPartition, StorageError] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._new_id = new_id
        # How many logs of one directory are opened or closed concurrently.
        self.at_once = loads_at_once
        self._loader = Loader(fs, clock, executor, configs, loads_at_once)
        # The offset up to which each log is compacted, as in the cleaner's checkpoints.
        self.clean_offsets: dict[TopicPartition, int] = {}
        # The recovery points on the disk, which a restart after a power loss would read.
        self.written_points: dict[TopicPartition, int] = {}
        self._retrying: Final = RetryingExecutor(executor)
        # Directories that could not be opened, and why. Their contents are unknown.
        self._unopened: dict[str, str] = {}
        self._recovery_writers: dict[str, Coalesced] = {}
        self._checkpoint_writers: dict[str, Coalesced] = {}
        self._clean_writers: dict[str, Coalesced] = {}
        # Many logs are created and deleted together: one directory sync serves all of them.
        self._name_syncs: dict[str, Coalesced] = {}
        # Segments whose damage was logged.
        self._damaged: set[str] = set()
        # Called for every opened or created log, before it is used.
        self.on_log: list[Callable[[Log], None]] = []
        # Called for every log that goes offline because of its own files, not its directory.
        self.on_failed: list[Callable[[Log], None]] = []
        # Called for every log that was deleted or renamed as stray.
        self.on_gone: list[Callable[[Log], None]] = []
        # Directories of deleted partitions, each with the time of its removal.
        self.doomed: list[tuple[int, str]] = []

    # Opening

    async def open(self, on_progress: Callable[[Progress], None] | None = None) -> OpenReport:
        """Open every directory and load every log in it.

        Fails only if no directory can be opened, or if one belongs to another node, which an operator must
        resolve.
        """
        await self.open_directories()
        return await self.load(on_progress)

    async def open_directories(self) -> None:
        """Lock every directory and check its owner. load() reports those that could not be opened."""
        try:
            await self._open_directories()
        except BaseException:
            self._close_directories()
            raise

    async def _open_directories(self) -> None:
        for path in self.paths:
            try:
                directory = await self.executor.run(partial(self._open_directory, path))
            except (OSError, CorruptFile) as error:
                logger.error("log directory failed path=%s error=%s", path, error)
                self._unopened[path] = str(error)
                continue
            self.directories.append(directory)
            write = partial(self._write_recovery_points, directory)
            self._recovery_writers[directory.path] = Coalesced(write)
            self._checkpoint_writers[directory.path] = Coalesced(partial(self._write_checkpoints, directory))
            self._clean_writers[directory.path] = Coalesced(partial(self._write_clean_offsets, directory))
            self._name_syncs[directory.path] = Coalesced(partial(self._sync_names, directory.path))
        if not self.directories:
            raise DirectoryOffline(", ".join(self.paths), "no log directory could be opened")
        check_together({directory.path: directory.meta for directory in self.directories})

    async def load(self, on_progress: Callable[[Progress], None] | None = None) -> OpenReport:
        """Load every log of the open directories."""
        try:
            return await self._load_all(on_progress)
        except BaseException:
            self._close_directories()
            raise

    async def _load_all(self, on_progress: Callable[[Progress], None] | None) -> OpenReport:
        report = OpenReport(failed=dict(self._unopened))
        await together(*(self._load(directory, report, on_progress) for directory in self.directories))
        if not any(directory.offline is None for directory in self.directories):
            raise DirectoryOffline(", ".join(self.paths), "no log directory could be loaded")
        report.loaded = len(self.logs)
        report.broken = dict(self.broken)
        for finding in report.findings:
            logger.warning("log recovery: %s", finding)
        return report

    def _close_directories(self) -> None:
        for directory in self.directories:
            directory.close()

    def _open_directory(self, path: str) -> LogDirectory:
        return open_directory(
            self.fs,
            path,
            cluster_id=self._cluster_id,
            node_id=self._node_id,
            new_id=self._new_id(),
            now_ms=self.clock.now_ms(),
        )

    async def _load(
        self, directory: LogDirectory, report: OpenReport, on_progress: Callable[[Progress], None] | None
    ) -> None:
        todo: list[PartitionDirectory] = []
        try:
            contents = await self.executor.run(directory.contents)
            report.findings += [
                f"{directory.path}/{name}: unknown entry, left untouched" for name in contents.strangers
            ]
            report.findings += [str(problem) for problem in directory.checkpoints.problems]
            todo = self._to_load(directory, contents.partitions)
            self._loader.at_once = self.at_once
            await self._loader.load(directory, todo, partial(self._loaded, directory, report), on_progress)
            # Only now: until a log is changed, the directory is still cleanly shut down.
            await self.executor.run(directory.mark_in_use)
        except OSError as error:
            if is_shortage(error):
                # The files may be intact, so do not take the directory offline.
                raise Shortage(directory.path, str(error)) from error
            # Claim the logs that were not loaded as well: no new log may be created in their place.
            for found in todo:
                self._homes.setdefault(found.tp, directory)
            self.fail_directory(directory, error)
            report.failed[directory.path] = str(error)

    def _to_load(
        self, directory: LogDirectory, found: Iterable[PartitionDirectory]
    ) -> list[PartitionDirectory]:
        # The quorum opens the metadata log itself, from its own state.
        ours = [one for one in found if one.tp != CLUSTER_METADATA]
        doomed = [f"{directory.path}/{one.name}" for one in ours if one.kind is DirectoryKind.DELETE]
        self.doomed += [(self.clock.monotonic_ms(), path) for path in doomed]
        return [one for one in ours if one.kind is DirectoryKind.LOG]

    def _loaded(
        self, directory: LogDirectory, report: OpenReport, tp: TopicPartition, opened: Opened | StorageError
    ) -> None:
        if tp in self._homes:
            raise LogExists(tp, self._homes[tp].path, directory.path)
        if isinstance(opened, StorageError):
            logger.error("log out of service tp=%s error=%s", tp, opened)
            self.broken[tp] = opened
            self._homes[tp] = directory
            return
        report.findings += opened.findings
        known = directory.checkpoints
        self.written_points[tp] = known.recovery_points.get(tp, 0)
        if tp in known.cleaner_offsets:
            self.clean_offsets[tp] = known.cleaner_offsets[tp]
        self._add(directory, opened.log)

    def _add(self, directory: LogDirectory, log: Log) -> None:
        self.logs[log.tp] = log
        self._homes[log.tp] = directory
        for callback in self.on_log:
            callback(log)

    def _count(self, directory: LogDirectory) -> int:
        return sum(1 for home in self._homes.values() if home is directory)

    # Finding

    def get(self, tp: TopicPartition) -> Log | None:
        """The log of a partition; None if there is none here. Raises the reason if it is offline."""
        home = self._homes.get(tp)
        if home is None:
            return None
        home.check()
        if tp in self.broken:
            raise self.broken[tp].with_traceback(None)
        # None while it is being created, too.
        return self.logs.get(tp)

    def home(self, log: Log) -> LogDirectory:
        return self._homes[log.tp]

    def logs_in(self, directory: LogDirectory) -> list[Log]:
        return [log for tp, log in self.logs.items() if self._homes[tp] is directory]

    # Failing

    def failed(self, log: Log, error: OSError, *, reading: bool = False) -> StorageError:
        """Classify an OSError in a log's files: disk full, log offline, or directory offline.

        A failed write takes the whole directory offline. A failed read concerns only this log: the rest of
        the disk may be fine.
        """
        if self.logs.get(log.tp) is not log:
            # The log has since been deleted, and its files renamed.
            return LogClosed(str(log.tp))
        of_one_file = error.errno in _FILE_ERRORS or (reading and not is_shortage(error))
        if of_one_file and not is_full(error):
            return self.fail_log(log, error)
        return self._failed_in(self.home(log), error)

    def fail_log(self, log: Log, error: Exception) -> StorageError:
        """Take one log offline; return the error for its callers.

        Its memory and its files may differ. The next start must recover it, so its directory gets no clean
        shutdown marker.
        """
        if log.closed_by is None:
            why = str(error) if isinstance(error, OSError) else repr(error)
            log.take_out_of_service(LogFailed(log.tp, why))
            logger.error("log out of service tp=%s error=%s", log.tp, why)
            for callback in self.on_failed:
                callback(log)
        return log.closed_by or LogClosed(str(log.tp))

    def report_damage(self, log: Log, error: CorruptLog) -> None:
        """Log the damage of a segment once. The rest of the log stays in service."""
        if error.path not in self._damaged and len(self._damaged) < DAMAGED_MAX:
            self._damaged.add(error.path)
            logger.error("log damaged tp=%s error=%s", log.tp, error)

    def _failed_in(self, directory: LogDirectory, error: OSError) -> StorageError:
        if is_full(error):
            directory.full.found_full(self.clock.monotonic_ms())
            return DiskFull(directory.path)
        if is_shortage(error):
            return Shortage(directory.path, str(error))
        self.fail_directory(directory, error)
        return DirectoryOffline(directory.path, directory.offline or str(error))

    def fail_directory(self, directory: LogDirectory, error: OSError) -> None:
        """Take a directory and all its logs offline."""
        if directory.offline is None:
            logger.error("log directory failed path=%s error=%s", directory.path, error)
        directory.fail(error)
        why = DirectoryOffline(directory.path, directory.offline or str(error))
        for log in self.logs_in(directory):
            log.take_out_of_service(why)

    # Creating and deleting

    async def create(
        self,
        tp: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        *,
        path: str | None = None,
        is_new: bool = True,
    ) -> Log:
        """Create an empty log, in the directory `path` or in the one with the fewest logs.

        `is_new` states that this broker never had the partition. Otherwise an offline directory may hold its
        log, and no second one is created.
        """
        if tp in self._homes:
            raise LogExists(tp, self._homes[tp].path, path or "another directory")
        hidden = [*self._unopened, *(one.path for one in self.directories if one.offline is not None)]
        if hidden and not is_new:
            raise DirectoryOffline(", ".join(hidden), f"it may hold the log of {tp}")
        directory = self._choose(path)
        # Claimed before the first await, so that no concurrent call creates it.
        self._homes[tp] = directory
        try:
            if directory.may_have_row(tp):
                # The rows of a deleted log. After a crash the new log would be opened with its start offset
                # and recovery point.
                await self.write_checkpoints(directory)
                await self.write_clean_offsets(directory)
            # Retry on a shortage of descriptors: the metadata says that this broker has the partition.
            log = await self._retrying.run(partial(self._create, directory, tp, topic_id, config))
            await self._name_syncs[directory.path].run()
        except BaseException as error:
            del self._homes[tp]
            if isinstance(error, OSError):
                raise self._failed_in(directory, error) from error
            raise
        self._add(directory, log)
        return log

    async def adopt(self, log: Log, topic_id: Uuid) -> None:
        """Write the topic id for a log that lacks partition.metadata."""
        directory = self.home(log)
        await self._write(directory, partial(write_partition_metadata, self.fs, log.directory, topic_id))
        log.topic_id = topic_id

    def _choose(self, path: str | None) -> LogDirectory:
        online = [directory for directory in self.directories if directory.offline is None]
        if path is not None:
            online = [directory for directory in online if directory.path == path]
        if not online:
            raise DirectoryOffline(path or ", ".join(self.paths), "no log directory is online")
        return online[0] if len(online) == 1 else min(online, key=self._count)

    def _create(self, directory: LogDirectory, tp: TopicPartition, topic_id: Uuid, config: LogConfig) -> Log:
        path = f"{directory.path}/{directory_name(tp)}"
        try:
            return self._create_at(path, directory, tp, topic_id, config)
        except OSError:
            # The directory can only be our own incomplete one. If it stayed, the next start would open it as
            # a second log of the partition.
            with suppress(OSError):
                remove_directory(self.fs, path)
            raise

    def _create_at(
        self, path: str, directory: LogDirectory, tp: TopicPartition, topic_id: Uuid, config: LogConfig
    ) -> Log:
        self.fs.make_directory(path)
        opened = open_log(
            self.fs,
            tp,
            path,
            config,
            clean=False,
            recovery_point=0,
            start_offset=0,
            now_ms=self.clock.now_ms(),
        )
        # Last, because it syncs the directory, and with it the names of the log's own files.
        write_partition_metadata(self.fs, path, topic_id)
        opened.log.topic_id = topic_id
        return opened.log

    async def delete(self, tp: TopicPartition) -> None:
        """Remove a log at once, and its files after file.delete.delay.ms, when no reads use them."""
        delay_ms = _BROKEN_DELAY_MS
        if tp in self.logs:
            delay_ms = self.logs[tp].config.file_delete_delay_ms
        new = await self._rename_aside(tp, DirectoryKind.DELETE)
        self.doomed.append((self.clock.monotonic_ms() + delay_ms, new))

    async def set_aside(self, tp: TopicPartition) -> str:
        """Remove a log that is not this broker's. Its files stay under the returned name."""
        return await self._rename_aside(tp, DirectoryKind.STRAY)

    async def _rename_aside(self, tp: TopicPartition, kind: DirectoryKind) -> str:
        directory = self._homes[tp]
        log = self.logs.pop(tp, None)
        self.broken.pop(tp, None)
        self.clean_offsets.pop(tp, None)
        self.written_points.pop(tp, None)
        if log is not None:
            # Without `closed_by`: an error that is raised repeatedly refers to its frames, and these to the
            # log, which would stay in memory until the next garbage collection.
            log.closed = True
        old = f"{directory.path}/{directory_name(tp)}"
        unique = self._new_id().hex()
        new = f"{directory.path}/{aside_name(tp, kind, unique)}"
        try:
            # Let a running flush finish: it finds its files by name.
            async with log.turn() if log is not None else nullcontext():
                await self._retrying.run(partial(self.fs.rename, old, new))
                await self._name_syncs[directory.path].run()
        except FileNotFoundError:
            # Another process has already removed it.
            logger.warning("partition directory missing path=%s", old)
        except OSError as error:
            if is_full(error):
                # The old name blocks a new log of the partition until the next start.
                raise self._failed_in(directory, error) from error
            self.fail_directory(directory, error)
            raise DirectoryOffline(directory.path, str(error)) from error
        finally:
            if log is not None:
                log.release()
                for callback in self.on_gone:
                    callback(log)
        # Only now: until the rename, a new log of this partition would have found the old files.
        del self._homes[tp]
        return new

    async def _sync_names(self, path: str) -> None:
        await self._retrying.run(partial(self.fs.sync_directory, path))

    async def remove_doomed(self) -> None:
        """Remove the directories of deleted partitions whose delay is over."""
        now_ms = self.clock.monotonic_ms()
        expired = [path for at, path in self.doomed if at <= now_ms]
        self.doomed = [(at, path) for at, path in self.doomed if at > now_ms]
        for path in expired:
            try:
                await self.executor.run(partial(remove_directory, self.fs, path))
            except FileNotFoundError:
                continue
            except OSError as error:
                logger.error("directory not removed path=%s error=%s", path, error)
                self.doomed.append((self.clock.monotonic_ms() + _BROKEN_DELAY_MS, path))

    # Checkpoints

    async def _write_recovery_points(self, directory: LogDirectory) -> None:
        points = {log.tp: log.recovery_point for log in self.logs_in(directory)}
        # Until the write is done, only the lower of old and new is certain.
        for tp, point in points.items():
            self.written_points[tp] = min(point, self.written_points.get(tp, 0))
        kept = self._with_broken(directory, points, directory.checkpoints.recovery_points)
        await self._write(directory, partial(directory.write_recovery_points, kept))
        self.written_points.update({tp: point for tp, point in points.items() if tp in self.logs})

    def _with_broken(
        self,
        directory: LogDirectory,
        offsets: Mapping[TopicPartition, int],
        old: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        """Keep the old rows of offline logs: their repair will need them."""
        kept = {tp: old[tp] for tp in self.broken if self._homes[tp] is directory and tp in old}
        return {**kept, **offsets}

    async def write_recovery_points(self, directory: LogDirectory) -> None:
        """Write the recovery points of a directory's logs."""
        await self._recovery_writers[directory.path].run()

    async def write_checkpoints(self, directory: LogDirectory) -> None:
        """Write the recovery points, start offsets and high watermarks of a directory's logs."""
        await self._checkpoint_writers[directory.path].run()

    async def _write_checkpoints(self, directory: LogDirectory) -> None:
        await self.write_recovery_points(directory)
        logs, known = self.logs_in(directory), directory.checkpoints
        # Not above the recovery point, or a power loss could leave a log that ends below its start.
        starts = {log.tp: min(log.start_offset, log.recovery_point) for log in logs}
        starts = {log.tp: starts[log.tp] for log in logs if starts[log.tp] > log.bases[0]}
        starts = self._with_broken(directory, starts, known.start_offsets)
        await self._write(directory, partial(directory.write_start_offsets, starts))
        marks = {log.tp: log.high_watermark for log in logs}
        marks = self._with_broken(directory, marks, known.high_watermarks)
        await self._write(directory, partial(directory.write_high_watermarks, marks))

    async def write_clean_offsets(self, directory: LogDirectory) -> None:
        """Write the cleaner's checkpoint for a directory's logs."""
        await self._clean_writers[directory.path].run()

    async def _write_clean_offsets(self, directory: LogDirectory) -> None:
        here = [log.tp for log in self.logs_in(directory)]
        offsets = {tp: self.clean_offsets[tp] for tp in here if tp in self.clean_offsets}
        offsets = self._with_broken(directory, offsets, directory.checkpoints.cleaner_offsets)
        await self._write(directory, partial(directory.write_cleaner_offsets, offsets))

    async def flush(self, log: Log) -> None:
        """Make the current content of a log durable."""
        if log.closed:
            raise LogClosed(str(log.tp))
        try:
            await flush(log, self.executor)
        except OSError as error:
            raise self.failed(log, error) from error

    async def _write(self, directory: LogDirectory, write: Callable[[], None]) -> None:
        directory.check()
        try:
            await self.executor.run(write)
        except OSError as error:
            raise self._failed_in(directory, error) from error
        directory.full.found_room()

    async def truncate(self, log: Log, offset: int) -> list[str]:
        """Truncate a log, after lowering its recovery point on disk. Return the files to remove later."""
        directory = self.home(log)

        async def lower(to: int) -> None:
            if self.clean_offsets.get(log.tp, 0) > to:
                # New records at these offsets will not be compacted ones.
                self.clean_offsets[log.tp] = to
                await self.write_clean_offsets(directory)
            await self._recovery_writers[directory.path].run()

        try:
            return await truncate(log, self.executor, offset, lower, self.clock.now_ms())
        except OSError as error:
            # Any error takes the directory offline: after an unsynced truncation, nothing may be appended.
            self.fail_directory(directory, error)
            raise DirectoryOffline(directory.path, directory.offline or str(error)) from error

    # Closing

    async def close(self, broker_epoch: int = -1) -> bool:
        """Shut down cleanly: flush and close all logs, write all checkpoints and the clean shutdown markers.

        False if this failed in a directory that was online.
        """
        is_clean = True
        for directory in self.directories:
            if directory.offline is None:
                try:
                    await self._close_logs(directory)
                    await self.write_checkpoints(directory)
                    if any(isinstance(log.closed_by, LogFailed) for log in self.logs_in(directory)):
                        # Without the marker the next start recovers the logs, including the failed ones.
                        is_clean = False
                    else:
                        await self.executor.run(partial(directory.mark_clean, broker_epoch))
                except (OSError, StorageError) as error:
                    # Without the marker the next start recovers all logs.
                    logger.error("unclean shutdown path=%s error=%s", directory.path, error)
                    is_clean = False
            directory.close()
        self.logs.clear()
        return is_clean

    def abandon(self) -> None:
        """Release everything without a clean shutdown: the next start recovers all logs."""
        self._close_directories()
        self.logs.clear()

    async def _close_logs(self, directory: LogDirectory) -> None:
        queue = iter(self.logs_in(directory))

        async def close_some() -> None:
            for log in queue:
                if not isinstance(log.closed_by, LogFailed):
                    await close(log, self.executor)

        await together(*(close_some() for _ in range(self.at_once)))
