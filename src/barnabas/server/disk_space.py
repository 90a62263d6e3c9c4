"""Measure the free space of the log directories without waiting for a disk that does not answer.

The system call may block indefinitely on a dead disk or a lost network mount. So it runs in the executor,
once at a time per directory: a disk that does not answer blocks one thread, however often it is measured.
"""

import asyncio
import logging
from functools import partial
from typing import Final

from barnabas.base.executor import Executor
from barnabas.base.tasks import Tasks
from barnabas.server.metrics.sources import Space
from barnabas.storage.files import FileSystem
from barnabas.storage.manager import LogManager

logger = logging.getLogger(__name__)

# measure() waits this long for all disks together, and leaves out those that have not answered.
WAIT_MAX_S: Final = 1.0


class DiskSpace:
    """measure() may be called at any rate: calls share the measurement in progress."""

    def __init__(self, logs: LogManager, executor: Executor, tasks: Tasks) -> None:
        self._logs: Final = logs
        self._executor: Final = executor
        self._tasks: Final = tasks
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._known: dict[str, Space] = {}

    async def measure(self) -> dict[str, Space]:
        """The space of every online directory whose disk answers in time."""
        online = [one.path for one in self._logs.directories if one.offline is None]
        for path in online:
            if path not in self._asking:
                self._known.pop(path, None)
                self._asking[path] = self._tasks.start(self._ask(path))
        waiting = [self._asking[path] for path in online]
        if waiting:
            await asyncio.wait(waiting, timeout=WAIT_MAX_S)
        return {path: self._known[path] for path in online if path in self._known}

    async def _ask(self, path: str) -> None:
        try:
            self._known[path] = await self._executor.run(partial(_space, self._logs.fs, path))
        except OSError as error:
            logger.warning("cannot read disk usage path=%s error=%s", path, error)
        finally:
            del self._asking[path]


def _space(fs: FileSystem, path: str) -> Space:
    return Space(fs.free_bytes(path), fs.total_bytes(path))
