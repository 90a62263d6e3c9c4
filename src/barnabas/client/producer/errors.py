"""Errors of sending records, in addition to the errors of every request."""

from collections.abc import Sequence
from typing import Any

from barnabas.client.errors import ClientError, Refused
from barnabas.protocol.error_codes import ErrorCode


class NotStarted(ClientError):
    """The producer was used before start()."""

    def __init__(self) -> None:
        super().__init__("the producer is not started: use `async with`, or call start() first")


class BufferFull(ClientError):
    """No memory was free for the record within max.block.ms; it was not taken.

    If a table was being sent, `deliveries` are those of its rows that were taken before.
    """

    retriable = True

    def __init__(self, *, needed: int, used: int, limit: int, waited_ms: float) -> None:
        super().__init__(
            f"no room for {needed} bytes after {waited_ms:.0f} ms: {used} of buffer.memory={limit} in use"
        )
        self.needed = needed
        self.used = used
        self.limit = limit
        self.waited_ms = waited_ms
        self.deliveries: Sequence[Any] = ()


class TopicNotReady(ClientError):
    """try_send() does not wait, and the topic's metadata is not known yet. A lookup has been started."""

    retriable = True

    def __init__(self, topic: str) -> None:
        super().__init__(f"metadata of topic {topic} is not available yet; a lookup is in progress")
        self.topic = topic


class RecordTooLarge(ClientError):
    """The record exceeds max.request.size or buffer.memory; it was not taken."""

    def __init__(self, *, size: int, limit: int, setting: str) -> None:
        super().__init__(f"record of {size} bytes exceeds {setting}={limit}")
        self.size = size
        self.limit = limit
        self.setting = setting


class BadPartition(ClientError):
    """A partitioner, or a column of a table, chose a partition that the topic does not have."""

    def __init__(self, topic: str, partition: object, count: int) -> None:
        super().__init__(f"partition {partition!r} does not exist: topic {topic} has {count} partitions")
        self.topic = topic
        self.partition = partition
        self.count = count


class DeliveryTimedOut(ClientError):
    """Not acknowledged within delivery.timeout.ms. If `maybe_written`, the records may be in the log."""

    def __init__(
        self, about: str, *, timeout_ms: int, attempts: int, maybe_written: bool, last: Exception | None
    ) -> None:
        tries = "never sent" if attempts == 0 else f"sent {attempts} times"
        doubt = ", may have been written" if maybe_written else ""
        super().__init__(
            f"{about}: not acknowledged within {timeout_ms} ms, {tries}{doubt}"
            + (f"; last error: {last}" if last is not None else "")
        )
        self.about = about
        self.timeout_ms = timeout_ms
        self.attempts = attempts
        self.maybe_written = maybe_written
        self.last = last


class DeliveryInDoubt(Refused):
    """The broker rejected the batch, but an earlier attempt had no response: it may be in the log.

    The records are not sent again: under a new producer id they could be written twice.
    """

    def __init__(self, code: ErrorCode, *, about: str, message: str | None = None) -> None:
        doubt = "an earlier attempt may have been written"
        super().__init__(code, about=about, message=f"{message}; {doubt}" if message else doubt)
        self.retriable = False


class ProducerCrashed(ClientError):
    """A bug: an internal task of the producer failed. `__cause__` is its error."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"internal error in the producer: {error!r}")
        self.__cause__ = error
