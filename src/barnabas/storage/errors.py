"""What can go wrong with a log. Each carries its facts; the server's table gives them wire codes.

An OSError is not wrapped by the code that meets it: the directory's owner turns it into DirectoryOffline,
because only the owner knows what else lies on that disk.
"""

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition


class StorageError(BarnabasError):
    """Something about a log that has a name."""


class OffsetOutOfRange(StorageError):
    """A read, a lookup or a deletion outside of what the log holds."""

    def __init__(self, *, requested: int, start: int, end: int) -> None:
        super().__init__(f"offset {requested} is outside [{start}, {end}]")
        self.requested = requested
        self.start = start
        self.end = end


class UnexpectedOffset(StorageError):
    """A follower was given batches that do not continue its log."""

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(f"the log ends at {expected}, and a batch for offset {found} was to be appended")
        self.expected = expected
        self.found = found


class CorruptLog(StorageError):
    """Damage in data that was flushed before: cutting it off would lose records that were promised."""

    def __init__(self, path: str, *, position: int, what: str) -> None:
        super().__init__(f"{path} is damaged at byte {position}: {what}")
        self.path = path
        self.position = position


class CorruptFile(StorageError):
    """A small file (checkpoint, snapshot, index, properties) does not hold what it must."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = path


class DirectoryOffline(StorageError):
    """A log directory has failed; its logs serve nothing until it is mended and the broker started again."""

    def __init__(self, directory: str, why: str) -> None:
        super().__init__(f"log directory {directory} is offline: {why}")
        self.directory = directory
        self.why = why


class LogFailed(StorageError):
    """A log met a mistake of ours and serves nothing until the next start, which recovers it."""

    def __init__(self, tp: TopicPartition, why: str) -> None:
        super().__init__(f"log {tp} is offline: {why}")
        self.tp = tp


class LogClosed(StorageError):
    """The log was closed or deleted while it was in use."""

    def __init__(self, name: str) -> None:
        super().__init__(f"log {name} is closed")


class DiskFull(StorageError):
    """There is no room for what was to be written. Nothing was; what is there can be read."""

    def __init__(self, directory: str) -> None:
        super().__init__(f"the disk of log directory {directory} is full")
        self.directory = directory


class LogExists(StorageError):
    """Two directories for one partition."""

    def __init__(self, tp: TopicPartition, first: str, second: str) -> None:
        super().__init__(f"there is a log of {tp} in {first} and another in {second}")
