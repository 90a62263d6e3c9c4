"""Errors for batches that are valid in themselves but break a setting of the topic."""

from barnabas.records.header import NO_TIMESTAMP
from barnabas.storage.errors import StorageError


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
