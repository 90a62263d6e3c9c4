"""The controller at work: requests in, records to the quorum, answers out once they are committed.

The only file of this room that waits. Between decide() and apply() there is no await: what is decided is
decided on everything that was decided before. Nothing is acknowledged that is not committed, and nothing is
answered on the strength of something that is not: a request that changes nothing waits as well, for what it
was decided on.

It is the quorum's listener too: batches go to the loader, and its images to the controller while that is not
active.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from barnabas.base.clock import Clock
from barnabas.base.faults import report_fault
from barnabas.base.tasks import keep_running, together
from barnabas.controller.controller import Controller
from barnabas.controller.decision import Decision
from barnabas.controller.refusals import refusal
from barnabas.controller.versions import as_written
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.loader import Batch, MetadataLoader
from barnabas.metadata.snapshot import records_of
from barnabas.metadata.snapshot_schedule import SnapshotSchedule
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import UpdateFeaturesRequest
from barnabas.raft.errors import NotLeader, QuorumClosed, RaftError, RecordsTooLarge, TooMuchUncommitted
from barnabas.raft.facts import OffsetAndEpoch

logger = logging.getLogger(__name__)

# Requests that may wait for being committed; one more is told to come again.
REQUESTS_WAITING_MAX: Final = 1_000
# Records of one batch, where a decision may be cut into several.
RECORDS_PER_BATCH_MAX: Final = 10_000
# How long a request waits that does not say it itself.
REQUEST_TIMEOUT_MS: Final = 30_000
# Decisions of what is due that are made in one turn.
DUE_AT_ONCE_MAX: Final = 10
# How long to wait before something that is due is tried again, if the log takes no more.
RETRY_MS: Final = 100
# The same if it failed by a mistake of ours.
FAILED_MS: Final = 1_000


class QuorumPort(Protocol):
    """What is used of raft.driver.Quorum."""

    @property
    def end_offset(self) -> int: ...
    @property
    def bytes_since_snapshot(self) -> int: ...
    @property
    def ms_since_snapshot(self) -> int: ...

    def append(self, epoch: int, records: Sequence[object]) -> "asyncio.Future[int]": ...

    async def write_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterable[object]) -> None: ...


class ImageListener(Protocol):
    def __call__(self, image: MetadataImage, changes: Changes) -> None: ...


class Leader(NamedTuple):
    """Who is the active controller, as far as is known here."""

    id: int | None
    epoch: int


class ControllerShell:
    """attach() the quorum before it is opened; run() until cancelled."""

    def __init__(
        self,
        controller: Controller,
        clock: Clock,
        *,
        snapshots: SnapshotSchedule,
        on_image: ImageListener | None = None,
    ) -> None:
        self.controller: Final = controller
        self.leader = Leader(None, -1)
        self._clock = clock
        self._snapshots = snapshots
        self._listener = on_image
        self._loader = MetadataLoader(self._on_image)
        # Until a leader is known, the log is being read from its beginning.
        self._loader.hold()
        self._quorum: QuorumPort | None = None
        # The last append: what is decided now is decided on it.
        self._last: asyncio.Future[int] | None = None
        self._waiting = 0
        self._stirred = asyncio.Event()
        self._published = asyncio.Event()
        # Why this controller cannot go on, once it cannot.
        self._broken: Exception | None = None
        self._has_broken = asyncio.Event()

    def attach(self, quorum: QuorumPort) -> None:
        self._quorum = quorum

    @property
    def image(self) -> MetadataImage:
        """The latest that is committed and published."""
        return self._loader.image

    # Requests

    async def call(self, request: object) -> object:
        """The answer to a request of controller.DECISIONS; what goes wrong is in the answer."""
        if self._waiting >= REQUESTS_WAITING_MAX:
            return refusal(request, ErrorCode.THROTTLING_QUOTA_EXCEEDED, "Too many requests are waiting.")
        if self.controller.epoch is None:
            return refusal(request, ErrorCode.NOT_CONTROLLER, self._who_is())
        try:
            now_ms = self._clock.monotonic_ms()
            decision = self.controller.decide(request, next_offset=self._log.end_offset, now_ms=now_ms)
            committed = self._write(decision, now_ms)
        except RaftError as error:
            return refusal(request, _code_of(error), str(error))
        return await self._answer(request, decision, committed)

    async def _answer(
        self, request: object, decision: Decision, committed: "asyncio.Future[int] | None"
    ) -> object:
        if committed is not None:
            timeout_ms = _timeout_ms(request)
            self._waiting += 1
            try:
                # It is not cancelled when the time is over: the records may be committed all the same.
                done, _ = await asyncio.wait({committed}, timeout=timeout_ms / 1000)
            finally:
                self._waiting -= 1
            if not done:
                return refusal(request, ErrorCode.REQUEST_TIMED_OUT, f"Not committed in {timeout_ms} ms.")
            error = QuorumClosed("it was cancelled") if committed.cancelled() else committed.exception()
            if isinstance(error, RaftError):
                return refusal(request, _code_of(error), str(error))
            if error is not None:
                raise error
        assert decision.response is not None
        return decision.response

    def _write(self, decision: Decision, now_ms: int) -> "asyncio.Future[int] | None":
        """Append and apply. The last append that the decision stands on, None if all of it is committed."""
        epoch = self.controller.epoch
        assert epoch is not None
        for part in _parts(decision):
            base_offset = self._log.end_offset
            if part.records:
                self._last = self._log.append(epoch, [as_written(record) for record in part.records])
                self._last.add_done_callback(_seen)
            try:
                self.controller.apply(part, base_offset=base_offset, now_ms=now_ms)
            except Exception as error:
                self._broken = error
                self._has_broken.set()
                raise
        if decision.contact is not None:
            self._stirred.set()
        return None if self._last is None or (self._last.done() and not _failed(self._last)) else self._last

    # What is done unasked

    async def run(self) -> None:
        """Do what is due while active, and have snapshots written, until cancelled. An error is raised."""
        await together(
            self._do_what_is_due(), keep_running("metadata snapshots", self._write_snapshots), self._watch()
        )

    async def _watch(self) -> None:
        """End run() when a decision was written and not applied: memory and log differ from then on."""
        await self._has_broken.wait()
        assert self._broken is not None
        raise self._broken

    async def _do_what_is_due(self) -> None:
        while True:
            self._stirred.clear()
            wait_ms = None
            if self.controller.epoch is not None:
                now_ms = self._clock.monotonic_ms()
                try:
                    is_done = self._do_due(now_ms)
                    wait_ms = max(self.controller.next_due_ms(now_ms) - now_ms, 1) if is_done else FAILED_MS
                except TooMuchUncommitted as full:
                    logger.warning("controller: %s", full)
                    wait_ms = RETRY_MS
                except (NotLeader, QuorumClosed) as gone:
                    # The quorum says who leads next, and that is when there is something to do again.
                    logger.info("controller: %s", gone)
            try:
                async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                    await self._stirred.wait()
            except TimeoutError:
                continue

    def _do_due(self, now_ms: int) -> bool:
        """Not more than so much at once: requests want their turn, and the rest is still due then.

        False if it failed by a mistake of ours. Nothing was decided then, and requests are served as before.
        """
        for _ in range(DUE_AT_ONCE_MAX):
            try:
                decision = self.controller.due(next_offset=self._log.end_offset, now_ms=now_ms)
            except Exception as error:
                report_fault(logger, error, "controller: what is due failed")
                return False
            if decision is None:
                return True
            self._write(decision, now_ms)
        return True

    async def _write_snapshots(self) -> None:
        while True:
            await self._published.wait()
            self._published.clear()
            quorum, image = self._log, self.image
            if image.offset >= 0 and self._snapshots.is_due(
                bytes_since=quorum.bytes_since_snapshot, ms_since=quorum.ms_since_snapshot
            ):
                snapshot_id = OffsetAndEpoch(image.offset + 1, image.epoch)
                await quorum.write_snapshot(snapshot_id, records_of(image))
                logger.info("metadata snapshot written offset=%d epoch=%d", *snapshot_id)

    # The quorum's listener

    def load_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterable[object]) -> None:
        self._loader.load_snapshot(snapshot_id, records)

    def committed(self, batch: Batch) -> None:
        self._loader.committed(batch)

    def leader_changed(self, leader: int | None, epoch: int) -> None:
        self.leader = Leader(leader, epoch)
        # What was appended in an epoch before is committed by now, or it is gone and so is what stood on it.
        self._last = None
        self._loader.release()
        if leader == self.controller.settings.node_id:
            self._become_active(epoch)
        elif self.controller.epoch is not None:
            logger.info("controller: no longer active, epoch=%d leader=%s", epoch, leader)
            self.controller.renounce(self.image)
        self._stirred.set()

    def _become_active(self, epoch: int) -> None:
        now_ms = self._clock.monotonic_ms()
        decision = self.controller.claim(
            epoch, self.image, in_transaction=self._loader.in_transaction, now_ms=now_ms
        )
        logger.info("controller: active, epoch=%d offset=%d", epoch, self.image.offset)
        try:
            self._write(decision, now_ms)
        except NotLeader as lost:
            logger.info("controller: %s", lost)
            self.controller.renounce(self.image)

    def _on_image(self, image: MetadataImage, changes: Changes) -> None:
        if self.controller.epoch is None:
            self.controller.follow(image)
        self._published.set()
        if self._listener is not None:
            self._listener(image, changes)

    @property
    def _log(self) -> QuorumPort:
        assert self._quorum is not None, "attach() comes first"
        return self._quorum

    def _who_is(self) -> str:
        if self.leader.id is None:
            return "No controller is known to be active."
        return f"The active controller appears to be node {self.leader.id}."


def _timeout_ms(request: object) -> int:
    """As long as the request says, if it says it and Kafka listens."""
    if isinstance(request, UpdateFeaturesRequest):
        return REQUEST_TIMEOUT_MS
    return max(getattr(request, "timeout_ms", REQUEST_TIMEOUT_MS), 0)


def _parts(decision: Decision) -> list[Decision]:
    """The decision in batches. What it means for a session belongs to the last."""
    records = decision.records
    if decision.atomic or len(records) <= RECORDS_PER_BATCH_MAX:
        return [decision]
    cuts = range(0, len(records), RECORDS_PER_BATCH_MAX)
    parts = [Decision(records[at : at + RECORDS_PER_BATCH_MAX]) for at in cuts]
    parts[-1] = Decision(parts[-1].records, contact=decision.contact)
    return parts


def _code_of(error: RaftError) -> ErrorCode:
    match error:
        case RecordsTooLarge():
            return ErrorCode.POLICY_VIOLATION
        case TooMuchUncommitted():
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        case _:
            return ErrorCode.NOT_CONTROLLER


def _failed(future: "asyncio.Future[int]") -> bool:
    return future.cancelled() or future.exception() is not None


def _seen(future: "asyncio.Future[int]") -> None:
    """An append that nobody waits for may fail: who leads next is told by the quorum."""
    if not future.cancelled():
        future.exception()
