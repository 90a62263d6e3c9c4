"""Interfaces of the shell: shards, which decide, and the partitions that are their logs."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from barnabas.base.errors import BarnabasError
from barnabas.coordinators.decision.outcome import EndMarker, InTransaction, Now, Outcome, Record
from barnabas.coordinators.decision.timers import TimerKey, Timers
from barnabas.coordinators.runtime.writing import NextBatch
from barnabas.protocol.error_codes import ErrorCode


class Shard(Protocol):
    """The state of one partition. Only apply() and replay() change the state that records describe."""

    @property
    def timers(self) -> Timers: ...

    def __len__(self) -> int:
        """The number of groups or transactional ids."""

    def replay(self, batch: bytes) -> None:
        """Apply a batch of the log while loading. Malformed if it cannot be decoded."""

    def loaded(self, now: Now) -> Outcome:
        """Called when all batches have been replayed."""

    def apply(self, record: Record) -> None:
        """Apply a record of an Outcome that is in the log."""

    def expire(self, key: TimerKey, now: Now) -> Outcome:
        """A timer has expired."""

    def abandon(self, code: ErrorCode) -> Outcome:
        """The shard is closed: answer all pending requests, write nothing."""


AnyShard = TypeVar("AnyShard", bound=Shard)


class CannotWrite(BarnabasError):
    """The append failed, or this broker may no longer be the leader. `code` is the error for pending
    requests.

    `is_logged` if the disk failed: its log directory has logged that once for all logs.
    """

    def __init__(self, code: ErrorCode, why: str, *, is_logged: bool = False) -> None:
        super().__init__(why)
        self.code = code
        self.is_logged = is_logged


class RefusedByLog(BarnabasError):
    """The log refused a transactional batch or marker, such as for a stale epoch or a replaced
    coordinator."""

    def __init__(self, code: ErrorCode, why: str) -> None:
        super().__init__(why)
        self.code = code


class LedPartition(Protocol):
    """A partition of an internal topic while this broker leads it."""

    # Called when the committed offset has moved. The host of the shard sets it.
    on_committed: Callable[[], None] | None

    @property
    def name(self) -> str:
        """The name for log lines: __consumer_offsets-7."""

    @property
    def leader_epoch(self) -> int:
        """The epoch of our leadership."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def committed_offset(self) -> int:
        """The high watermark."""

    @property
    def batch_bytes_max(self) -> int:
        """Maximum size of a batch."""

    def next_batch(self) -> NextBatch:
        """The base offset and limits of the next batch."""

    def append(self, batch: bytes, now_ms: int, stamp: InTransaction | EndMarker | None = None) -> int:
        """Append one batch and return the next offset. CannotWrite if the append fails.

        With a stamp, the batch belongs to a transaction or is the marker that ends it: RefusedByLog if the
        log does not accept it.
        """

    async def read(self, offset: int, bytes_max: int) -> tuple[bytes, int]:
        """Batches from `offset` on, at least one unless at the end, and the offset after them."""
