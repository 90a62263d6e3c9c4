"""Open all logs of one log directory in parallel, and report the progress.

After a clean shutdown a log opens with a few system calls: one thread opens 10,000 a second, and more threads
would only contend. After an unclean one the logs must be read, and threads help.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.executor import Executor
from barnabas.base.ids import TopicPartition
from barnabas.base.tasks import together
from barnabas.base.values import value
from barnabas.storage.config import LogConfig
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.directory.partition_metadata import read_partition_metadata
from barnabas.storage.directory.partitions import PartitionDirectory
from barnabas.storage.errors import CorruptFile, StorageError
from barnabas.storage.files import FileSystem
from barnabas.storage.recovery import Opened, open_log

# Logs per executor job: a job per log would cost more than opening it.
CHUNK: Final = 64

Configs = Callable[[TopicPartition], LogConfig]
# Called on the loop for every log, with the opened log or the error.
Loaded = Callable[[TopicPartition, Opened | StorageError], None]


@value
class Progress:
    """The loading progress of one directory."""

    directory: str
    loaded: int
    total: int


@dataclass(slots=True)
class OpenReport:
    """The outcome of opening the logs, for the log file and for operators."""

    loaded: int = 0
    findings: list[str] = field(default_factory=list)
    # Logs that stay offline, and why.
    broken: dict[TopicPartition, StorageError] = field(default_factory=dict)
    # Directories that could not be opened, and why.
    failed: dict[str, str] = field(default_factory=dict)


class Loader:
    """Opens logs. `at_once` is the number of threads after an unclean shutdown."""

    def __init__(
        self, fs: FileSystem, clock: Clock, executor: Executor, configs: Configs, at_once: int
    ) -> None:
        self._fs = fs
        self._clock = clock
        self._executor = executor
        self._configs = configs
        self.at_once = at_once

    async def load(
        self,
        directory: LogDirectory,
        found: Iterable[PartitionDirectory],
        loaded: Loaded,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        """Open the logs that were found in a directory. OSError if the disk fails."""
        todo = list(found)
        queue, done = iter(todo), 0

        async def load_some() -> None:
            nonlocal done
            while some := [one for _, one in zip(range(CHUNK), queue, strict=False)]:
                for tp, opened in await self._executor.run(partial(self._open_logs, directory, some)):
                    loaded(tp, opened)
                    done += 1
                if on_progress is not None:
                    on_progress(Progress(directory.path, done, len(todo)))

        threads = self.at_once if directory.clean is None else 1
        await together(*(load_some() for _ in range(threads)))

    def _open_logs(
        self, directory: LogDirectory, some: Iterable[PartitionDirectory]
    ) -> list[tuple[TopicPartition, Opened | StorageError]]:
        opened: list[tuple[TopicPartition, Opened | StorageError]] = []
        for found in some:
            try:
                opened.append((found.tp, self._open_log(directory, found)))
            except StorageError as error:
                opened.append((found.tp, error))
            except (IsADirectoryError, NotADirectoryError) as error:
                # Not a disk fault: the entry is of the wrong kind, so something else put it there.
                opened.append((found.tp, CorruptFile(str(error.filename), str(error.strerror))))
        return opened

    def _open_log(self, directory: LogDirectory, found: PartitionDirectory) -> Opened:
        known = directory.checkpoints
        tp = found.tp
        opened = open_log(
            self._fs,
            tp,
            f"{directory.path}/{found.name}",
            self._configs(tp),
            clean=directory.clean is not None,
            recovery_point=recovery_point(directory, tp),
            start_offset=known.start_offsets.get(tp, 0),
            now_ms=self._clock.now_ms(),
        )
        opened.log.set_high_watermark(known.high_watermarks.get(tp, 0))
        opened.log.topic_id = read_partition_metadata(self._fs, opened.log.directory)
        return opened


def recovery_point(directory: LogDirectory, tp: TopicPartition) -> int | None:
    """The checkpointed recovery point of a log; None if it is unknown."""
    known = directory.checkpoints
    if tp in known.recovery_points or not known.recovery_points_known:
        return known.recovery_points.get(tp)
    # The log was created after the last checkpoint. But a clean shutdown writes one, so in that case the log
    # was put here from outside.
    return None if directory.clean is not None else 0
