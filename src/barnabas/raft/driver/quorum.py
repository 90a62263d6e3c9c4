"""The quorum's interface for the rest of the broker: open, run, append, snapshot, close."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from random import Random
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.base.executor import Executor
from barnabas.base.tasks import together
from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.core import RaftCore
from barnabas.raft.description import QuorumDescription, Times, describe_observers, describe_voters
from barnabas.raft.driver.delivery import Delivery, QuorumListener
from barnabas.raft.driver.engine import Engine
from barnabas.raft.driver.log_work import LogWork
from barnabas.raft.driver.opening import open_metadata_log
from barnabas.raft.driver.peers import Peers, SnapshotPart
from barnabas.raft.driver.snapshotting import SnapshotAges, check_snapshot_id, clean, write_snapshot
from barnabas.raft.effects import Answer, EpochAnswer, FetchAnswer, VoteAnswer
from barnabas.raft.errors import (
    NoRoom,
    NotLeader,
    QuorumClosed,
    metadata_damaged,
    metadata_failed,
)
from barnabas.raft.events import Event, FetchRequested, ResignRequested
from barnabas.raft.facts import METADATA, NONE, LeaderAndEpoch, OffsetAndEpoch, Voter
from barnabas.raft.roles import Leader
from barnabas.raft.settings import QuorumSettings
from barnabas.raft.snapshots import read_part, snapshot_name
from barnabas.storage.errors import is_full
from barnabas.storage.files import FileSystem
from barnabas.storage.names import directory_name
from barnabas.storage.warming import warmed

logger = logging.getLogger(__name__)

# How often old snapshots are deleted and the recovery point is written.
UPKEEP_MS: Final = 60_000
# Limits for requests: how long a follower's fetch waits, and how much of a snapshot is read at once.
FETCH_WAIT_MAX_MS: Final = 500
SNAPSHOT_PART_MAX: Final = 1024 * 1024


class Quorum:
    """One node of the quorum. Call open(), then run() until it is cancelled, then close()."""

    def __init__(
        self,
        *,
        fs: FileSystem,
        clock: Clock,
        executor: Executor,
        rng: Random,
        directory: str,
        node_id: int,
        voters: Sequence[Voter],
        settings: QuorumSettings,
        cluster_id: str,
        listener: QuorumListener,
        peers: Peers | None = None,
    ) -> None:
        self.node_id: Final = node_id
        self.cluster_id: Final = cluster_id
        self.voters: Final = {voter.id: voter for voter in voters}
        self.settings: Final = settings
        assert peers is not None or set(self.voters) == {node_id}, "several voters need peers"
        self._fs = fs
        self._clock = clock
        self._executor = executor
        self._rng = rng
        self._directory = directory
        self._listener = listener
        self._peers = peers
        self._engine: Engine | None = None
        self._snapshot_turn = asyncio.Lock()
        self._snapshot_at_ms = clock.monotonic_ms()
        self._ages = SnapshotAges()

    async def open(self) -> None:
        """Open the log, and deliver the newest snapshot. There is no election yet.

        Raises MetadataUnreadable with the unusable file and a remedy.
        """
        directory = f"{self._directory}/{directory_name(METADATA)}"
        try:
            await self._open()
        except BarnabasError as wrong:
            raise metadata_damaged(directory, wrong) from wrong
        except OSError as error:
            raise metadata_failed(directory, error) from error

    async def _open(self) -> None:
        job = partial(
            open_metadata_log,
            self._fs,
            self._directory,
            self.settings.log_config(),
            now_ms=self._clock.now_ms(),
        )
        found = await self._executor.run(job)
        for finding in found.findings:
            logger.warning("metadata log: %s", finding)
        log = found.log
        work = LogWork(log, self._executor, self._clock)
        delivery = Delivery(log, self._executor, self._listener)
        if found.snapshot_id is not None and found.snapshot is not None:
            if not log.has(found.snapshot_id):
                # A leader's snapshot was installed, but the log was not restarted at it.
                await work.restart_at(found.snapshot_id.offset)
            log.log.set_high_watermark(found.snapshot_id.offset)
            delivery.load(found.snapshot_id, found.snapshot)
        core = RaftCore(
            me=self.node_id,
            voters=self.voters,
            log=log,
            election=found.election,
            settings=self.settings,
            rng=self._rng,
        )
        self._engine = Engine(
            node_id=self.node_id,
            voters=self.voters,
            core=core,
            work=work,
            delivery=delivery,
            peers=self._peers,
            clock=self._clock,
        )

    async def run(self) -> None:
        """Elect, sync and deliver until cancelled. Raises errors of the disk and of the listener."""
        await together(self._opened.run(), self._keep_up())

    async def _keep_up(self) -> None:
        engine = self._opened
        while True:
            await asyncio.sleep(UPKEEP_MS / 1000)
            try:
                await engine.checkpoint()
                async with self._snapshot_turn:
                    await clean(engine.work, self.settings, self._ages)
            except Exception as error:
                # Report it to the engine, which otherwise only sees that it is cancelled.
                engine.stop(error)
                raise

    async def close(self) -> None:
        """Resign and close the log, so that the next start needs no recovery. run() must have ended."""
        engine, self._engine = self._engine, None
        if engine is None:
            return
        failure = engine.stopped
        if failure is None or isinstance(failure, asyncio.CancelledError):
            await engine.feed(ResignRequested())
            if engine.sending:
                await asyncio.wait(engine.sending, timeout=self.settings.request_timeout_ms / 1000)
            try:
                await engine.work.close(engine.high_watermark)
            except OSError as error:
                if not is_full(error):
                    raise
                # Committed records are on the disk. The next start rebuilds the rest.
                logger.error("metadata log not closed cleanly error=%s", error.strerror)
        # After a failure the state of the disk is unknown; the next start recovers it.
        engine.stop(QuorumClosed("close() was called"))
        for task in engine.sending:
            task.cancel()

    @property
    def _opened(self) -> Engine:
        if self._engine is None:
            raise QuorumClosed("open() was not called")
        return self._engine

    # State

    @property
    def leader(self) -> LeaderAndEpoch:
        return self._opened.core.leader

    @property
    def high_watermark(self) -> int:
        """Everything below it is committed. After a start it is the end of the snapshot, or the log start,
        until a leader reports more."""
        return self._opened.high_watermark

    @property
    def end_offset(self) -> int:
        return self._opened.work.log.log.end_offset

    @property
    def log_start_offset(self) -> int:
        return self._opened.work.log.start_offset

    @property
    def delivered(self) -> OffsetAndEpoch:
        """The end of the delivered batches, which names a snapshot of the listener's state."""
        return self._opened.delivery.last

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return self._opened.work.log.latest_snapshot

    @property
    def bytes_since_snapshot(self) -> int:
        """Bytes of batches delivered since the last snapshot."""
        return self._opened.delivery.bytes_since_snapshot

    @property
    def ms_since_snapshot(self) -> int:
        """Time since the last snapshot of this run, or since its start."""
        return self._clock.monotonic_ms() - self._snapshot_at_ms

    def describe(self) -> QuorumDescription:
        """Describe the quorum. NotLeader unless this node leads."""
        core = self._opened.core
        role = core.role
        if not isinstance(role, Leader):
            raise NotLeader(leader=core.leader.leader, epoch=core.leader.epoch, asked_epoch=core.leader.epoch)
        times = Times(self._clock.monotonic_ms(), self._clock.now_ms())
        return QuorumDescription(
            leader=self.node_id,
            epoch=core.leader.epoch,
            high_watermark=NONE if core.high_watermark is None else core.high_watermark,
            voters=describe_voters(role.replicas, self.voters, log_end=self.end_offset, times=times),
            observers=describe_observers(role.replicas, times),
        )

    # Operations

    def append(self, epoch: int, records: Sequence[object]) -> asyncio.Future[int]:
        """Append one atomic batch as the leader of `epoch`. NotLeader if this node does not lead.

        The future resolves to the batch's last offset once it is committed and delivered. The batch starts at
        the end_offset of before the call.
        """
        return self._opened.append(epoch, records)

    async def answer(self, event: Event) -> Answer:
        """Process another node's request and return the answer."""
        for effect in await self._opened.feed(event):
            if isinstance(effect, (VoteAnswer, EpochAnswer, FetchAnswer)):
                return effect
        raise AssertionError(f"{event} is not a request")

    async def fetch(
        self, asked: FetchRequested, *, wait_ms: int, bytes_max: int
    ) -> tuple[FetchAnswer, bytes]:
        """Answer another node's fetch, at once if there are records, otherwise when there is news."""
        answer = await self.answer(asked)
        if isinstance(answer, FetchAnswer) and answer.read_from == self.end_offset and wait_ms > 0:
            await self._opened.change(min(wait_ms, FETCH_WAIT_MAX_MS))
            answer = await self.answer(asked)
        assert isinstance(answer, FetchAnswer), f"{answer} does not answer a fetch"
        if answer.read_from is None:
            return answer, b""
        log = self._opened.work.log.log
        read = partial(log.read, answer.read_from, upto=log.end_offset, bytes_max=bytes_max)
        return answer, (await warmed(log, self._executor, read)).read()

    async def read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, bytes_max: int) -> SnapshotPart:
        """Read a part of a snapshot for a follower."""
        log = self._opened.work.log
        size = log.snapshots.get(snapshot_id)
        if size is None:
            return SnapshotPart(ErrorCode.SNAPSHOT_NOT_FOUND, 0, b"")
        if not 0 <= position < size:
            return SnapshotPart(ErrorCode.POSITION_OUT_OF_RANGE, size, b"")
        path = f"{log.log.directory}/{snapshot_name(snapshot_id)}"
        read = partial(read_part, self._fs, path, position, max(1, min(bytes_max, SNAPSHOT_PART_MAX)))
        return SnapshotPart(ErrorCode.NONE, size, await self._executor.run(read))

    async def write_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterable[object]) -> None:
        """Write a snapshot of everything below its offset, and delete old snapshots and log segments.

        BadSnapshotId if some of it is not committed, NoRoom if the disk is full. Other OSErrors go to the
        caller: a failed snapshot does not harm the log.
        """
        engine = self._opened
        async with self._snapshot_turn:
            check_snapshot_id(engine.work.log, snapshot_id, engine.high_watermark)
            before = engine.delivery.bytes_since_snapshot
            try:
                await write_snapshot(engine.work, snapshot_id, records)
            except OSError as error:
                if is_full(error):
                    raise NoRoom(engine.work.log.log.directory) from error
                raise
            engine.delivery.bytes_since_snapshot -= before
            self._snapshot_at_ms = self._clock.monotonic_ms()
            await clean(engine.work, self.settings, self._ages)
