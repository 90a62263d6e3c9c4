"""The host of one shard: executes the outcomes of the core from loading until the shard is closed.

All outcomes go through carry_out(): write, apply, answer when committed. Under load, the outcomes of one loop
iteration are written as one batch at its end, because an append costs as much as a request. If a write fails
the shard is lost: the core's memory may be ahead of its log. All pending requests are refused, and the
coordinator reloads the shard if this broker still leads the partition.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final, Generic

from barnabas.base.clock import Clock
from barnabas.coordinators.decision.outcome import EndMarker, InTransaction, Now, Outcome, ReplyTo
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.runtime.ports import AnyShard, CannotWrite, LedPartition, RefusedByLog
from barnabas.coordinators.runtime.writing import (
    OutcomeBatch,
    TooLarge,
    batches,
    marker_batch,
    one_batch,
    stamped_batch,
)
from barnabas.protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

# After this many single writes, batching is tried for one loop iteration; the interval doubles while no
# second outcome arrives in the same iteration.
BATCHING_TRIED_AFTER_MIN: Final = 8
BATCHING_TRIED_AFTER_MAX: Final = 64
# Limits of timers that expire in one loop iteration, by number and by time. The rest expire in a later
# iteration.
TIMERS_AT_ONCE_MAX: Final = 256
# Answers given in one loop iteration. The rest are given in later iterations.
ANSWERS_AT_ONCE_MAX: Final = 500
_FIRE_MS_MAX: Final = 5
_FIRE_TOGETHER: Final = 8


class State(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    LOST = "lost"


_ACTIVE: Final = State.ACTIVE


class ShardHost(Generic[AnyShard]):
    """`on_lost` is called once, when the shard fails; not when close() is called."""

    def __init__(
        self,
        partition: LedPartition,
        shard: AnyShard,
        clock: Clock,
        *,
        commit_timeout_ms: Callable[[], int],
        on_lost: Callable[["ShardHost[AnyShard]"], None],
    ) -> None:
        self.partition: Final = partition
        self.shard: Final = shard
        self.state = State.LOADING
        # Bound once, because every request uses these.
        self._apply = shard.apply
        self._timers = shard.timers
        self._now_ms = clock.now_ms
        self._tick_ms = clock.monotonic_ms
        self._commit_timeout_ms = commit_timeout_ms
        self._on_lost = on_lost
        self._is_batching = False
        self._tried_after = self._until_tried = BATCHING_TRIED_AFTER_MIN
        # The batch of this loop iteration, and the answers to give when it is committed.
        self._batch: OutcomeBatch | None = None
        self._unanswered: list[tuple[ReplyTo, object]] = []
        self._turn_end: asyncio.Handle | None = None
        # Answers that wait until the log is committed up to an offset: (offset, deadline, answers).
        self._pending: deque[tuple[int, int, list[tuple[ReplyTo, object]]]] = deque()
        # Answers beyond ANSWERS_AT_ONCE_MAX, given in later loop iterations.
        self._to_give: deque[tuple[ReplyTo, object]] = deque()
        self._giving: asyncio.Handle | None = None
        self._wakeup: asyncio.TimerHandle | None = None
        self._wakeup_ms = 0
        partition.on_committed = self.committed

    def now(self) -> Now:
        return Now(self._now_ms(), self._tick_ms())

    def activate(self) -> None:
        """Start serving: the log has been replayed."""
        assert self.state is State.LOADING
        self.state = State.ACTIVE
        self.run(self.shard.loaded)

    # Decisions

    def ask(self, act: Callable[[AnyShard, ReplyTo, Now], Outcome], to: ReplyTo) -> Outcome:
        """Let the core decide a request and carry out its outcome. A bug loses the shard and is raised."""
        now = self.now()
        try:
            outcome = act(self.shard, to, now)
        except Exception:
            self.lose_after_bug()
            raise
        self.carry_out(outcome, now)
        return outcome

    def carry_out(self, outcome: Outcome, now: Now) -> None:
        """Write, apply and answer an outcome. A bug loses the shard and is raised."""
        try:
            self._carry_out(outcome, now)
        except Exception:
            self.lose_after_bug(outcome)
            raise
        self._schedule_wakeup()

    def lose_after_bug(self, outcome: Outcome | None = None) -> None:
        """The core has raised. Its state may be inconsistent, so the shard is lost."""
        self._lose(ErrorCode.UNKNOWN_SERVER_ERROR, outcome)

    def run(self, act: Callable[[Now], Outcome]) -> None:
        """Decide an internal event. A bug loses the shard and is logged, so that the caller can continue."""
        now = self.now()
        outcome: Outcome | None = None
        try:
            outcome = act(now)
            self._carry_out(outcome, now)
            self._schedule_wakeup()
        except Exception:
            self.lose_after_bug(outcome)
            logger.exception("shard failed partition=%s", self.partition.name)

    def _carry_out(self, outcome: Outcome, now: Now) -> None:
        if not outcome.records:
            if self._batch is None:
                self._answer_when_committed(outcome.answers, self.partition.end_offset, now)
            else:
                # The answer may depend on unwritten records.
                self._unanswered += outcome.answers
            return
        end: int | None = None
        try:
            if outcome.stamp is not None:
                end = self._write_stamped(outcome, outcome.stamp, now)
            elif outcome.is_divisible or not outcome.answers:
                end = self._write_batches(outcome, now)
            elif self._is_batching or self._is_to_try_batching():
                self._add_to_batch(outcome, now)
            else:
                partition = self.partition
                end = partition.append(one_batch(outcome.records, partition.next_batch(), now.ms), now.ms)
        except RefusedByLog as error:
            _refuse(outcome, error.code)
            return
        except TooLarge as error:
            logger.error("records too large partition=%s error=%s", self.partition.name, error)
            if outcome.is_tentative:
                _refuse(outcome, ErrorCode.UNKNOWN_SERVER_ERROR)
            else:
                self._lose(ErrorCode.UNKNOWN_SERVER_ERROR, outcome)
            return
        except CannotWrite as error:
            self._not_written(error, outcome)
            return
        apply = self._apply
        for record in outcome.records:
            apply(record)
        if end is not None:
            self._answer_when_committed(outcome.answers, end, now)

    # Writing

    def _is_to_try_batching(self) -> bool:
        self._until_tried -= 1
        self._is_batching = self._until_tried == 0
        return self._is_batching

    def _adapt_batching(self, outcomes: int) -> None:
        """Stop batching if the last iteration had only one outcome, which is answered sooner if written
        immediately."""
        if outcomes > 1:
            self._tried_after = BATCHING_TRIED_AFTER_MIN
        else:
            self._is_batching = False
            self._tried_after = self._until_tried = min(2 * self._tried_after, BATCHING_TRIED_AFTER_MAX)

    def _add_to_batch(self, outcome: Outcome, now: Now) -> None:
        """Add the records to the batch of this loop iteration. The records of one outcome stay in one
        batch."""
        if self._batch is None or not self._batch.add(outcome.records, now.ms):
            self._write_batch(now)
            batch = OutcomeBatch(self.partition.next_batch())
            batch.add(outcome.records, now.ms)
            self._batch = batch
        self._unanswered += outcome.answers
        if self._turn_end is None:
            self._turn_end = asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._turn_end = None
        if self._batch is not None:
            self._adapt_batching(self._batch.outcomes)
        try:
            self._write_batch(self.now())
        except CannotWrite as error:
            self._not_written(error, None)
            return
        except Exception:
            logger.exception("write failed partition=%s", self.partition.name)
            self._lose(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self.committed()
        self._schedule_wakeup()

    def _write_batch(self, now: Now) -> None:
        """Gives no answers: an answered client may send its next request while a decision is in progress."""
        batch, self._batch = self._batch, None
        if batch is None:
            return
        end = self.partition.append(batch.build(), now.ms)
        answers, self._unanswered = self._unanswered, []
        self._pending.append((end, now.tick_ms + self._commit_timeout_ms(), answers))

    def _write_stamped(self, outcome: Outcome, stamp: InTransaction | EndMarker, now: Now) -> int:
        self._write_batch(now)
        partition = self.partition
        if isinstance(stamp, EndMarker):
            batch = marker_batch(stamp, now.ms)
        else:
            batch = stamped_batch(outcome.records, stamp, partition.next_batch(), now.ms)
        return partition.append(batch, now.ms, stamp)

    def _write_batches(self, outcome: Outcome, now: Now) -> int:
        """Write as many batches as needed. If a later one fails, nothing is lost: housekeeping repeats in the
        next round, and a deletion can be requested again.
        """
        self._write_batch(now)
        partition = self.partition
        end = 0
        for batch in batches(outcome.records, partition.next_batch(), now.ms):
            end = partition.append(batch, now.ms)
        return end

    def _not_written(self, error: CannotWrite, outcome: Outcome | None) -> None:
        if not error.is_logged:
            logger.warning("write failed partition=%s error=%s", self.partition.name, error)
        self._lose(error.code, outcome)

    # Answering

    def _answer_when_committed(self, answers: list[tuple[ReplyTo, object]], end: int, now: Now) -> None:
        if not answers:
            return
        if not self._pending and self.partition.committed_offset >= end:
            self._give(answers)
            return
        self._pending.append((end, now.tick_ms + self._commit_timeout_ms(), answers))

    def committed(self) -> None:
        """Give the answers up to the committed offset. The partition calls it when that has moved."""
        if not self._pending:
            return
        offset = self.partition.committed_offset
        while self._pending and self._pending[0][0] <= offset:
            _, _, answers = self._pending.popleft()
            self._give(answers)

    def _give(self, answers: list[tuple[ReplyTo, object]]) -> None:
        """Give a few answers now, and many, such as those of a large rebalance, in slices."""
        if len(answers) <= ANSWERS_AT_ONCE_MAX and not self._to_give:
            for to, answer in answers:
                to.give(answer)
            return
        self._to_give.extend(answers)
        if self._giving is None:
            self._giving = asyncio.get_running_loop().call_soon(self._give_some)

    def _give_some(self) -> None:
        # An answered member may send its next request at once, which may even close the shard.
        for _ in range(ANSWERS_AT_ONCE_MAX):
            if not self._to_give:
                break
            to, answer = self._to_give.popleft()
            to.give(answer)
        self._giving = asyncio.get_running_loop().call_soon(self._give_some) if self._to_give else None

    def _time_out(self, now: Now) -> None:
        """Refuse answers that have waited too long for replicas. Their records may still be committed."""
        while self._pending and self._pending[0][1] <= now.tick_ms:
            _, _, answers = self._pending.popleft()
            for to, _ in answers:
                to.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # Timers

    def _schedule_wakeup(self) -> None:
        """Schedule one wakeup for the earliest timer or commit timeout."""
        if self.state is not _ACTIVE:
            return
        timers = self._timers
        if timers.is_first_known and self._wakeup is not None and not self._pending:
            # Nothing has changed since the wakeup was scheduled.
            return
        due_ms = timers.next_ms()
        if self._pending and (due_ms is None or self._pending[0][1] < due_ms):
            due_ms = self._pending[0][1]
        if due_ms is None or (self._wakeup is not None and self._wakeup_ms <= due_ms):
            return
        if self._wakeup is not None:
            self._wakeup.cancel()
        delay_s = max(0, due_ms - self._tick_ms()) / 1000
        self._wakeup_ms = due_ms
        self._wakeup = asyncio.get_running_loop().call_later(delay_s, self._fire_timers)

    def _fire_timers(self) -> None:
        self._wakeup = None
        now = self.now()
        self._time_out(now)
        fired = 0
        while fired < TIMERS_AT_ONCE_MAX and self._tick_ms() - now.tick_ms < _FIRE_MS_MAX:
            keys = self._timers.due(now.tick_ms, _FIRE_TOGETHER)
            if not keys:
                break
            fired += len(keys)
            if not self._expire(keys, now):
                return
        # Fires immediately if more timers are due.
        self._schedule_wakeup()

    def _expire(self, keys: list[TimerKey], now: Now) -> bool:
        """False if the shard is no longer active."""
        for key in keys:
            if self.state is not State.ACTIVE:
                return False
            if key in self.shard.timers:
                # An earlier timer of this slice has set it again.
                continue
            outcome: Outcome | None = None
            try:
                outcome = self.shard.expire(key, now)
                self._carry_out(outcome, now)
            except Exception:
                logger.exception("timer failed partition=%s key=%s", self.partition.name, key)
                self._lose(ErrorCode.UNKNOWN_SERVER_ERROR, outcome)
                return False
        return True

    # Closing

    def close(self, code: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """Close the shard: another broker leads the partition, or this broker stops."""
        if self.state is State.LOST:
            return
        was_active = self.state is State.ACTIVE
        self.state = State.LOST
        self.partition.on_committed = None
        if self._wakeup is not None:
            self._wakeup.cancel()
            self._wakeup = None
        if self._turn_end is not None:
            self._turn_end.cancel()
            self._turn_end = None
        self.committed()
        if self._giving is not None:
            self._giving.cancel()
            self._giving = None
        while self._to_give:
            to, answer = self._to_give.popleft()
            to.give(answer)
        pending, self._pending = self._pending, deque()
        unanswered, self._unanswered, self._batch = self._unanswered, [], None
        for answers in [answers for _, _, answers in pending] + [unanswered]:
            for to, _ in answers:
                to.refuse(code)
        if was_active:
            for to, answer in self.shard.abandon(code).answers:
                to.give(answer)

    def _lose(self, code: ErrorCode, outcome: Outcome | None = None) -> None:
        """`code` is for the failed outcome. Other pending requests get a retriable error."""
        self.close(ErrorCode.NOT_COORDINATOR if code is ErrorCode.UNKNOWN_SERVER_ERROR else code)
        if outcome is not None:
            for to, _ in outcome.answers:
                # A request that also waited in the core was refused by close().
                if not to.is_given:
                    to.refuse(code)
        self._on_lost(self)


def _refuse(outcome: Outcome, code: ErrorCode) -> None:
    for to, _ in outcome.answers:
        to.refuse(code)
