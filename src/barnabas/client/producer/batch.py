"""A batch from its first record to its outcome, and its parts if it has to be split. Pure.

The accumulator appends records. Deliveries read their outcome from the batch, or from its parts if the broker
found it too large and it was split.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.client.producer.stamp import Identity, stamped
from barnabas.records.builder import BatchBuilder
from barnabas.records.codecs import MAX_DECOMPRESSED
from barnabas.records.decode import decode_batch
from barnabas.records.header import HEADER_SIZE, Codec
from barnabas.records.record import Record

if TYPE_CHECKING:
    from barnabas.client.producer.queues import PartitionQueue

NO_OFFSET: Final = -1
NO_TIME: Final = -1
SEQUENCES: Final = 1 << 31


class Batch:
    """Has a `builder` while records are appended, `data` once it is encoded, and neither when it is done."""

    __slots__ = (
        "_callbacks",
        "_starts",
        "append_time_ms",
        "attempts",
        "base_offset",
        "builder",
        "charged",
        "count",
        "created_ms",
        "data",
        "done",
        "error",
        "identity",
        "in_flight",
        "last_error",
        "maybe_written",
        "not_before_ms",
        "parked",
        "parts",
        "queue",
        "ready_ms",
        "record_errors",
        "released",
        "send_order",
        "sequence",
    )

    def __init__(
        self, queue: "PartitionQueue", *, builder: BatchBuilder | None = None, data: bytes | None = None
    ) -> None:
        self.queue = queue
        self.builder = builder
        self.data = data
        self.count = 0
        # Bytes of buffer.memory that it counts for, until they are released.
        self.charged = 0
        self.released = False
        # Monotonic clock: when it was created, when its linger ends, and when its retry backoff ends.
        self.created_ms = 0
        self.ready_ms = 0
        self.not_before_ms = 0
        # Its position in the send order, compared as a tuple; empty before it is first sent.
        self.send_order: tuple[int, ...] = ()
        # Producer id, epoch and sequence; None and -1 until they are assigned.
        self.identity: Identity | None = None
        self.sequence = -1
        self.attempts = 0
        self.in_flight = False
        # An attempt had no response, or an ambiguous one: the batch may be in the log.
        self.maybe_written = False
        # Rejected as out of order although no earlier batch is open: see numbering.py.
        self.parked = False
        self.last_error: Exception | None = None
        self.done = False
        self.error: Exception | None = None
        self.record_errors: dict[int, Exception] | None = None
        self.base_offset = NO_OFFSET
        self.append_time_ms = NO_TIME
        self.parts: list[Batch] | None = None
        self._starts: list[int] = []
        self._callbacks: dict[object, Callable[[], None]] = {}

    # Sending

    @property
    def numbered(self) -> bool:
        return self.identity is not None

    @property
    def next_sequence(self) -> int:
        """Return the sequence that follows this batch; 0 follows 2**31 - 1."""
        return (self.sequence + self.count) % SEQUENCES

    def wire_size(self) -> int:
        """Return its bytes in a request: exact once encoded, before that the uncompressed size."""
        if self.data is not None:
            return len(self.data)
        assert self.builder is not None, "a batch without content"
        return self.builder.size

    def seal(self) -> bytes:
        """Encode the batch and return its bytes. No record can be appended after this."""
        if self.data is None:
            assert self.builder is not None, "a batch without content"
            if self.identity is not None:
                self.builder.number(self.identity.producer_id, self.identity.epoch, self.sequence)
            self.data = self.builder.build()
            self.builder = None
        return self.data

    def number(self, identity: Identity, sequence: int) -> None:
        self.identity, self.sequence = identity, sequence
        if self.data is not None:
            self.data = stamped(self.data, identity, sequence)

    def strip_number(self) -> None:
        """Drop its numbers so that it gets new ones. Only for a batch that is not in the log."""
        self.identity, self.sequence = None, -1
        self.parked = False
        self.maybe_written = False

    # Outcome

    @property
    def changed(self) -> bool:
        """Whether it is done or split."""
        return self.done or self.parts is not None

    def finish(self, error: Exception | None = None) -> None:
        assert not self.changed, "the batch is already done or split"
        # Set the error first: a thread that sees `done` must also see the error.
        self.error = error
        self.done = True
        self._call()

    def become(self, parts: "list[Batch]") -> None:
        """Replace the batch by its parts, which its deliveries then refer to."""
        assert not self.changed, "the batch is already done or split"
        start = 0
        for part in parts:
            self._starts.append(start)
            start += part.count
        assert start == self.count, f"{start} records in the parts of {self.count}"
        self.parts = parts
        self.data = self.builder = None
        self._call()

    def find(self, index: int) -> "tuple[Batch, int]":
        """Return the batch that holds a record now, and its index there."""
        batch = self
        while batch.parts is not None:
            at = bisect_right(batch._starts, index) - 1
            index -= batch._starts[at]
            batch = batch.parts[at]
        return batch, index

    def error_of(self, index: int) -> Exception | None:
        """Return the error of a record, or None. The batch must be done."""
        if self.record_errors is not None:
            return self.record_errors.get(index, self.error)
        return self.error

    def call_when_changed(self, key: object, callback: Callable[[], None]) -> None:
        """Call `callback` when the batch is done or split, unless forget_call() comes first."""
        assert not self.changed, "the batch is already done or split"
        self._callbacks[key] = callback

    def forget_call(self, key: object) -> None:
        self._callbacks.pop(key, None)

    def _call(self) -> None:
        callbacks, self._callbacks = self._callbacks, {}
        for callback in callbacks.values():
            callback()


def unfinished_part(batch: Batch) -> Batch | None:
    """Return the batch, or its first part, that is not done; None if all are."""
    if batch.parts is None:
        return None if batch.done else batch
    for part in batch.parts:
        found = unfinished_part(part)
        if found is not None:
            return found
    return None


def split_batch(
    batch: Batch, *, batch_size: int, codec: Codec, level: int | None, transactional: bool = False
) -> list[Batch]:
    """Split into two or more batches of at most batch.size and half the uncompressed size."""
    assert batch.count > 1, "a batch of one record cannot be split"
    assert batch.data is not None, "only a sent batch is split"
    records = decode_batch(batch.data)
    (whole,) = _filled(records, MAX_DECOMPRESSED, Codec.NONE, None, transactional)
    limit = min(batch_size, HEADER_SIZE + (whole.size - HEADER_SIZE) // 2)
    return [_part(batch, builder) for builder in _filled(records, limit, codec, level, transactional)]


def _filled(
    records: list[Record], limit: int, codec: Codec, level: int | None, transactional: bool
) -> list[BatchBuilder]:
    builders: list[BatchBuilder] = []
    for record in records:
        if not builders or not builders[-1].append(
            record.timestamp, record.key, record.value, record.headers
        ):
            builders.append(
                BatchBuilder(max_bytes=limit, codec=codec, level=level, transactional=transactional)
            )
            builders[-1].append(record.timestamp, record.key, record.value, record.headers)
    return builders


def _part(batch: Batch, builder: BatchBuilder) -> Batch:
    part = Batch(batch.queue, data=builder.build())
    part.count = builder.count
    part.attempts = batch.attempts
    part.maybe_written = batch.maybe_written
    part.last_error = batch.last_error
    return part
