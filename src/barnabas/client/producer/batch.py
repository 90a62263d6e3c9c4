"""A batch on its way, from its first record to its end. Pure.

Records go in through the accumulator. The deliveries of its records look here for what became of them; when
the broker finds it too large it gets parts, and they look there.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.client.producer.stamp import Identity, stamped
from barnabas.records.builder import BatchBuilder

if TYPE_CHECKING:
    from barnabas.client.producer.partition_queue import PartitionQueue

NO_OFFSET: Final = -1
NO_TIME: Final = -1
SEQUENCES: Final = 1 << 31


class Batch:
    """`builder` while records go in, `data` from when it is first sent, neither when it is done."""

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
        "place",
        "queue",
        "ready_ms",
        "record_errors",
        "released",
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
        # When it was made, and from when on it may go though it is not full, by the monotonic clock.
        self.created_ms = 0
        self.ready_ms = 0
        self.not_before_ms = 0
        # Its place among those that were sent, the first number counts most; empty before that.
        self.place: tuple[int, ...] = ()
        # Under which numbers it is sent; None as long as it has none.
        self.identity: Identity | None = None
        self.sequence = -1
        self.attempts = 0
        self.in_flight = False
        # A try was not answered, or the answer leaves it open: it may be in the log.
        self.maybe_written = False
        # Refused as out of order though it is first in line: see numbering.py.
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

    # On the way

    @property
    def numbered(self) -> bool:
        return self.identity is not None

    @property
    def next_sequence(self) -> int:
        """The sequence of what comes after it; after 2**31 - 1 comes 0."""
        return (self.sequence + self.count) % SEQUENCES

    def wire_size(self) -> int:
        """Bytes in a request: exact once it is encoded, before that without compression."""
        if self.data is not None:
            return len(self.data)
        assert self.builder is not None, "a batch without content"
        return self.builder.size

    def seal(self) -> bytes:
        """The bytes to send. No record goes in after this."""
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
        """It goes under other numbers: only for what is not in the log."""
        self.identity, self.sequence = None, -1
        self.parked = False
        self.maybe_written = False

    # The end

    @property
    def changed(self) -> bool:
        """Whether it is done or split."""
        return self.done or self.parts is not None

    def finish(self, error: Exception | None = None) -> None:
        assert not self.changed, "a batch ends once"
        # The error first: a thread that sees that it is done must see the error too.
        self.error = error
        self.done = True
        self._call()

    def become(self, parts: "list[Batch]") -> None:
        """It was split: its deliveries are those of the parts from now on."""
        assert not self.changed, "a batch ends once"
        start = 0
        for part in parts:
            self._starts.append(start)
            start += part.count
        assert start == self.count, f"{start} records in the parts of {self.count}"
        self.parts = parts
        self.data = self.builder = None
        self._call()

    def find(self, index: int) -> "tuple[Batch, int]":
        """Where a record is now: the batch and the index in it."""
        batch = self
        while batch.parts is not None:
            at = bisect_right(batch._starts, index) - 1
            index -= batch._starts[at]
            batch = batch.parts[at]
        return batch, index

    def error_of(self, index: int) -> Exception | None:
        """Why a record was not written; only for a batch that is done."""
        if self.record_errors is not None:
            return self.record_errors.get(index, self.error)
        return self.error

    def call_when_changed(self, key: object, callback: Callable[[], None]) -> None:
        """Call it when the batch is done or split, unless it is forgotten before."""
        assert not self.changed, "a batch ends once"
        self._callbacks[key] = callback

    def forget_call(self, key: object) -> None:
        self._callbacks.pop(key, None)

    def _call(self) -> None:
        callbacks, self._callbacks = self._callbacks, {}
        for callback in callbacks.values():
            callback()


def unfinished_part(batch: Batch) -> Batch | None:
    """The batch itself, or the first of its parts that is not done; None if all is."""
    if batch.parts is None:
        return None if batch.done else batch
    for part in batch.parts:
        found = unfinished_part(part)
        if found is not None:
            return found
    return None
