"""Fetch the leader's snapshot piece by piece, for a follower that lags too far."""

from collections.abc import Awaitable, Callable
from functools import partial

from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.driver.log_work import LogWork
from barnabas.raft.effects import InstallSnapshot
from barnabas.raft.events import Event, HeardFrom
from barnabas.raft.peers import Peers
from barnabas.raft.snapshots import SnapshotFile, read_snapshot, snapshot_name


async def fetch_snapshot(
    work: LogWork,
    peers: Peers,
    wanted: InstallSnapshot,
    tell: Callable[[Event], Awaitable[object]],
) -> bool:
    """Copy the snapshot to our disk. False if that fails; the next fetch then decides."""
    log, run = work.log, work.executor.run
    if wanted.snapshot in log.snapshots:
        return True
    path = f"{log.log.directory}/{snapshot_name(wanted.snapshot)}"
    file = await run(partial(SnapshotFile, log.log.fs, path))
    while True:
        part = await peers.fetch_snapshot(wanted.leader, wanted.epoch, wanted.snapshot, file.size)
        if part is None or part.error != ErrorCode.NONE or not part.data:
            await run(file.abandon)
            return False
        await tell(HeardFrom(wanted.leader))
        await run(partial(file.append, part.data))
        if file.size >= part.size:
            break
    await run(file.freeze)
    # Check the snapshot before the log is replaced by it.
    await run(partial(read_snapshot, log.log.fs, path))
    log.snapshots = dict(sorted({**log.snapshots, wanted.snapshot: file.size}.items()))
    return True
