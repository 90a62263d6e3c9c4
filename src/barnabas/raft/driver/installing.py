"""A follower that is too far behind gets the leader's snapshot, piece by piece."""

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
    """Get the snapshot onto our disk. False if it cannot be had: the next fetch tells what to do then."""
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
    # It must be whole before the log makes room for it.
    await run(partial(read_snapshot, log.log.fs, path))
    log.snapshots = dict(sorted({**log.snapshots, wanted.snapshot: file.size}.items()))
    return True
