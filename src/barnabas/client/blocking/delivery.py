"""The outcome of a record sent by a thread: like a concurrent.futures.Future, but lighter.

The event loop fills it in: it first holds the record, then the async delivery or the error. Waiting needs a
round trip to the loop; reading a known outcome does not.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from barnabas.client.producer.delivery import Delivered
from barnabas.client.producer.delivery import Delivery as AsyncDelivery
from barnabas.records.record import Header


class QueuedRecord(NamedTuple):
    """A record on its way to the loop: the arguments of send()."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp_ms: int | None
    headers: Sequence[Header]


class DeliveryWaiter(Protocol):
    """Waits for deliveries: RecordQueue in record_queue.py."""

    def wait_for(self, delivery: "Delivery", timeout: float | None) -> None: ...

    def call_when_done(self, delivery: "Delivery", callback: "Callable[[Delivery], object]") -> None: ...


class Delivery:
    """The outcome of one record, or of the table rows in one batch."""

    __slots__ = ("_waiter", "callbacks", "error", "inner", "record")

    def __init__(
        self,
        waiter: DeliveryWaiter,
        *,
        record: QueuedRecord | None = None,
        inner: AsyncDelivery | None = None,
    ) -> None:
        self._waiter = waiter
        # Only the loop thread changes these: `record` becomes None when `inner` or `error` is set.
        self.record = record
        self.inner = inner
        self.error: Exception | None = None
        self.callbacks: list[Callable[[Delivery], object]] | None = None

    def done(self) -> bool:
        return self.error is not None or (self.inner is not None and self.inner.done())

    def result(self, timeout: float | None = None) -> Delivered:
        """Return the record's position or raise its error; TimeoutError after `timeout` seconds."""
        error = self.exception(timeout)
        if error is not None:
            # Many records share one error object: do not accumulate their tracebacks.
            raise error.with_traceback(None)
        assert self.inner is not None, "a delivery without an error was sent"
        return self.inner.result()

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Return the error, None if the record was delivered; waits like result()."""
        if not self.done():
            self._waiter.wait_for(self, timeout)
        if self.error is not None:
            return self.error
        assert self.inner is not None, "a delivery without an error was sent"
        return self.inner.exception()

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """Call `callback` with this delivery in the loop thread when it is done. It must not block."""
        self._waiter.call_when_done(self, callback)
