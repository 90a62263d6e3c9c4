"""Decides from a response, a lost response or a timeout whether a batch is done, failed, split or retried.

The rules are those of Java's Sender, and those of numbering.py for numbered batches.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from barnabas.base.clock import Clock
from barnabas.client.cluster import Cluster
from barnabas.client.deadline import Backoff
from barnabas.client.errors import ClientError, Refused, UnknownTopic, UnsupportedByBroker, refused
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import Batch, split_batch
from barnabas.client.producer.errors import DeliveryInDoubt, DeliveryTimedOut
from barnabas.client.producer.queues import PartitionQueue
from barnabas.client.producer.settings import ProducerSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.produce import PartitionProduceResponse

# Retry delay while the previous transaction completes, usually a moment after the EndTxn response.
CONCURRENT_TRANSACTIONS_RETRY_MS: Final = 20
# The broker is missing earlier batches, or no longer knows the producer.
_OUT_OF_ORDER: Final = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)
# With these codes, this attempt certainly wrote nothing. Others may come after the append,
# even NOT_LEADER_OR_FOLLOWER: the leader may change while it waits for its followers.
_NOT_WRITTEN: Final = frozenset(
    {
        *_OUT_OF_ORDER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.POLICY_VIOLATION,
    }
)


class Outcomes:
    def __init__(
        self,
        settings: ProducerSettings,
        *,
        cluster: Cluster,
        accumulator: Accumulator,
        clock: Clock,
        backoff: Backoff,
        schedule: Callable[[PartitionQueue], None],
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._accumulator = accumulator
        self._clock = clock
        self._backoff = backoff
        self._schedule = schedule

    # Responses

    def sent_without_acks(self, batch: Batch) -> None:
        """Complete a batch sent with acks=0: there is no response."""
        batch.queue.returned(batch)
        self._accumulator.finish(batch)

    def response_received(
        self, batch: Batch, row: PartitionProduceResponse, endpoints: Iterable[Any]
    ) -> None:
        queue = batch.queue
        queue.returned(batch)
        code = ErrorCode.of(row.error_code)
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._written(batch, row)
        else:
            self._rejected(batch, code, row, endpoints)
        self.settle(queue)

    def response_lost(self, batch: Batch, error: ClientError, *, sent: bool = True) -> None:
        """Handle a lost connection or a timeout: unless it was never `sent`, the batch may be in the log."""
        queue = batch.queue
        queue.returned(batch)
        batch.maybe_written = batch.maybe_written or sent
        led = self._cluster.known_leader(queue.tp)
        if led is not None:
            self._cluster.forget_leader(queue.tp, led[1])
        if isinstance(error, UnsupportedByBroker) and not batch.maybe_written:
            # Waiting does not upgrade a broker. (Java also fails such a batch at once.)
            self._fail(batch, error)
        else:
            self._retry(batch, error)
        self.settle(queue)

    def _written(self, batch: Batch, row: PartitionProduceResponse) -> None:
        numbering = batch.queue.numbering
        if numbering is not None:
            for proved in numbering.acknowledged(batch):
                # It is in the log at an unknown offset.
                if not proved.done:
                    self._accumulator.finish(proved)
        if batch.done:
            # It expired while it was in flight.
            self._accumulator.release(batch)
            return
        batch.base_offset = row.base_offset
        batch.append_time_ms = row.log_append_time_ms
        self._accumulator.finish(batch)

    def _rejected(
        self, batch: Batch, code: ErrorCode, row: PartitionProduceResponse, endpoints: Iterable[Any]
    ) -> None:
        queue = batch.queue
        batch.maybe_written = batch.maybe_written or code not in _NOT_WRITTEN
        error = refused(row.error_code, about=f"partition {queue.tp}", message=row.error_message)
        hinted = code.refreshes_metadata and self._refresh_leader(queue, row, endpoints)
        if code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1 and not batch.done:
            self._split(batch, error)
        elif code in _OUT_OF_ORDER and queue.numbering is not None:
            self._out_of_order(batch, error)
        elif code.retriable:
            self._retry(batch, error, at_once=hinted)
        else:
            batch.record_errors = None if batch.maybe_written else _record_errors(batch, row)
            self._fail(batch, error)

    def _refresh_leader(
        self, queue: PartitionQueue, row: PartitionProduceResponse, endpoints: Iterable[Any]
    ) -> bool:
        """Apply the leader hint (KIP-951), or request a metadata refresh. Return True if the hint was new."""
        hint = row.current_leader
        if hint is not None and self._cluster.take_hint(
            queue.tp, hint.leader_id, hint.leader_epoch, endpoints
        ):
            return True
        led = self._cluster.known_leader(queue.tp)
        if led is not None:
            self._cluster.forget_leader(queue.tp, led[1])
        return False

    def _split(self, batch: Batch, error: ClientError) -> None:
        settings = self._settings
        batch.last_error = error
        parts = split_batch(
            batch,
            batch_size=settings.batch_size,
            codec=settings.codec,
            level=settings.level,
            transactional=settings.is_transactional,
        )
        batch.queue.split(batch, parts)
        self._accumulator.replace(batch, parts)

    def _out_of_order(self, batch: Batch, error: ClientError) -> None:
        numbering = batch.queue.numbering
        assert numbering is not None, "only numbered batches are out of order"
        if batch.done or not numbering.refused_order(batch):
            self._retry(batch, error)
        else:
            batch.last_error = error
            # It need not wait if it is sent under new numbers.
            batch.not_before_ms = 0

    # Retry or failure

    def _retry(self, batch: Batch, error: ClientError, *, at_once: bool = False) -> None:
        if batch.done or batch.attempts > self._settings.retries:
            self._fail(batch, error)
            return
        batch.last_error = error
        wait_ms = 0.0 if at_once else self._backoff.wait_ms(batch.attempts)
        if isinstance(error, Refused) and error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            wait_ms = min(wait_ms, CONCURRENT_TRANSACTIONS_RETRY_MS)
        batch.not_before_ms = self._clock.monotonic_ms() + int(wait_ms)
        batch.queue.put_back(batch)

    def _fail(self, batch: Batch, error: ClientError) -> None:
        """Fail a batch that is neither in flight nor in its queue."""
        if batch.queue.numbering is not None:
            batch.queue.numbering.dropped(batch)
        if batch.done:
            self._accumulator.release(batch)
            return
        if batch.maybe_written and isinstance(error, Refused):
            error = DeliveryInDoubt(error.code, about=error.about, message=error.message)
        self._accumulator.finish(batch, error)

    def fail(self, batch: Batch, error: Exception) -> None:
        """Fail a batch in any state. If it is in flight, its memory is freed on the response."""
        queue = batch.queue
        queue.remove(batch)
        if batch.numbered and not batch.in_flight and queue.numbering is not None:
            queue.numbering.dropped(batch)
        self._accumulator.finish(batch, error)
        self.settle(queue)

    def expire(self, batch: Batch) -> None:
        """Fail a batch whose delivery.timeout.ms is over."""
        self.fail(batch, self._expiry(batch))

    def _expiry(self, batch: Batch) -> ClientError:
        queue = batch.queue
        topic = self._accumulator.topics.get(queue.tp.topic)
        last = batch.last_error or queue.last_error
        timeout_ms = self._settings.delivery_timeout_ms
        gone = topic is not None and (not topic.known or queue.tp.partition >= topic.count)
        if gone or isinstance(last, UnknownTopic):
            return UnknownTopic(about=f"partition {queue.tp}", message=f"not found within {timeout_ms} ms")
        return DeliveryTimedOut(
            f"{batch.count} records for {queue.tp}",
            timeout_ms=timeout_ms,
            attempts=batch.attempts,
            maybe_written=batch.maybe_written or batch.in_flight,
            last=last,
        )

    def settle(self, queue: PartitionQueue) -> None:
        """Apply what the outcome of one batch means for the other batches of its partition."""
        for batch in queue.settle():
            if not batch.done:
                code = getattr(batch.last_error, "code", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
                self._accumulator.finish(batch, DeliveryInDoubt(code, about=f"partition {queue.tp}"))
        if queue.batches:
            self._schedule(queue)


def _record_errors(batch: Batch, row: PartitionProduceResponse) -> dict[int, Exception] | None:
    """Return the errors of single records in a rejected batch (KIP-467)."""
    if not row.record_errors:
        return None
    return {
        each.batch_index: refused(
            row.error_code,
            about=f"record {each.batch_index} of a batch for {batch.queue.tp}",
            message=each.batch_index_error_message or row.error_message,
        )
        for each in row.record_errors
    }
