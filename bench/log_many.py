"""What do ten thousand partitions cost that nobody uses: how long to open them, how much memory to have them?

They are made once, through the manager, with a few batches each, and stopped cleanly; only the making does
without syncs. Opening is what a broker does at its start, with threads; the kernel has the directories in
memory. The peer walks the same directories and asks for the size of every file. Memory is Python's own heap,
in a process that does nothing else: as the logs are opened, and after each was written to once.
Expected cost of ours a log: one listing with a stat a file, and four small files opened and read.
"""

import asyncio
import gc
import multiprocessing
import os
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from barnabas.base.clock import SystemClock
from barnabas.base.executor import ThreadExecutor
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.storage.config import LogConfig
from barnabas.storage.directory.clean_shutdown import write_clean_shutdown
from barnabas.storage.disk import DiskFile, DiskFileSystem
from barnabas.storage.manager import LogManager
from log_turns import LEADER_EPOCH, Aimed, Run, sized_batch, take_turns, timed
from report import Options, Row

PARTITIONS = 10_000
QUICK_PARTITIONS = 500
BATCHES = 3
BATCH_BYTES = 1024
ROUNDS = 5
QUICK_ROUNDS = 3
THREADS = 4
# Below what a process may have open on most machines.
OPEN_FILES = 512
STAT = "scandir + stat"
MEMORY_AIM_KB = 10.0
TIME_AIM = "< 5 s"


class UnsyncedFile(DiskFile):
    """A file that is never waited for."""

    __slots__ = ()

    def sync(self) -> None:
        pass


class UnsyncedDisk(DiskFileSystem):
    """The real disk, for data that nobody will miss: 120,000 syncs would take longer than everything else."""

    def _file(self, path: str, flags: int) -> DiskFile:
        plain = super()._file(path, flags)
        return UnsyncedFile(self._open_files, path, plain._descriptor())

    def sync_directory(self, path: str) -> None:
        pass


def many_rows(directory: Path, options: Options) -> Iterator[Aimed]:
    count = QUICK_PARTITIONS if options.quick else PARTITIONS
    path = directory / "many"
    asyncio.run(make_logs(path, count))
    os.sync()
    runs = [stat_run(path, count), opening_run(path, count)]
    turns = take_turns(runs, QUICK_ROUNDS if options.quick else ROUNDS)
    yield Aimed(turns.seconds_row(f"open {count} idle partitions", "ours", STAT), TIME_AIM)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        opened, written = pool.submit(memory_of, path, count).result()
    for question, size in (("opened", opened), ("once written to", written)):
        used = size / count / 1000
        row = Row(f"memory of an idle partition, {question}", used, MEMORY_AIM_KB, "the aim", "kB", 0.0)
        yield Aimed(replace(row, ratio=MEMORY_AIM_KB / used), "< 10 kB")


def new_manager(fs: DiskFileSystem, path: Path, executor: ThreadExecutor) -> LogManager:
    config = LogConfig.parse({})
    return LogManager(
        fs,
        SystemClock(),
        executor,
        paths=[str(path)],
        cluster_id="Some-Cluster-Id-of-22c",
        node_id=1,
        configs=lambda tp: config,
        new_id=lambda: Uuid(os.urandom(16)),
        loads_at_once=THREADS,
    )


async def make_logs(path: Path, count: int) -> None:
    executor = ThreadExecutor(THREADS)
    manager = new_manager(UnsyncedDisk(open_files_max=OPEN_FILES), path, executor)
    await manager.open()
    batch = sized_batch(BATCH_BYTES)
    now_ms = SystemClock().now_ms()
    topic_id = Uuid(os.urandom(16))
    for number in range(count):
        log = await manager.create(TopicPartition("many", number), topic_id, LogConfig.parse({}))
        for _ in range(BATCHES):
            log.append_as_leader(batch, leader_epoch=LEADER_EPOCH, now_ms=now_ms)
        log.set_high_watermark(log.end_offset)
    await manager.close()
    executor.close()


async def open_logs(path: Path, count: int, executor: ThreadExecutor) -> LogManager:
    manager = new_manager(DiskFileSystem(open_files_max=OPEN_FILES), path, executor)
    report = await manager.open()
    assert report.loaded == count
    assert not report.findings, report.findings[:3]
    return manager


def leave_clean(manager: LogManager) -> None:
    """Nothing was written: only the marker of a clean stop is missing again."""
    for directory in manager.directories:
        write_clean_shutdown(manager.fs, directory.path, -1)
        directory.close()


def opening_run(path: Path, count: int) -> Run:
    def run() -> dict[str, float]:
        took: dict[str, float] = {}
        executor = ThreadExecutor(THREADS)
        with timed(took, "ours"):
            manager = asyncio.run(open_logs(path, count, executor))
        leave_clean(manager)
        executor.close()
        return took

    return run


def stat_run(path: Path, count: int) -> Run:
    def run() -> dict[str, float]:
        took: dict[str, float] = {}
        size = 0
        with timed(took, STAT):
            for above in [entry.path for entry in os.scandir(path) if entry.is_dir()]:
                for entry in os.scandir(above):
                    size += os.stat(entry.path).st_size
        assert size >= count * BATCHES * BATCH_BYTES
        return took

    return run


def memory_of(path: Path, count: int) -> tuple[int, int]:
    """Bytes of Python's heap that the logs take, opened and then written to. In a process of its own.

    What it leaves behind was not stopped cleanly.
    """
    executor = ThreadExecutor(THREADS)
    batch = sized_batch(BATCH_BYTES)
    tracemalloc.start()
    before = heap_bytes()
    manager = asyncio.run(open_logs(path, count, executor))
    opened = heap_bytes()
    for log in manager.logs.values():
        log.append_as_leader(batch, leader_epoch=LEADER_EPOCH, now_ms=manager.clock.now_ms())
    written = heap_bytes()
    executor.close()
    return opened - before, written - before


def heap_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
