"""Runs the controller: handle requests, append records to the quorum, respond once they are committed.

This is the only file of the package with asyncio. There is no await between decide() and apply(), so every
decision is based on all earlier ones. A response is sent only when all records are committed on which it is
based: a request that changes nothing waits for earlier decisions, too.

It is also the quorum's listener: batches go to the loader, and its images to the controller on standby.
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
from barnabas.controller.registrations import as_written
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.loader import Batch, MetadataLoader
from barnabas.metadata.snapshot import SnapshotSchedule, records_of
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import UpdateFeaturesRequest
from barnabas.raft.errors import (
    NoRoom,
    NotLeader,
    QuorumClosed,
    RaftError,
    RecordsTooLarge,
    TryAgain,
)
from barnabas.raft.facts import OffsetAndEpoch

logger = logging.getLogger(__name__)

# Maximum number of requests that wait for a commit; further ones get a retriable error.
REQUESTS_WAITING_MAX: Final = 1_000
# Records per batch of a decision that is not atomic.
RECORDS_PER_BATCH_MAX: Final = 10_000
# The timeout of requests without one of their own.
REQUEST_TIMEOUT_MS: Final = 30_000
# Maximum number of periodic decisions per iteration.
DUE_AT_ONCE_MAX: Final = 10
# Delay before periodic work is retried if too many records are uncommitted.
RETRY_MS: Final = 100
# The same if the disk is full. A metadata snapshot waits longer, because it needs more space.
FULL_RETRY_MS: Final = 1_000
FULL_SNAPSHOT_RETRY_S: Final = 30.0
# The same after a bug.
FAILED_MS: Final = 1_000


class QuorumPort(Protocol):
    """The part of raft.driver.Quorum that is used here."""

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
    """The active controller, if known."""

    id: int | None
    epoch: int


class ControllerShell:
    """Call attach() before the quorum is opened, then run() until cancelled."""

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
        # Hold images while the log is read from its beginning, until a leader is known.
        self._loader.hold()
        self._quorum: QuorumPort | None = None
        # The last append, on which new decisions are based.
        self._last: asyncio.Future[int] | None = None
        self._waiting = 0
        self._wake = asyncio.Event()
        self._published = asyncio.Event()
        # The error after which this controller must stop.
        self._failure: Exception | None = None
        self._failure_event = asyncio.Event()

    def attach(self, quorum: QuorumPort) -> None:
        self._quorum = quorum

    @property
    def image(self) -> MetadataImage:
        """The latest committed and published image."""
        return self._loader.image

    # Requests

    async def call(self, request: object) -> object:
        """Handle a request of controller.DECISIONS. Errors are in the response."""
        if self._waiting >= REQUESTS_WAITING_MAX:
            return refusal(request, ErrorCode.THROTTLING_QUOTA_EXCEEDED, "Too many requests are waiting.")
        if self.controller.epoch is None:
            return refusal(request, ErrorCode.NOT_CONTROLLER, self._describe_active())
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
                # Do not cancel it on a timeout: the records may still be committed.
                done, _ = await asyncio.wait({committed}, timeout=timeout_ms / 1000)
            finally:
                self._waiting -= 1
            if not done:
                return refusal(request, ErrorCode.REQUEST_TIMED_OUT, f"Not committed in {timeout_ms} ms.")
            error = (
                QuorumClosed("the append was cancelled") if committed.cancelled() else committed.exception()
            )
            if isinstance(error, RaftError):
                return refusal(request, _code_of(error), str(error))
            if error is not None:
                raise error
        assert decision.response is not None
        return decision.response

    def _write(self, decision: Decision, now_ms: int) -> "asyncio.Future[int] | None":
        """Append and apply a decision. Return the last append that it is based on, None if committed."""
        epoch = self.controller.epoch
        assert epoch is not None
        for part in _parts(decision):
            base_offset = self._log.end_offset
            if part.records:
                self._last = self._log.append(epoch, [as_written(record) for record in part.records])
                self._last.add_done_callback(_retrieve_error)
            try:
                self.controller.apply(part, base_offset=base_offset, now_ms=now_ms)
            except Exception as error:
                self._failure = error
                self._failure_event.set()
                raise
        if decision.contact is not None:
            self._wake.set()
        return None if self._last is None or (self._last.done() and not _failed(self._last)) else self._last

    # Periodic work

    async def run(self) -> None:
        """Do periodic work while active, and write snapshots, until cancelled. Raises fatal errors."""
        await together(
            self._do_what_is_due(), keep_running("metadata snapshots", self._write_snapshots), self._watch()
        )

    async def _watch(self) -> None:
        """End run() if a decision was written but not applied, because memory and log differ then."""
        await self._failure_event.wait()
        assert self._failure is not None
        raise self._failure

    async def _do_what_is_due(self) -> None:
        while True:
            self._wake.clear()
            wait_ms = None
            if self.controller.epoch is not None:
                now_ms = self._clock.monotonic_ms()
                try:
                    is_done = self._do_due(now_ms)
                    wait_ms = max(self.controller.next_due_ms(now_ms) - now_ms, 1) if is_done else FAILED_MS
                except TryAgain as full:
                    logger.warning("controller append delayed error=%s", full)
                    wait_ms = RETRY_MS
                except NoRoom:
                    # Logged by the quorum.
                    wait_ms = FULL_RETRY_MS
                except (NotLeader, QuorumClosed) as gone:
                    # Wait for the quorum to report the next leader.
                    logger.info("controller append rejected error=%s", gone)
            try:
                async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _do_due(self, now_ms: int) -> bool:
        """Do up to DUE_AT_ONCE_MAX decisions, so that requests are served in between.

        False after a bug. Nothing was decided then, and requests are still served.
        """
        for _ in range(DUE_AT_ONCE_MAX):
            try:
                decision = self.controller.due(next_offset=self._log.end_offset, now_ms=now_ms)
            except Exception as error:
                report_fault(logger, error, "controller periodic work failed")
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
                try:
                    await quorum.write_snapshot(snapshot_id, records_of(image))
                except NoRoom as full:
                    offset = snapshot_id.offset
                    logger.warning("metadata snapshot not written offset=%d error=%s", offset, full)
                    await asyncio.sleep(FULL_SNAPSHOT_RETRY_S)
                    continue
                logger.info("metadata snapshot written offset=%d epoch=%d", *snapshot_id)

    # The quorum's listener

    def load_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterable[object]) -> None:
        self._loader.load_snapshot(snapshot_id, records)

    def committed(self, batch: Batch) -> None:
        self._loader.committed(batch)

    def leader_changed(self, leader: int | None, epoch: int) -> None:
        self.leader = Leader(leader, epoch)
        # Appends of earlier epochs are committed by now, or lost together with everything based on them.
        self._last = None
        self._loader.release()
        if leader == self.controller.settings.node_id:
            self._become_active(epoch)
        elif self.controller.epoch is not None:
            logger.info("controller on standby epoch=%d leader=%s", epoch, leader)
            self.controller.renounce(self.image)
        self._wake.set()

    def _become_active(self, epoch: int) -> None:
        now_ms = self._clock.monotonic_ms()
        decision = self.controller.claim(
            epoch, self.image, in_transaction=self._loader.in_transaction, now_ms=now_ms
        )
        logger.info("controller active epoch=%d offset=%d", epoch, self.image.offset)
        try:
            self._write(decision, now_ms)
        except NotLeader as lost:
            logger.info("controller append rejected error=%s", lost)
            self.controller.renounce(self.image)

    def _on_image(self, image: MetadataImage, changes: Changes) -> None:
        if self.controller.epoch is None:
            self.controller.follow(image)
        self._published.set()
        if self._listener is not None:
            self._listener(image, changes)

    @property
    def _log(self) -> QuorumPort:
        assert self._quorum is not None, "attach() was not called"
        return self._quorum

    def _describe_active(self) -> str:
        if self.leader.id is None:
            return "No controller is known to be active."
        return f"The active controller appears to be node {self.leader.id}."


def _timeout_ms(request: object) -> int:
    """The request's own timeout, if it has one and Kafka uses it."""
    if isinstance(request, UpdateFeaturesRequest):
        return REQUEST_TIMEOUT_MS
    return max(getattr(request, "timeout_ms", REQUEST_TIMEOUT_MS), 0)


def _parts(decision: Decision) -> list[Decision]:
    """Split the decision into batches; the contact belongs to the last one."""
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
        case TryAgain():
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        case NoRoom():
            return ErrorCode.KAFKA_STORAGE_ERROR
        case _:
            return ErrorCode.NOT_CONTROLLER


def _failed(future: "asyncio.Future[int]") -> bool:
    return future.cancelled() or future.exception() is not None


def _retrieve_error(future: "asyncio.Future[int]") -> None:
    """Mark an append's error as retrieved; it may have no waiter."""
    if not future.cancelled():
        future.exception()
