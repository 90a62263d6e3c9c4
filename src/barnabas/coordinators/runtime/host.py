"""One shard at work: loading, then carrying out what the core decides, until it is given up.

carry_out() is the one way: write, apply, answer when it is committed. While it is busy, what comes within
one turn of the loop is written as one batch when the turn ends: an append costs as much as a request. If
writing fails the shard is lost: what the core has in memory may be ahead of its log. Everybody who waits is
told, and the coordinator loads it again if the partition is still ours.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final, Generic, cast

from barnabas.base.clock import Clock
from barnabas.coordinators.decision.errors import Refused
from barnabas.coordinators.decision.outcome import EndMarker, InTransaction, Now, Outcome, ReplyTo
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.runtime.ports import AnyShard, CannotWrite, LedPartition, RefusedByLog
from barnabas.coordinators.runtime.reply import Waiting
from barnabas.coordinators.runtime.writing import (
    Gathered,
    TooLarge,
    batches,
    marker_batch,
    one_batch,
    stamped_batch,
)
from barnabas.protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

# After so many writes it is tried whether several come within a turn; less often if it was in vain.
TRIED_AFTER_MIN: Final = 8
TRIED_AFTER_MAX: Final = 64
# Timers that ring at once: at most so many, and none is begun after so long. Others are served before the
# rest ring.
RING_AT_ONCE_MAX: Final = 256
# Answers that are given at once. Others are served before the rest.
GIVEN_AT_ONCE_MAX: Final = 500
_RING_MS_MAX: Final = 5
_RING_TOGETHER: Final = 8


class State(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    LOST = "lost"


_LOADING: Final = State.LOADING
_ACTIVE: Final = State.ACTIVE
_LOST: Final = State.LOST


class ShardHost(Generic[AnyShard]):
    """`on_lost` is called once, when the shard cannot go on; not when it is given up by close()."""

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
        # Every request asks for these.
        self._apply = shard.apply
        self._timers = shard.timers
        self._now_ms = clock.now_ms
        self._tick_ms = clock.monotonic_ms
        self._commit_timeout_ms = commit_timeout_ms
        self._on_lost = on_lost
        self._gathers = False
        self._tried_after = self._until_tried = TRIED_AFTER_MIN
        # What has been decided in this turn of the loop, and who is to be answered when it is written.
        self._unwritten: Gathered | None = None
        self._unanswered: list[tuple[ReplyTo, object]] = []
        self._turn_end: asyncio.Handle | None = None
        # Answers that wait until the log is committed up to an offset, with the time that is their last.
        self._pending: deque[tuple[int, int, list[tuple[ReplyTo, object]]]] = deque()
        # Very many answers, of which some are given in each turn of the loop.
        self._to_give: deque[tuple[ReplyTo, object]] = deque()
        self._giving: asyncio.Handle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ms = 0

    def now(self) -> Now:
        return Now(self._now_ms(), self._tick_ms())

    def activate(self) -> None:
        """Everything has been replayed."""
        assert self.state is State.LOADING
        self.state = State.ACTIVE
        self.do_for_nobody(self.shard.loaded)

    # At work

    def check(self) -> None:
        """Refused if it cannot be asked now."""
        if self.state is _ACTIVE:
            return
        if self.state is _LOADING:
            raise Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.partition.name} is being loaded")
        if self.state is _LOST:
            raise Refused(ErrorCode.NOT_COORDINATOR, f"{self.partition.name} is not here")

    def do(self, act: Callable[[Now], Outcome]) -> None:
        """Let the core decide, and carry it out. A mistake of ours costs the shard, and is seen."""
        now = self.now()
        try:
            outcome = act(now)
        except Exception:
            self.stumbled()
            raise
        self.carry_out(outcome, now)

    def carry_out(self, outcome: Outcome, now: Now) -> None:
        """What do() does with what the core has decided. A mistake in here costs the shard as well."""
        try:
            self._carry_out(outcome, now)
        except Exception:
            self.stumbled(outcome)
            raise
        self._set_alarm()

    def stumbled(self, outcome: Outcome | None = None) -> None:
        """The core has failed. What it was about to change in memory may be half done."""
        self._lose(ErrorCode.UNKNOWN_SERVER_ERROR, outcome)

    def do_for_nobody(self, act: Callable[[Now], Outcome]) -> None:
        """What no client asked for. A mistake of ours costs this shard, and not the broker that calls."""
        try:
            self.do(act)
        except Exception:
            logger.exception("shard failed partition=%s", self.partition.name)

    def _carry_out(self, outcome: Outcome, now: Now) -> None:
        if not outcome.records:
            if self._unwritten is None:
                self._answer_when_committed(outcome.answers, self.partition.end_offset, now)
            else:
                # It may tell of what is not written yet.
                self._unanswered += outcome.answers
            return
        end: int | None = None
        try:
            if outcome.stamp is not None:
                end = self._write_stamped(outcome, outcome.stamp, now)
            elif outcome.is_divisible or not outcome.answers:
                end = self._write_apart(outcome, now)
            elif self._gathers or self._is_to_try():
                self._gather(outcome, now)
            else:
                end = self._write_now(outcome, now)
        except RefusedByLog as error:
            _refuse(outcome, error.code)
            return
        except TooLarge as error:
            logger.error("records refused partition=%s error=%s", self.partition.name, error)
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

    def _is_to_try(self) -> bool:
        self._until_tried -= 1
        self._gathers = self._until_tried == 0
        return self._gathers

    def _gathered(self, outcomes: int) -> None:
        """Alone in its turn, a request is answered sooner if it is written at once."""
        if outcomes > 1:
            self._tried_after = TRIED_AFTER_MIN
        else:
            self._gathers = False
            self._tried_after = self._until_tried = min(2 * self._tried_after, TRIED_AFTER_MAX)

    def _write_now(self, outcome: Outcome, now: Now) -> int:
        partition = self.partition
        return partition.append(one_batch(outcome.records, partition.place(), now.ms), now.ms)

    def _gather(self, outcome: Outcome, now: Now) -> None:
        """Have it written when the turn ends. The records of one outcome are in one batch."""
        if self._unwritten is None or not self._unwritten.add(outcome.records, now.ms):
            self._write_gathered(now)
            fresh = Gathered(self.partition.place())
            fresh.add(outcome.records, now.ms)
            self._unwritten = fresh
        self._unanswered += outcome.answers
        if self._turn_end is None:
            self._turn_end = asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._turn_end = None
        if self._unwritten is not None:
            self._gathered(self._unwritten.outcomes)
        try:
            self._write_gathered(self.now())
        except CannotWrite as error:
            self._not_written(error, None)
            return
        except Exception:
            logger.exception("records not written partition=%s", self.partition.name)
            self._lose(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self.committed()
        self._set_alarm()

    def _write_gathered(self, now: Now) -> None:
        """Nobody is answered within this call: who is may ask again at once, and a decision is under way."""
        gathered, self._unwritten = self._unwritten, None
        if gathered is None:
            return
        end = self.partition.append(gathered.build(), now.ms)
        answers, self._unanswered = self._unanswered, []
        self._pending.append((end, now.tick_ms + self._commit_timeout_ms(), answers))

    def _write_stamped(self, outcome: Outcome, stamp: InTransaction | EndMarker, now: Now) -> int:
        self._write_gathered(now)
        partition = self.partition
        if isinstance(stamp, EndMarker):
            batch = marker_batch(stamp, now.ms)
        else:
            batch = stamped_batch(outcome.records, stamp, partition.place(), now.ms)
        return partition.append_stamped(batch, now.ms, stamp)

    def _write_apart(self, outcome: Outcome, now: Now) -> int:
        """What nobody waits for is housekeeping: what is not written now is found again by the next round.

        So is what was left of a group that was to be deleted, by who asks for it again.
        """
        self._write_gathered(now)
        partition = self.partition
        end = partition.end_offset
        for batch in batches(outcome.records, partition.place(), now.ms):
            end = partition.append(batch, now.ms)
        return end

    def _not_written(self, error: CannotWrite, outcome: Outcome | None) -> None:
        if not error.is_logged:
            logger.warning("records not written partition=%s error=%s", self.partition.name, error)
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
        """More of the log may be committed."""
        offset = self.partition.committed_offset
        while self._pending and self._pending[0][0] <= offset:
            _, _, answers = self._pending.popleft()
            self._give(answers)

    def _give(self, answers: list[tuple[ReplyTo, object]]) -> None:
        """All of them, if they are not very many, such as those of a large group that begins."""
        if len(answers) <= GIVEN_AT_ONCE_MAX and not self._to_give:
            for to, answer in answers:
                cast(Waiting, to).give(answer)
            return
        self._to_give.extend(answers)
        if self._giving is None:
            self._giving = asyncio.get_running_loop().call_soon(self._give_some)

    def _give_some(self) -> None:
        # A member that is answered may ask again at once, and even end the shard.
        for _ in range(GIVEN_AT_ONCE_MAX):
            if not self._to_give:
                break
            to, answer = self._to_give.popleft()
            cast(Waiting, to).give(answer)
        self._giving = asyncio.get_running_loop().call_soon(self._give_some) if self._to_give else None

    def _time_out(self, now: Now) -> None:
        """Tell those who have waited too long for other replicas. What they asked for may still be done."""
        while self._pending and self._pending[0][1] <= now.tick_ms:
            _, _, answers = self._pending.popleft()
            for to, _ in answers:
                cast(Waiting, to).refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # Time

    def _set_alarm(self) -> None:
        """One alarm for the earliest of everything that has a time."""
        if self.state is not _ACTIVE:
            return
        due_ms = self._timers.next_ms()
        if self._pending and (due_ms is None or self._pending[0][1] < due_ms):
            due_ms = self._pending[0][1]
        if due_ms is None or (self._alarm is not None and self._alarm_ms <= due_ms):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        delay_s = max(0, due_ms - self._tick_ms()) / 1000
        self._alarm_ms = due_ms
        self._alarm = asyncio.get_running_loop().call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        now = self.now()
        self._time_out(now)
        rung = 0
        while rung < RING_AT_ONCE_MAX and self._tick_ms() - now.tick_ms < _RING_MS_MAX:
            keys = self._timers.due(now.tick_ms, _RING_TOGETHER)
            if not keys:
                break
            rung += len(keys)
            if not self._expire(keys, now):
                return
        # At once, if more are due.
        self._set_alarm()

    def _expire(self, keys: list[TimerKey], now: Now) -> bool:
        """False if that was the end of the shard."""
        for key in keys:
            if self.state is not State.ACTIVE:
                return False
            if key in self.shard.timers:
                # What another one has led to has set it anew.
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

    # The end

    def close(self, code: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """Give it up: another broker leads the partition, or this one stops."""
        if self.state is State.LOST:
            return
        was_active = self.state is State.ACTIVE
        self.state = State.LOST
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._turn_end is not None:
            self._turn_end.cancel()
            self._turn_end = None
        self.committed()
        if self._giving is not None:
            self._giving.cancel()
            self._giving = None
        while self._to_give:
            to, answer = self._to_give.popleft()
            cast(Waiting, to).give(answer)
        pending, self._pending = self._pending, deque()
        unanswered, self._unanswered, self._unwritten = self._unanswered, [], None
        for answers in [answers for _, _, answers in pending] + [unanswered]:
            for to, _ in answers:
                cast(Waiting, to).refuse(code)
        if was_active:
            for to, answer in self.shard.abandon(code).answers:
                cast(Waiting, to).give(answer)

    def _lose(self, code: ErrorCode, outcome: Outcome | None = None) -> None:
        """`code` is for who asked for it. Others who wait may try again if it is no fault of theirs."""
        self.close(ErrorCode.NOT_COORDINATOR if code is ErrorCode.UNKNOWN_SERVER_ERROR else code)
        if outcome is not None:
            for to, _ in outcome.answers:
                reply = cast(Waiting, to)
                # One that waits in the core as well has been told already.
                if not reply.is_given:
                    reply.refuse(code)
        self._on_lost(self)


def _refuse(outcome: Outcome, code: ErrorCode) -> None:
    for to, _ in outcome.answers:
        cast(Waiting, to).refuse(code)
