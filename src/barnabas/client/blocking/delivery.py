"""What a thread holds of a record that it sent: like a concurrent.futures.Future, but light.

A delivery is filled in by the loop: first it has the record, then the async delivery or the error. Waiting
for it costs a turn of the loop, and asking for what is known already costs nothing.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from barnabas.client.producer.delivery import Delivered
from barnabas.client.producer.delivery import Delivery as AsyncDelivery
from barnabas.records.record import Header


class Handed(NamedTuple):
    """A record on its way to the loop: the arguments of send()."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp_ms: int | None
    headers: Sequence[Header]


class Waits(Protocol):
    """What can wait for a delivery: handover.py."""

    def wait_for(self, delivery: "Delivery", timeout: float | None) -> None: ...

    def call_when_done(self, delivery: "Delivery", callback: "Callable[[Delivery], object]") -> None: ...


class Delivery:
    """The word of one record, or of the rows of a table that went together."""

    __slots__ = ("_waits", "callbacks", "error", "inner", "record")

    def __init__(
        self, waits: Waits, *, record: Handed | None = None, inner: AsyncDelivery | None = None
    ) -> None:
        self._waits = waits
        # Only the loop's thread changes these: the record goes when one of the other two comes.
        self.record = record
        self.inner = inner
        self.error: Exception | None = None
        self.callbacks: list[Callable[[Delivery], object]] | None = None

    def done(self) -> bool:
        return self.error is not None or (self.inner is not None and self.inner.done())

    def result(self, timeout: float | None = None) -> Delivered:
        """Where the record is; its error if it was not delivered; TimeoutError after so many seconds."""
        error = self.exception(timeout)
        if error is not None:
            # One error is raised for many records: without the traces of the others.
            raise error.with_traceback(None)
        assert self.inner is not None, "what has no error was sent"
        return self.inner.result()

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Why it was not delivered, None if it was; waits as result() does."""
        if not self.done():
            self._waits.wait_for(self, timeout)
        if self.error is not None:
            return self.error
        assert self.inner is not None, "what has no error was sent"
        return self.inner.exception()

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """Call it with this delivery when it is done, in the loop's thread: it must not wait."""
        self._waits.call_when_done(self, callback)
