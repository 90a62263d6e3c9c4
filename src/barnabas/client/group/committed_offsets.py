"""Committed offsets of a member: committing them, and starting new partitions at them.

Manual commits retry until done, automatic ones are best effort. If a rebalance intervenes, a commit waits for
its end and retries the partitions that the member still owns; CommitFailed names the others. In a rebalance
callback it cannot wait, so it raises at once.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.positions import PartitionState
from barnabas.client.deadline import Deadline
from barnabas.client.errors import ClientError, Refused, RequestTimedOut, is_retriable, refused
from barnabas.client.group.coordinator import Coordinator, RetryDelay
from barnabas.client.group.errors import CommitFailed, group_failed
from barnabas.client.group.offsets import Committer, OffsetAndMetadata, fetch_committed, send_commit
from barnabas.protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

# The broker does not know this generation or epoch: it is stale, or too new.
_OUTDATED: Final = frozenset(
    (
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
    )
)


class Membership(Protocol):
    """The state of the member that commits need; see member.py."""

    @property
    def committer(self) -> Committer: ...

    @property
    def losses(self) -> int: ...

    def has(self, tp: TopicPartition) -> bool: ...

    async def is_member(self, deadline: Deadline) -> bool: ...

    async def settled(self, deadline: Deadline) -> None: ...


class Commits:
    def __init__(self, core: Core, coordinator: Coordinator, membership: Membership) -> None:
        self._core = core
        self._coordinator = coordinator
        self._membership = membership
        # Last committed offsets, so that an interval without records sends no request.
        self._last_identity: dict[TopicPartition, int] = {}
        # The newest commit() call per partition: a retried older one must not overwrite it.
        self._newest: dict[TopicPartition, object] = {}

    def forget(self, tps: frozenset[TopicPartition]) -> None:
        """Forget partitions that another member may own now."""
        for tp in tps:
            self._last_identity.pop(tp, None)
            self._newest.pop(tp, None)

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: float | None = None
    ) -> None:
        """Retry until all offsets are committed or one is rejected; at the deadline raise the last error."""
        settings = self._core.settings
        deadline = Deadline(settings.default_api_timeout_ms if timeout_ms is None else timeout_ms)
        delay = RetryDelay(self._core.cluster)
        losses = self._membership.losses
        left = dict(offsets)
        mine = object()
        self._newest |= dict.fromkeys(left, mine)
        while left:
            if self._membership.losses != losses:
                raise CommitFailed(left, "this member was removed from the group")
            if not await self._membership.is_member(deadline):
                raise CommitFailed(left, "this consumer is not a member of the group")
            sent = self._membership.committer
            outdated, last = await self._try(sent, left)
            if not left:
                return
            if outdated is not None:
                await self._after_rebalance(sent, left, outdated, deadline)
                last = refused(outdated, about=f"commit for group {sent.group_id}")
            if deadline.passed:
                raise last or RequestTimedOut("commit", "the coordinator", deadline.timeout_ms)
            await delay.wait()
            # Partitions that were never assigned may be committed, too: those were not forgotten.
            self._check_ours(tp for tp in left if tp not in self._newest)
            left = {tp: one for tp, one in left.items() if self._newest.get(tp, mine) is mine}

    async def _try(
        self, sent: Committer, left: dict[TopicPartition, OffsetAndMetadata]
    ) -> tuple[ErrorCode | None, ClientError | None]:
        """Commit `left` and remove what succeeded. Return a stale-member code, or the last error."""
        try:
            codes = await send_commit(self._coordinator, sent, left)
        except ClientError as error:
            if not is_retriable(error):
                raise
            return None, error
        outdated: ErrorCode | None = None
        last: ClientError | None = None
        for tp, code in codes.items():
            if code is ErrorCode.NONE:
                self._last_identity[tp] = left.pop(tp).offset
            elif code in _OUTDATED:
                outdated = code
            elif code is ErrorCode.FENCED_INSTANCE_ID:
                raise group_failed(code, group=sent.group_id)
            else:
                last = refused(code, about=f"commit of {tp}")
                if not last.retriable:
                    raise last
        return outdated, last

    async def _after_rebalance(
        self,
        sent: Committer,
        left: Mapping[TopicPartition, OffsetAndMetadata],
        code: ErrorCode,
        deadline: Deadline,
    ) -> None:
        """Wait for the end of the rebalance. Return if a retry makes sense, otherwise raise CommitFailed."""
        if code is ErrorCode.STALE_MEMBER_EPOCH:
            # The next heartbeat returns the new epoch, even while a callback runs.
            return
        await self._membership.settled(deadline)
        if self._membership.committer == sent:
            raise CommitFailed(left, f"the member id or generation is stale: {code.name}")
        self._check_ours(left)

    def _check_ours(self, left: Iterable[TopicPartition]) -> None:
        """Raise for partitions of another member: a commit in our new generation could overwrite its own."""
        gone = [tp for tp in left if not self._membership.has(tp)]
        if gone:
            raise CommitFailed(gone, "a rebalance assigned the partitions to another member")

    async def commit_finished(
        self, at: Mapping[TopicPartition, tuple[int, int]], *, timeout_ms: float
    ) -> None:
        """Commit automatically: skip unchanged offsets, and only log errors."""
        offsets = {
            tp: OffsetAndMetadata(offset, "", epoch)
            for tp, (offset, epoch) in at.items()
            if self._last_identity.get(tp) != offset
        }
        if not offsets:
            return
        try:
            await self.commit(offsets, timeout_ms=timeout_ms)
        except ClientError as error:
            logger.warning("offset commit failed count=%d error=%s", len(offsets), error)


class StartPositions:
    """Finds the position of new partitions: the committed offset, otherwise auto.offset.reset."""

    def __init__(self, core: Core, coordinator: Coordinator, reader: Callable[[], Committer]) -> None:
        self._core = core
        self._coordinator = coordinator
        self._reader = reader

    def hold_back(self, ones: Iterable[PartitionState]) -> dict[TopicPartition, tuple[PartitionState, int]]:
        """Keep these partitions from being fetched until find() is done. A seek ends the wait."""
        waiting = {}
        for one in ones:
            # PositionUpdater skips these partitions. A seek clears the flag and starts a new generation.
            one.in_lookup = True
            waiting[one.tp] = (one, one.generation)
        return waiting

    async def find(self, waiting: dict[TopicPartition, tuple[PartitionState, int]]) -> None:
        """Retry until each partition has a start offset or was moved or removed."""
        delay = RetryDelay(self._core.cluster)
        while True:
            waiting = {tp: each for tp, each in waiting.items() if self._core.is_current(*each)}
            if not waiting:
                return
            try:
                found = await fetch_committed(
                    self._coordinator,
                    self._reader(),
                    waiting,
                    require_stable=self._core.settings.read_committed,
                )
            except ClientError as error:
                if not is_retriable(error) and not _is_transient(error):
                    self._stop_all(waiting, error)
                    return
                await delay.wait()
                continue
            for tp, offset in found.items():
                self._start_at(*waiting[tp], offset)
            self._core.wake_all()
            waiting = {tp: each for tp, each in waiting.items() if isinstance(found[tp], Refused)}
            if waiting:
                await delay.wait()

    def _start_at(self, one: PartitionState, generation: int, at: OffsetAndMetadata | Refused | None) -> None:
        if not self._core.is_current(one, generation):
            return
        match at:
            case Refused() as error:
                # A retriable error (an open transaction may have pending commits) is tried again.
                if not error.retriable:
                    one.in_lookup = False
                    self._core.stop(one, error)
            case None:
                one.reset(self._core.settings.reset_to(self._core.cluster.ports.clock.now_ms()))
            case OffsetAndMetadata(offset=offset, leader_epoch=epoch):
                one.move_to(offset, epoch)

    def _stop_all(
        self, waiting: dict[TopicPartition, tuple[PartitionState, int]], error: ClientError
    ) -> None:
        for one, generation in waiting.values():
            if self._core.is_current(one, generation):
                one.in_lookup = False
                self._core.stop(one, error)


def _is_transient(error: ClientError) -> bool:
    """Whether a membership error is worth a retry: the member's epoch may be updated soon."""
    return isinstance(error, Refused) and error.code in (
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    )
