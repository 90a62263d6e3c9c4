"""Why a leader refuses a batch that is sound in itself."""

from barnabas.records.timestamp import NO_TIMESTAMP
from barnabas.storage.errors import StorageError


class BatchTooLarge(StorageError):
    """More bytes than one batch of this topic may have, or than a segment holds."""

    def __init__(self, *, size: int, limit: int, setting: str) -> None:
        super().__init__(f"a batch of {size} bytes is above {setting} = {limit}")
        self.size = size
        self.limit = limit


class InvalidTimestamp(StorageError):
    """Further from the broker's clock than the topic allows: a record must be of [earliest, latest]."""

    def __init__(self, *, timestamp: int, now_ms: int, before_ms: int, after_ms: int) -> None:
        is_early = timestamp < now_ms
        setting = "message.timestamp.before.max.ms" if is_early else "message.timestamp.after.max.ms"
        limit = before_ms if is_early else after_ms
        super().__init__(
            f"timestamp {timestamp} is {abs(now_ms - timestamp)} ms off, above {setting} = {limit}"
        )
        self.timestamp = timestamp
        self.earliest = now_ms - before_ms
        self.latest = now_ms + after_ms

    def allows(self, timestamp: int) -> bool:
        return timestamp == NO_TIMESTAMP or self.earliest <= timestamp <= self.latest


class MissingKey(StorageError):
    """A compacted topic cannot keep a record without a key."""

    def __init__(self, *, record: int) -> None:
        super().__init__(f"record {record} of the batch has no key, and the topic is compacted")
        self.record = record
