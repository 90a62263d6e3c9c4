"""Feed events to the core and execute its effects on the log, the peers and the listener.

All effects of one event are executed before the next event, so the log that the core sees always matches its
decisions. Appends go to the log at once. Appends during a sync share the next sync, and count as replicated
here when it is done.
"""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, assert_never

from barnabas.base.clock import Clock
from barnabas.base.errors import Malformed
from barnabas.base.probes import probe
from barnabas.base.tasks import together
from barnabas.raft.batches import encode_batch, leader_change_batch
from barnabas.raft.core import RaftCore
from barnabas.raft.driver.delivery import Delivery
from barnabas.raft.driver.log_work import LogWork
from barnabas.raft.driver.peers import Peers, fetch_snapshot
from barnabas.raft.driver.waiting import Uncommitted
from barnabas.raft.effects import (
    AppendFetched,
    AppendLeaderChange,
    BecameLeader,
    Effect,
    EpochAnswer,
    FetchAnswer,
    HighWatermarkAdvanced,
    InstallSnapshot,
    LeaderChanged,
    LostLeadership,
    PersistState,
    Request,
    SendBeginEpoch,
    SendEndEpoch,
    SendFetch,
    SendVote,
    TruncateTo,
    VoteAnswer,
)
from barnabas.raft.errors import NoDescriptor, NoRoom, NotLeader, QuorumClosed
from barnabas.raft.events import Event, Flushed, SnapshotInstalled, Tick, Truncated
from barnabas.raft.facts import Election, LeaderAndEpoch
from barnabas.storage.directory.full_disk import FullDisk
from barnabas.storage.errors import StorageError, is_full
from barnabas.storage.producers.table import Origin
from barnabas.storage.shortage import is_shortage

logger = logging.getLogger(__name__)


