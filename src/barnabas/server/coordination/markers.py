"""What follows when a transaction has been decided: its markers are written, again until all are there.

A partition that does not exist any more needs none. A log that knows a later epoch of the coordinator says
that somebody else has gone on with this transaction: then it is left to them. One that knows a later epoch of
the producer takes no marker of ours any more: it counts as done, and the others get theirs.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from typing import Final

from barnabas.base.faults import report_fault
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import EndMarker
from barnabas.coordinators.runtime.reply import Waiting
from barnabas.coordinators.txn.markers import MarkersToWrite
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.coordination.marker_writing import MarkerAppends

logger = logging.getLogger(__name__)

_NONE: Final = ErrorCode.NONE
_FIRST_RETRY_S: Final = 0.02
_RETRY_S_MAX: Final = 1.0


class MarkerDesk(Waiting):
    """Whom the shards ask for markers. What they are refused they ask again, after they have been loaded.

    They are written in the next turn of the loop, so that the answer to whoever ends a transaction goes out
    first; or before that, by flush(), when somebody asks for a transaction: it would have to wait for them.
    """

    __slots__ = ("_next", "_take", "_waiting")

    def __init__(self, take: Callable[[MarkersToWrite], None]) -> None:
        self._take = take
        self._waiting: deque[MarkersToWrite] = deque()
        self._next: asyncio.Handle | None = None

    @property
    def is_given(self) -> bool:
        return False

    def give(self, answer: object) -> None:
        assert isinstance(answer, MarkersToWrite), f"unexpected request for markers: {answer!r}"
        self._waiting.append(answer)
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        # The answers of this turn leave when it ends: behind this call, and before the next turn.
        self._next = asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._next = None
        self.flush()

    def flush(self) -> None:
        while self._waiting:
            self._take(self._waiting.popleft())

    def refuse(self, code: ErrorCode) -> None:
        """The decision is not in the log, so there is nothing to be written."""


class Markers:
    """`written` is told which partitions have theirs; `is_current` says whether it is still ours to write."""

    def __init__(
        self,
        appends: MarkerAppends,
        *,
        image: Callable[[], MetadataImage],
        is_current: Callable[[MarkersToWrite], bool],
        written: Callable[[MarkersToWrite, frozenset[TopicPartition]], None],
    ) -> None:
        self._appends = appends
        self._image = image
        self._is_current = is_current
        self._written = written
        self._is_closed = False
        self._retries: set[asyncio.TimerHandle] = set()

    def write(self, ended: MarkersToWrite) -> None:
        self._try(ended, ended.partitions, _FIRST_RETRY_S)

    def _try(self, ended: MarkersToWrite, partitions: Collection[TopicPartition], retry_s: float) -> None:
        if self._is_closed or not self._is_current(ended):
            return
        marker = EndMarker(
            ended.producer_id,
            ended.producer_epoch,
            ended.commit,
            ended.coordinator_epoch,
            ended.transaction_version,
        )
        # A transaction that has ended in no partition is complete all the same.
        attempt = _Attempt(partitions, lambda done: self._tried(ended, done, retry_s))
        for tp in sorted(partitions):
            told = attempt.told(tp)
            try:
                self._appends.append(tp, marker, told)
            except Exception as error:
                # A mistake of ours. Whoever waits for this transaction must not wait for ever, and whoever
                # happens to ask for another one has nothing to do with it.
                report_fault(
                    logger, error, "marker failed transactional_id=%s tp=%s", ended.transactional_id, tp
                )
                told(ErrorCode.UNKNOWN_SERVER_ERROR)
        attempt.settle()

    def _tried(self, ended: MarkersToWrite, codes: dict[TopicPartition, ErrorCode], retry_s: float) -> None:
        done, again = set(), set()
        for tp, code in codes.items():
            if code is _NONE or not self._exists(tp):
                done.add(tp)
            elif code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                # We have been replaced: nothing may be written by us any more, nor told to the shard.
                logger.warning(
                    "markers abandoned transactional_id=%s tp=%s error=%s",
                    ended.transactional_id,
                    tp,
                    code.name,
                )
                return
            elif code is ErrorCode.INVALID_PRODUCER_EPOCH:
                # No marker of this epoch will ever be taken there, and the others were promised theirs.
                logger.warning(
                    "marker skipped transactional_id=%s tp=%s producer_epoch=%d log_epoch=%d",
                    ended.transactional_id,
                    tp,
                    ended.producer_epoch,
                    self._appends.epoch_in(tp, ended.producer_id),
                )
                done.add(tp)
            else:
                again.add(tp)
        if done or not codes:
            self._written(ended, frozenset(done))
        if again:
            self._later(ended, again, retry_s)

    def _exists(self, tp: TopicPartition) -> bool:
        topic = self._image().topics.get(tp.topic)
        return topic is not None and tp.partition < len(topic.partitions)

    def _later(self, ended: MarkersToWrite, partitions: set[TopicPartition], retry_s: float) -> None:
        def retry() -> None:
            self._retries.discard(timer)
            longer_s = min(2 * retry_s, _RETRY_S_MAX)
            try:
                self._try(ended, partitions, longer_s)
            except Exception as error:
                # A mistake of ours. The transaction must not stay open for ever because of it.
                report_fault(logger, error, "marker failed transactional_id=%s", ended.transactional_id)
                self._later(ended, partitions, longer_s)

        timer = asyncio.get_running_loop().call_later(retry_s, retry)
        self._retries.add(timer)

    def close(self) -> None:
        self._is_closed = True
        for timer in self._retries:
            timer.cancel()
        self._retries.clear()


class _Attempt:
    """Collects how it went with each partition, and tells when all have answered."""

    def __init__(
        self,
        partitions: Collection[TopicPartition],
        then: Callable[[dict[TopicPartition, ErrorCode]], None],
    ) -> None:
        self._waiting = len(partitions)
        self._codes: dict[TopicPartition, ErrorCode] = {}
        self._then = then
        self._all_asked = False

    def told(self, tp: TopicPartition) -> Callable[[ErrorCode], None]:
        def take(code: ErrorCode) -> None:
            self._codes[tp] = code
            self._waiting -= 1
            if self._all_asked and self._waiting == 0:
                self._then(self._codes)

        return take

    def settle(self) -> None:
        """All have been asked."""
        self._all_asked = True
        if self._waiting == 0:
            self._then(self._codes)
