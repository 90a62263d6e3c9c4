"""What the shell is given: shards that decide, and the partitions that are their logs."""

from typing import Protocol, TypeVar

from barnabas.base.errors import BarnabasError
from barnabas.coordinators.decision.outcome import EndMarker, InTransaction, Now, Outcome, Record
from barnabas.coordinators.decision.timers import TimerKey, Timers
from barnabas.coordinators.runtime.place import Place
from barnabas.protocol.error_codes import ErrorCode


class Shard(Protocol):
    """The state that one partition tells of. Only apply() and replay() change what a record tells of."""

    @property
    def timers(self) -> Timers: ...

    def __len__(self) -> int:
        """How many it keeps of what it keeps: groups, transactional ids."""

    def replay(self, batch: bytes) -> None:
        """Take a batch of the log, while loading. Malformed if it is not one of ours."""

    def loaded(self, now: Now) -> Outcome:
        """All batches have been replayed."""

    def apply(self, record: Record) -> None:
        """A record of an Outcome is in the log."""

    def expire(self, key: TimerKey, now: Now) -> Outcome:
        """The time of a key has come."""

    def abandon(self, code: ErrorCode) -> Outcome:
        """The shard goes away. Everybody who waits is told, nothing is written."""


AnyShard = TypeVar("AnyShard", bound=Shard)


class CannotWrite(BarnabasError):
    """The log took nothing, or may not be the one that counts any more. What the waiting are to be told.

    If the disk is the reason, its owner has logged it, once for all who write there.
    """

    def __init__(self, code: ErrorCode, why: str, *, is_logged: bool = False) -> None:
        super().__init__(why)
        self.code = code
        self.is_logged = is_logged


class RefusedByLog(BarnabasError):
    """The log does not take what a producer's transaction brings: a stale epoch, a replaced coordinator."""

    def __init__(self, code: ErrorCode, why: str) -> None:
        super().__init__(why)
        self.code = code


class LedPartition(Protocol):
    """A partition of an internal topic, for as long as this broker leads it."""

    @property
    def name(self) -> str:
        """For the log: __consumer_offsets-7."""

    @property
    def leader_epoch(self) -> int:
        """In which we lead it."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def committed_offset(self) -> int:
        """The high watermark: what lies before it is on all replicas that count."""

    @property
    def batch_bytes_max(self) -> int:
        """How large a batch may be."""

    def place(self) -> Place:
        """Where the next batch goes."""

    def append(self, batch: bytes, now_ms: int) -> int:
        """Append one batch, and return the offset after it. CannotWrite if that is not possible."""

    def append_stamped(self, batch: bytes, now_ms: int, stamp: InTransaction | EndMarker) -> int:
        """Append a batch of a producer's transaction, or the marker that ends it.

        RefusedByLog if it must not be there, CannotWrite as with append().
        """

    async def read(self, offset: int, bytes_max: int) -> tuple[bytes, int]:
        """Batches from that offset on, the first in any case; none at the end."""
