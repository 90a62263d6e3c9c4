"""Log managers on a simulated disk, with helpers that set up its content in one line."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from random import Random
from typing import Any, Final, ParamSpec, TypeVar

from barnabas.base.executor import Executor, InlineExecutor
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.records.builder import build_batch
from barnabas.sim.disk import SimDisk
from barnabas.storage.config import LogConfig
from barnabas.storage.log import Log
from barnabas.storage.manager import LogManager
from support.clocks import ManualClock

P = ParamSpec("P")
T = TypeVar("T")

A, B = "/mnt/a", "/mnt/b"
T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
TOPIC_ID: Final = Uuid(b"the topic's id..")
CONFIG: Final = LogConfig.parse({})
CHECKPOINTS: Final = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
)


def on_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Make a plain test of a coroutine function."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class SlowExecutor:
    """An executor that does its work after a few iterations of the loop, and counts concurrent calls."""

    def __init__(self) -> None:
        self.turns = 5
        self.under_way = 0
        self.most = 0

    async def run(self, work: Callable[[], T]) -> T:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(self.turns):
            await asyncio.sleep(0)
        self.under_way -= 1
        return work()


def new_disk() -> SimDisk:
    return SimDisk(Random(0))


def manager_on(
    disk: SimDisk, *paths: str, node_id: int = 1, executor: Executor | None = None, loads_at_once: int = 4
) -> LogManager:
    ids = Random(disk.operations)
    return LogManager(
        disk,
        ManualClock(1000),
        executor or InlineExecutor(),
        paths=paths or (A, B),
        cluster_id="c",
        node_id=node_id,
        configs=lambda _: CONFIG,
        new_id=lambda: Uuid(ids.randbytes(16)),
        loads_at_once=loads_at_once,
    )


def append(log: Log, count: int = 1) -> None:
    for _ in range(count):
        log.append_as_leader(build_batch([(0, b"k", b"v", ())]), leader_epoch=0, now_ms=0)


async def opened(disk: SimDisk, *paths: str) -> LogManager:
    manager = manager_on(disk, *paths)
    await manager.open()
    return manager


async def with_logs(disk: SimDisk, **homes: str) -> LogManager:
    """A manager with partitions of three records each; `homes` has the directory of each partition."""
    manager = await opened(disk)
    for name, path in homes.items():
        log = await manager.create(partition(name), TOPIC_ID, CONFIG, path=path)
        append(log, 3)
    return manager


def partition(name: str) -> TopicPartition:
    return TopicPartition(name[0], int(name[1:]))


def in_service(manager: LogManager, tp: TopicPartition) -> Log:
    log = manager.get(tp)
    assert log is not None
    return log


def copy_tree(disk: SimDisk, old: str, new: str) -> None:
    disk.make_directory(new)
    for path in disk.tree():
        if path.startswith(old + "/"):
            write(disk, new + path[len(old) :], disk.read(path))


def write(disk: SimDisk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.write(0, [content])
    file.close()
