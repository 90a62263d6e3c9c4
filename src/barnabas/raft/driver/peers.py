"""The interface for requests to the other members of the quorum, and the transfer of the leader's snapshot.

Unused with a single voter.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, Protocol

from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.driver.log_work import LogWork
from barnabas.raft.effects import InstallSnapshot, Request
from barnabas.raft.events import Event, HeardFrom
from barnabas.raft.facts import OffsetAndEpoch
from barnabas.raft.snapshots import SnapshotFile, read_snapshot, snapshot_name


class SnapshotPart(NamedTuple):
    """A part of a snapshot, and the total size."""

    error: ErrorCode
    size: int
    data: bytes


class Peers(Protocol):
    """Sends requests and waits for the answers, for at most the request timeout."""

    async def send(self, request: Request) -> Event:
        """The answer as an event; Unanswered without a valid one."""

    async def fetch_snapshot(
        self, leader: int, epoch: int, snapshot_id: OffsetAndEpoch, position: int
    ) -> SnapshotPart | None:
        """The bytes of the leader's snapshot from `position` on; None without an answer."""


async def fetch_snapshot(
    work: LogWork,
    peers: Peers,
    wanted: InstallSnapshot,
    tell: Callable[[Event], Awaitable[object]],
) -> bool:
    """Copy the leader's snapshot to our disk, piece by piece.

    False if that fails; the next fetch then decides.
    """
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
