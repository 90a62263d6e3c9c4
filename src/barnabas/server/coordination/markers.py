"""Write the markers of a decided transaction, with retries until every partition has its marker.

A deleted partition needs none. If a log knows a newer coordinator epoch, another coordinator has taken the
transaction over, and this one stops. If a log knows a newer epoch of the producer, it accepts no marker of
this epoch any more: the partition counts as done, and the others still get their markers.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from typing import Final

from barnabas.base.faults import report_fault
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import EndMarker, ReplyTo
from barnabas.coordinators.txn.table import MarkersToWrite
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.coordination.marker_writing import MarkerAppends

logger = logging.getLogger(__name__)

_NONE: Final = ErrorCode.NONE
_FIRST_RETRY_S: Final = 0.02
_RETRY_S_MAX: Final = 1.0


class MarkerDesk(ReplyTo):
    """The queue of markers that shards want written. A shard that is loaded again asks for them again.

    Markers are written in the next loop iteration, so that the response to EndTxn goes out first. A request
    about a transaction calls flush() before that, because it would have to wait for the markers.
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
        # The responses of this iteration are sent after this callback, and before the next iteration.
        self._next = asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._next = None
        self.flush()

    def flush(self) -> None:
        while self._waiting:
            self._take(self._waiting.popleft())

    def refuse(self, code: ErrorCode) -> None:
        """The decision was not committed, so there are no markers to write."""


class Markers:
    """`written` gets the partitions that are done; `is_current` tells whether markers are still wanted."""

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
        # Also for a transaction without partitions, which is complete at once.
        attempt = _Attempt(partitions, lambda done: self._tried(ended, done, retry_s))
        for tp in sorted(partitions):
            told = attempt.told(tp)
            try:
                self._appends.append(tp, marker, told)
            except Exception as error:
                # A bug. Retry, so that clients of this transaction do not wait forever, and do not fail the
                # request about another transaction that happened to call flush().
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
                # Another coordinator has taken over: write nothing more, and do not notify the shard.
                logger.warning(
                    "markers abandoned transactional_id=%s tp=%s error=%s",
                    ended.transactional_id,
                    tp,
                    code.name,
                )
                return
            elif code is ErrorCode.INVALID_PRODUCER_EPOCH:
                # This log will never accept a marker of this epoch, but the other partitions need theirs.
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
                # A bug. The transaction must not stay open forever because of it.
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
    """Collects the result of each partition and calls `then` when all have answered."""

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
        """All appends have been started."""
        self._all_asked = True
        if self._waiting == 0:
            self._then(self._codes)
