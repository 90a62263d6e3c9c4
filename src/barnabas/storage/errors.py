"""Errors of logs. Each carries its facts; the server's table maps them to wire codes.

Code that meets an OSError does not wrap it: LogManager decides whether the log, the directory or nothing goes
offline, because only it knows what else is on that disk.
"""

from errno import EDQUOT, ENOSPC

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition
from barnabas.records.header import NO_TIMESTAMP


def is_full(error: OSError) -> bool:
    """Whether the disk or the user's quota is full, which is temporary."""
    return error.errno in (ENOSPC, EDQUOT)


class StorageError(BarnabasError):
    """The root of all errors of this package."""


class OffsetOutOfRange(StorageError):
    """A read, a lookup or a deletion outside of the log's offsets."""

    def __init__(self, *, requested: int, start: int, end: int) -> None:
        super().__init__(f"offset {requested} is outside [{start}, {end}]")
        self.requested = requested
        self.start = start
        self.end = end


class UnexpectedOffset(StorageError):
    """A follower received batches that overlap its log."""

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(f"batch starts at offset {found}, but the log ends at {expected}")
        self.expected = expected
        self.found = found


class CorruptLog(StorageError):
    """Flushed data is damaged: truncating it would lose acknowledged records."""

    def __init__(self, path: str, *, position: int, what: str) -> None:
        super().__init__(f"{path} is damaged at byte {position}: {what}")
        self.path = path
        self.position = position


class CorruptFile(StorageError):
    """A small file (checkpoint, snapshot, index, properties) has invalid content."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = path


class DirectoryOffline(StorageError):
    """A log directory has failed; its logs are offline until it is repaired and the broker restarted."""

    def __init__(self, directory: str, why: str) -> None:
        super().__init__(f"log directory {directory} is offline: {why}")
        self.directory = directory
        self.why = why


class LogFailed(StorageError):
    """A file of this log, or our code, failed. The log is offline until the next start recovers it."""

    def __init__(self, tp: TopicPartition, why: str) -> None:
        super().__init__(f"log {tp} is offline: {why}")
        self.tp = tp


class LogClosed(StorageError):
    """The log was closed or deleted while it was in use."""

    def __init__(self, name: str) -> None:
        super().__init__(f"log {name} is closed")


class DiskFull(StorageError):
    """The disk has no room for a write. Nothing was written; reads still work."""

    def __init__(self, directory: str) -> None:
        super().__init__(f"the disk of log directory {directory} is full")
        self.directory = directory


class Shortage(StorageError):
    """The process ran out of descriptors or memory. The disk is fine, so the operation can be retried."""

    def __init__(self, directory: str, why: str) -> None:
        super().__init__(f"log directory {directory} could not be used: {why}")
        self.directory = directory


class LogExists(StorageError):
    """Two directories for one partition."""

    def __init__(self, tp: TopicPartition, first: str, second: str) -> None:
        super().__init__(f"partition {tp} has a log in {first} and another in {second}")


# Batches that are valid in themselves but break a setting of the topic


class BatchTooLarge(StorageError):
    """The batch exceeds the limit of the topic, or does not fit into a segment."""

    def __init__(self, *, size: int, limit: int, setting: str) -> None:
        super().__init__(f"batch size {size} exceeds the limit of {limit} bytes ({setting})")
        self.size = size
        self.limit = limit


class InvalidTimestamp(StorageError):
    """The timestamp is too far from the broker's clock; [earliest, latest] is allowed."""

    def __init__(self, *, timestamp: int, now_ms: int, before_ms: int, after_ms: int) -> None:
        is_early = timestamp < now_ms
        setting = "message.timestamp.before.max.ms" if is_early else "message.timestamp.after.max.ms"
        limit = before_ms if is_early else after_ms
        super().__init__(
            f"timestamp {timestamp} is {abs(now_ms - timestamp)} ms {'behind' if is_early else 'ahead of'} "
            f"the broker's clock, the limit is {limit} ms ({setting})"
        )
        self.timestamp = timestamp
        self.earliest = now_ms - before_ms
        self.latest = now_ms + after_ms

    def allows(self, timestamp: int) -> bool:
        return timestamp == NO_TIMESTAMP or self.earliest <= timestamp <= self.latest


class MissingKey(StorageError):
    """A compacted topic cannot keep a record without a key."""

    def __init__(self, *, record: int) -> None:
        super().__init__(f"record {record} of the batch has no key, but the topic is compacted")
        self.record = record
