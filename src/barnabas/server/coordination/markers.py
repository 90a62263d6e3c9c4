"""The markers of decided transactions: appended to each partition, with retries until all have theirs.

TransactionMarkerManager queues the markers that shards request and retries those that failed. A deleted
partition needs none. If a log knows a newer coordinator epoch, another coordinator has taken the transaction
over, and this one stops. If a log knows a newer epoch of the producer, it accepts no marker of this epoch any
more: the partition counts as done, and the others still get their markers.

MarkerAppender appends one marker to one partition. Partitions of __consumer_offsets are written through the
shard of their groups, so that the offsets of the transaction become visible together with the marker.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from typing import Final, TypeAlias

from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.base.faults import report_fault
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import EndMarker, Reply, ReplyTo
from barnabas.coordinators.runtime.host import State
from barnabas.coordinators.runtime.writing import marker_batch
from barnabas.coordinators.txn.table import MarkersToWrite
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.replication.replicas import Replicas
from barnabas.server.coordination.groups import OFFSETS_TOPIC, GroupCoordinator
from barnabas.server.errors import code_of
from barnabas.storage.manager import LogManager

logger = logging.getLogger(__name__)

# Receives the result of an append.
OnResult: TypeAlias = Callable[[ErrorCode], None]

_NONE: Final = ErrorCode.NONE
_FIRST_RETRY_S: Final = 0.02
_RETRY_S_MAX: Final = 1.0
NO_ID: Final = -1
NO_EPOCH: Final = -1
# The version of a marker whose version is unknown. Only replicas may have such markers, not leaders.
NO_VERSION: Final = -1

# Errors of a group coordinator that become NOT_LEADER_OR_FOLLOWER for the transaction coordinator.
_NOT_READY: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


class MarkerAppender:
    """Appends markers to the partitions that this broker leads."""

    def __init__(
        self, *, clock: Clock, logs: LogManager, replicas: Replicas, groups: GroupCoordinator
    ) -> None:
        self._clock = clock
        self._logs = logs
        self._replicas = replicas
        self._groups = groups
        # The batch of the last marker: usually the next call writes the same marker to another partition.
        self._marker: EndMarker | None = None
        self._marker_ms = 0
        self._batch = b""

    def append(self, tp: TopicPartition, marker: EndMarker, then: OnResult) -> None:
        """Append a marker and call `then` with the result: at once, or when it is committed."""
        if tp.topic != OFFSETS_TOPIC or tp not in self._replicas.partitions:
            then(self._append(tp, marker))
        elif _has_no_producer(marker):
            then(ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self._append_to_groups(tp.partition, marker, then)

    def epoch_in(self, tp: TopicPartition, producer_id: int) -> int:
        """The newest epoch of a producer in the local log; NO_EPOCH if it has none."""
        partition = self._replicas.partitions.get(tp)
        if partition is not None:
            for entry in partition.log.producers.entries():
                if entry.producer_id == producer_id:
                    return entry.epoch
        return NO_EPOCH

    def _append(self, tp: TopicPartition, marker: EndMarker) -> ErrorCode:
        now_ms = self._clock.now_ms()
        try:
            partition = self._replicas.partitions.get(tp) or self._replicas.get(tp)
            if _has_no_producer(marker):
                return ErrorCode.UNKNOWN_SERVER_ERROR
            partition.need_leader()
            partition.need_in_sync()
            try:
                partition.append_of_coordinator(
                    self._batch_of(marker, now_ms),
                    now_ms,
                    transaction_version=marker.transaction_version,
                )
            except OSError as error:
                raise self._logs.failed(partition.log, error) from error
        except BarnabasError as error:
            code = code_of(error)
            if code is None:
                raise
            return code
        return _NONE

    def _batch_of(self, marker: EndMarker, now_ms: int) -> bytes:
        if marker is not self._marker or now_ms != self._marker_ms:
            self._batch = marker_batch(marker, now_ms)
            self._marker, self._marker_ms = marker, now_ms
        return self._batch

    def _append_to_groups(self, index: int, marker: EndMarker, then: OnResult) -> None:
        host = self._groups.shards.hosts.get(index)
        if host is None or host.state is not State.ACTIVE:
            then(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        reply = Reply(lambda code: code)
        host.ask(lambda shard, to, now: shard.end_transaction(marker, to, now), reply)
        if reply.is_given:
            then(_code_of_append(reply.answer))
        else:
            reply.then_call(lambda answer: then(_code_of_append(answer)))


def _has_no_producer(marker: EndMarker) -> bool:
    """Whether the producer id, epoch or version is invalid. Kafka has no better code for this."""
    return (
        marker.producer_id < 0
        or marker.producer_epoch == NO_EPOCH
        or marker.transaction_version == NO_VERSION
    )


def _code_of_append(answer: object) -> ErrorCode:
    assert isinstance(answer, ErrorCode), f"unexpected response to a marker: {answer!r}"
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if answer in _NOT_READY else answer


class TransactionMarkerManager(ReplyTo):
    """Shards give it the markers to write; a shard that is loaded again gives them again.

    Markers are written in the next loop iteration, so that the response to EndTxn goes out first. A request
    about a transaction calls flush() before that, because it would have to wait for the markers.

    `is_pending` tells whether markers are still wanted; `on_written` gets the partitions that are done.
    """

    def __init__(
        self,
        appender: MarkerAppender,
        *,
        image: Callable[[], MetadataImage],
        is_pending: Callable[[MarkersToWrite], bool],
        on_written: Callable[[MarkersToWrite, frozenset[TopicPartition]], None],
    ) -> None:
        self._appender = appender
        self._image = image
        self._is_pending = is_pending
        self._on_written = on_written
        self._queue: deque[MarkersToWrite] = deque()
        self._next_flush: asyncio.Handle | None = None
        self._is_closed = False
        self._retries: set[asyncio.TimerHandle] = set()

    # The queue

    @property
    def is_given(self) -> bool:
        return False

    def give(self, answer: object) -> None:
        assert isinstance(answer, MarkersToWrite), f"unexpected request for markers: {answer!r}"
        self._queue.append(answer)
        if self._next_flush is None:
            self._next_flush = asyncio.get_running_loop().call_soon(self._end_iteration)

    def refuse(self, code: ErrorCode) -> None:
        """The decision was not committed, so there are no markers to write."""

    def _end_iteration(self) -> None:
        # The responses of this iteration are sent after this callback, and before the next iteration.
        self._next_flush = asyncio.get_running_loop().call_soon(self._start_iteration)

    def _start_iteration(self) -> None:
        self._next_flush = None
        self.flush()

    def flush(self) -> None:
        """Write the queued markers."""
        while self._queue:
            self.write(self._queue.popleft())

    # Writing

    def write(self, ended: MarkersToWrite) -> None:
        self._try(ended, ended.partitions, _FIRST_RETRY_S)

    def _try(self, ended: MarkersToWrite, partitions: Collection[TopicPartition], retry_s: float) -> None:
        if self._is_closed or not self._is_pending(ended):
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
            on_result = attempt.result_of(tp)
            try:
                self._appender.append(tp, marker, on_result)
            except Exception as error:
                # A bug. Retry, so that clients of this transaction do not wait forever, and do not fail the
                # request about another transaction that happened to call flush().
                report_fault(
                    logger, error, "marker failed transactional_id=%s tp=%s", ended.transactional_id, tp
                )
                on_result(ErrorCode.UNKNOWN_SERVER_ERROR)
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
                    self._appender.epoch_in(tp, ended.producer_id),
                )
                done.add(tp)
            else:
                again.add(tp)
        if done or not codes:
            self._on_written(ended, frozenset(done))
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

    def result_of(self, tp: TopicPartition) -> OnResult:
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
