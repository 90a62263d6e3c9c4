"""Open all logs of one log directory, some at a time, and say how far it is.

After a clean stop opening a log is a few system calls, and several threads would only get into each other's
way: one does 10,000 in a second. After any other stop the logs are read, and that is where threads help.
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

# So many go to the executor together: passing each one on would cost more than opening it.
CHUNK: Final = 64

Configs = Callable[[TopicPartition], LogConfig]
# Told of every log, on the loop: it is open, or this is what is wrong with it.
Loaded = Callable[[TopicPartition, Opened | StorageError], None]


@value
class Progress:
    """How far the loading of one directory is."""

    directory: str
    loaded: int
    total: int


@dataclass(slots=True)
class OpenReport:
    """What opening found: for the log, and for an operator who asks."""

    loaded: int = 0
    findings: list[str] = field(default_factory=list)
    # Logs that stay out of service, and why.
    broken: dict[TopicPartition, StorageError] = field(default_factory=dict)
    # Directories that could not be had, and why.
    failed: dict[str, str] = field(default_factory=dict)


class Loader:
    """Opens logs. `at_once` is how many threads do so, where threads help."""

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
                # That is not the disk's doing: somebody has put it there.
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
    """Up to where the log was flushed, as far as that was written down; None if it cannot be told."""
    known = directory.checkpoints
    if tp in known.recovery_points or not known.recovery_points_known:
        return known.recovery_points.get(tp)
    # It was made after the last checkpoint. But a clean stop writes one: then somebody has put it here.
    return None if directory.clean is not None else 0