class Engine:
    """Runs a core. Call run() until cancelled; `stopped` is the reason after it has stopped."""

    def __init__(
        self,
        *,
        node_id: int,
        voters: Collection[int],
        core: RaftCore,
        work: LogWork,
        delivery: Delivery,
        peers: Peers | None,
        clock: Clock,
    ) -> None:
        self.core: Final = core
        self.work: Final = work
        self.delivery: Final = delivery
        self.stopped: BaseException | None = None
        self.sending: set[asyncio.Task[None]] = set()
        self._node_id = node_id
        self._voters = voters
        self._peers = peers
        self._clock = clock
        self._uncommitted = Uncommitted()
        self._full = FullDisk(work.log.log.directory)
        # The epoch in which we lead and may append, or None; and the start of our last epoch.
        self._leading: int | None = None
        self._epoch_start = 0
        # Held while an event is processed.
        self._turn = asyncio.Lock()
        self._appended = asyncio.Event()
        self._news = asyncio.Event()
        self._rearm = asyncio.Event()
        self._has_stopped = asyncio.Event()
        # Set and replaced when there is news for waiting fetches.
        self._change = asyncio.Event()

    # Tasks

    async def run(self) -> None:
        """Run the timers, sync and deliver. Raises any failure of these and of other tasks."""
        try:
            async with self._turn:
                await self._carry_out(self.core.start(self._clock.monotonic_ms()))
            await together(self._keep_time(), self._sync_appended(), self._deliver(), self._watch())
        except BaseException as error:
            self.stop(error)
            raise

    async def _keep_time(self) -> None:
        while True:
            self._rearm.clear()
            at = self.core.deadline_ms
            wait_ms = None if at is None else at - self._clock.monotonic_ms()
            if wait_ms is not None and wait_ms <= 0:
                await self.feed(Tick())
                continue
            # Not wait_for(), which swallows a cancellation that comes together with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                    await self._rearm.wait()

    async def _sync_appended(self) -> None:
        while True:
            await self._appended.wait()
            self._appended.clear()
            await self.work.sync()
            await self.feed(Flushed(self.work.log.flushed_offset))
            if self.work.log.checkpoint_is_due():
                await self.checkpoint()

    async def checkpoint(self) -> None:
        """Write the recovery point. Skipped on a full disk: the next start then reads more of the log."""
        try:
            await self.work.checkpoint(self.high_watermark)
        except OSError as error:
            if not is_full(error):
                raise
            self._full.found_full(self._clock.monotonic_ms())

    async def _deliver(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while await self.delivery.deliver(self.high_watermark):
                self._uncommitted.delivered(self.delivery.next_offset)
                # Let other tasks run between the pieces of a long log.
                await asyncio.sleep(0)

    async def _watch(self) -> None:
        """Raise failures of tasks that are not awaited."""
        await self._has_stopped.wait()
        assert self.stopped is not None, "stopped without a reason"
        raise self.stopped

    def stop(self, why: BaseException) -> None:
        """Stop: reject new appends, and fail the pending ones."""
        if self.stopped is None:
            self.stopped = why
            self._has_stopped.set()
        self._leading = None
        self._uncommitted.stopped(self._why)

    @property
    def _why(self) -> str:
        return str(self.stopped) or type(self.stopped).__name__

    # Appending

    @property
    def high_watermark(self) -> int:
        known = self.core.high_watermark
        return self.work.log.log.high_watermark if known is None else known

    def append(self, epoch: int, records: Sequence[object]) -> asyncio.Future[int]:
        if self.stopped is not None:
            raise QuorumClosed(self._why)
        if self._leading is None or self._leading != epoch:
            leader = self.core.leader
            raise NotLeader(leader=leader.leader, epoch=leader.epoch, asked_epoch=epoch)
        batch = encode_batch(records, epoch=epoch, now_ms=self._clock.now_ms())
        self._uncommitted.check_room(len(batch))
        return self._uncommitted.add(self._write(batch, epoch), len(batch))

    def _write(self, batch: bytes, epoch: int) -> int:
        log, now_ms = self.work.log.log, self._clock.now_ms()
        try:
            written = log.append_as_leader(
                batch, leader_epoch=epoch, now_ms=now_ms, origin=Origin.RAFT_LEADER
            )
        except OSError as error:
            if is_full(error):
                self._full.found_full(self._clock.monotonic_ms())
                # Nothing was appended, so the caller may retry.
                raise NoRoom(log.directory) from error
            if is_shortage(error):
                raise NoDescriptor(error) from error
            self.stop(error)
            raise
        if self._full.is_full:
            self._full.found_room()
        self._appended.set()
        self._changed()
        return written.last_offset

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    async def change(self, wait_ms: int) -> None:
        """Wait for news for followers: records, a high watermark, another leader."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                await self._change.wait()

    # Events and effects

    async def feed(self, event: Event) -> list[Effect]:
        """Process one event; return after its effects are executed. QuorumClosed after a failure.

        After a failure the core may be ahead of the disk: it may know of a vote that could not be written.
        """
        try:
            async with self._turn:
                if self.stopped is not None and not isinstance(self.stopped, asyncio.CancelledError):
                    raise QuorumClosed(self._why)
                effects = self.core.step(event, self._clock.monotonic_ms())
                if any(isinstance(effect, LostLeadership) for effect in effects):
                    # Before anything is awaited, or an append would follow the end of the epoch.
                    self._leading = None
                await self._carry_out(effects)
        except Exception as error:
            self.stop(error)
            raise
        self._rearm.set()
        return effects

    async def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            probe("raft." + type(effect).__name__, effect)
            match effect:
                case PersistState(election):
                    await self._persist(election)
                case TruncateTo(offset):
                    await self.work.truncate(offset)
                    await self._carry_out(self.core.step(Truncated(), self._clock.monotonic_ms()))
                case AppendLeaderChange():
                    self._begin_epoch(effect)
                case AppendFetched(records):
                    self._append_fetched(records)
                case BecameLeader():
                    self._epoch_start = effect.start
                case LostLeadership(epoch):
                    self._leading = None
                    leader = self.core.leader
                    self._uncommitted.leadership_lost(epoch, leader, committed=self.high_watermark)
                case LeaderChanged(leader_id, epoch):
                    self._tell_leader(LeaderAndEpoch(leader_id, epoch))
                case HighWatermarkAdvanced(offset):
                    self.work.log.log.set_high_watermark(offset)
                    self._news.set()
                    self._changed()
                case SendVote() | SendBeginEpoch() | SendEndEpoch() | SendFetch():
                    self._own(self._ask(effect))
                case InstallSnapshot():
                    self._own(self._install(effect))
                case VoteAnswer() | EpochAnswer() | FetchAnswer():
                    # An answer for the caller: feed() returns it.
                    pass
                case _:
                    assert_never(effect)

    async def _persist(self, election: Election) -> None:
        try:
            await self.work.persist(election, self._voters)
        except OSError as error:
            if is_full(error):
                # A vote that a restart would forget must not be given, so a full disk is fatal here.
                raise NoRoom(self.work.log.log.directory) from error
            raise

    def _begin_epoch(self, effect: AppendLeaderChange) -> None:
        batch = leader_change_batch(
            leader=self._node_id,
            voters=self._voters,
            granting=effect.granting,
            epoch=effect.epoch,
            now_ms=self._clock.now_ms(),
        )
        self._write(batch, effect.epoch)
        self._leading = effect.epoch

    def _append_fetched(self, records: object) -> None:
        assert isinstance(records, bytes), f"fetched records have type {type(records)}"
        try:
            self.work.log.log.append_as_follower(records, self._clock.now_ms())
        except (Malformed, StorageError) as wrong:
            # Batches before the bad one may be appended; the next fetch continues after them.
            logger.error("fetched records rejected error=%s", wrong)
        self._appended.set()

    def _tell_leader(self, leader: LeaderAndEpoch) -> None:
        # Report our own leadership only after our first record, and so everything before it, is delivered.
        after = self._epoch_start + 1 if leader.leader == self._node_id else 0
        self.delivery.tell_leader(leader, after=after)
        self._news.set()
        self._changed()

    # Other nodes

    def _own(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.sending.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.sending.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stop(error)

    async def _ask(self, request: Request) -> None:
        assert self._peers is not None, f"no peers to send {request} to"
        await self.feed(await self._peers.send(request))

    async def _install(self, effect: InstallSnapshot) -> None:
        assert self._peers is not None, f"no peers for {effect}"
        here = await fetch_snapshot(self.work, self._peers, effect, self.feed)
        async with self._turn:
            # The log may have advanced without the snapshot; offsets reported to the leader must not be lost.
            if here and self.core.is_installing(effect.serial):
                await self.work.restart_at(effect.snapshot.offset)
        self._news.set()
        await self.feed(SnapshotInstalled(effect.serial))
