"""After a power loss at any disk operation, a quorum still has all committed records.

To replay a failing case, pass its name: `-k 'operation17-'`.
"""

import asyncio
from contextlib import suppress
from random import Random

import pytest

from barnabas.raft.driver import Quorum
from barnabas.raft.errors import QuorumClosed
from barnabas.raft.settings import QuorumSettings
from barnabas.sim.disk import PowerLoss, SimDisk
from support.log.managers import on_a_loop
from support.quorums import LOG_DIRECTORY, ROOT, Recorder, bulk, config, elected, new_quorum

SETTINGS = QuorumSettings(log_segment_bytes=1024 * 1024, max_retention_bytes=2_000_000)
# Number of disk operations of live(). A test below fails if it changes.
OPERATIONS = 305
CRASHES = 2


class History:
    """The records that were committed so far, and the last epoch."""

    def __init__(self) -> None:
        self.committed: list[object] = []
        self.epoch = 0


async def live(disk: SimDisk, history: History) -> None:
    """Run a quorum twice from start to stop: small, large and concurrent appends, segments, snapshots."""
    for life in range(2):
        listener = Recorder()
        quorum = new_quorum(disk, listener, settings=SETTINGS)
        await quorum.open()
        task = asyncio.get_running_loop().create_task(quorum.run())
        try:
            history.epoch = epoch = await elected(listener, task)
            for number in range(4):
                await append(quorum, epoch, history, [config(10 * life + number)])
                if number % 2:
                    await append(quorum, epoch, history, bulk(700_000))
                    await quorum.write_snapshot(quorum.delivered, list(listener.records))
            together = [quorum.append(epoch, [config(100 + life + number)]) for number in range(3)]
            for number, done in enumerate(together):
                await done
                history.committed.append(config(100 + life + number))
        finally:
            await end(task)
        await quorum.close()


async def append(quorum: Quorum, epoch: int, history: History, records: list[object]) -> None:
    await quorum.append(epoch, records)
    history.committed += records


async def end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    while not task.done():
        await asyncio.sleep(0)
    if not task.cancelled():
        task.exception()


async def live_until_the_power_goes(disk: SimDisk, history: History) -> None:
    # PowerLoss is raised here or in another task; in the second case this one gets QuorumClosed.
    with suppress(PowerLoss, QuorumClosed):
        await live(disk, history)


def new_disk(seed: int) -> SimDisk:
    disk = SimDisk(Random(seed))
    disk.make_directory(ROOT)
    disk.sync_directory("/")
    return disk


async def recover(disk: SimDisk) -> Recorder:
    listener = Recorder()
    quorum = new_quorum(disk, listener, settings=SETTINGS)
    await quorum.open()
    task = asyncio.get_running_loop().create_task(quorum.run())
    try:
        await elected(listener, task)
    finally:
        await end(task)
    await quorum.close()
    return listener


@pytest.mark.parametrize(
    "operation", range(1, OPERATIONS + 1), ids=lambda operation: f"operation{operation}-"
)
@on_a_loop
async def test_committed_records_survive_a_power_loss(operation: int) -> None:
    for seed in range(CRASHES):
        disk = new_disk(seed)
        history = History()
        disk.crash_after(operation)
        await live_until_the_power_goes(disk, history)
        lost = [disk.crash()]
        # A second power loss during the recovery.
        disk.crash_after(Random(seed * 1000 + operation).randrange(1, 20))
        with suppress(PowerLoss):
            await recover(disk)
        lost.append(disk.crash())

        listener = await recover(disk)

        assert listener.records[: len(history.committed)] == history.committed, lost
        assert listener.leads is not None
        assert listener.leads > history.epoch, lost
        assert f"{LOG_DIRECTORY}/quorum-state" in disk.tree()


@on_a_loop
async def test_every_disk_operation_is_covered() -> None:
    disk = new_disk(0)
    before = disk.operations

    await live(disk, History())

    assert disk.operations - before == OPERATIONS
