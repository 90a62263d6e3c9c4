"""Why a leader refuses a batch that is sound in itself."""

from barnabas.storage.errors import StorageError


class BatchTooLarge(StorageError):
    """More bytes than one batch of this topic may have, or than a segment holds."""

    def __init__(self, *, size: int, limit: int, setting: str) -> None:
        super().__init__(f"a batch of {size} bytes is above {setting} = {limit}")
        self.size = size
        self.limit = limit


class InvalidTimestamp(StorageError):
    """Further from the broker's clock than the topic allows."""

    def __init__(self, *, timestamp: int, now_ms: int, setting: str, limit: int) -> None:
        super().__init__(
            f"timestamp {timestamp} is {abs(now_ms - timestamp)} ms off, above {setting} = {limit}"
        )
        self.timestamp = timestamp


class MissingKey(StorageError):
    """A compacted topic cannot keep a record without a key."""

    def __init__(self, *, record: int) -> None:
        super().__init__(f"record {record} of the batch has no key, and the topic is compacted")
        self.record = record
