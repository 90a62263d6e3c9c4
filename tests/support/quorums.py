"""Quorums of one voter, and a listener that records its calls."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from random import Random

from barnabas.base.clock import Clock
from barnabas.base.executor import Executor, InlineExecutor
from barnabas.protocol.stored.cluster_topics import ConfigRecord
from barnabas.raft.batches import CommittedBatch
from barnabas.raft.driver import Quorum
from barnabas.raft.facts import OffsetAndEpoch, Voter
from barnabas.raft.settings import QuorumSettings
from barnabas.storage.files import FileSystem
from support.clocks import ManualClock

ROOT = "/data"
LOG_DIRECTORY = f"{ROOT}/__cluster_metadata-0"
# Maximum number of loop iterations until an expected event.
TURNS_MAX = 10_000


def config(number: int, size: int = 1) -> ConfigRecord:
    """A metadata record, different for every `number`."""
    return ConfigRecord(resource_type=2, resource_name="t", name=f"n{number}", value="v" * size)


def bulk(size: int) -> list[object]:
    """Records of about `size` bytes in total, several of them because a string has at most 32,767 bytes."""
    return [config(number, 30_000) for number in range(size // 30_060)]


class Recorder:
    """A listener. `story` has all calls in order, `records` the records of all batches."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.batches: list[CommittedBatch] = []
        self.records: list[object] = []
        self.next_offset = 0
        self.leads: int | None = None

    def load_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterable[object]) -> None:
        self.records = list(records)
        self.story.append(f"snapshot {snapshot_id.offset}-{snapshot_id.epoch}: {len(self.records)}")
        self.next_offset = snapshot_id.offset

    def committed(self, batch: CommittedBatch) -> None:
        assert batch.base_offset == self.next_offset, f"{batch.base_offset} follows {self.next_offset}"
        self.next_offset = batch.last_offset + 1
        self.batches.append(batch)
        self.records += [record for record, _ in batch.records]
        self.story.append(f"batch {batch.base_offset}-{batch.last_offset} epoch {batch.epoch}")

    def leader_changed(self, leader: int | None, epoch: int) -> None:
        self.leads = epoch if leader == 1 else None
        self.story.append(f"leader {leader} epoch {epoch}")


def new_quorum(
    fs: FileSystem,
    listener: Recorder,
    *,
    directory: str = ROOT,
    settings: QuorumSettings | None = None,
    executor: Executor | None = None,
    clock: Clock | None = None,
) -> Quorum:
    return Quorum(
        fs=fs,
        clock=clock or ManualClock(1_000),
        executor=executor or InlineExecutor(),
        rng=Random(0),
        directory=directory,
        node_id=1,
        voters=[Voter(1, "localhost", 9093)],
        settings=settings or QuorumSettings(),
        cluster_id="8UFBlDBzRM2WGJual5ztlg",
        listener=listener,
    )


@asynccontextmanager
async def running(quorum: Quorum, listener: Recorder) -> AsyncIterator[int]:
    """Open the quorum, wait until it leads and yield the epoch; close it at the end of the block."""
    await quorum.open()
    task = asyncio.get_running_loop().create_task(quorum.run())
    try:
        yield await elected(listener, task)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await quorum.close()


async def elected(listener: Recorder, task: "asyncio.Task[None]") -> int:
    """Wait until the listener's node leads; return the epoch."""
    for _ in range(TURNS_MAX):
        if listener.leads is not None:
            return listener.leads
        if task.done():
            task.result()
        await asyncio.sleep(0)
    raise AssertionError("no leader was elected")
