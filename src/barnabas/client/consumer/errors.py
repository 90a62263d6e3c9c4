"""Errors of consumers.

The errors about offsets, records and topics stop their partition and are raised by the reader once. The
partition stays stopped until seek(), resume() or assign(); other partitions are still read.
"""

from barnabas.base.ids import TopicPartition, Uuid, format_uuid
from barnabas.client.errors import ClientError


class NoOffset(ClientError):
    """The offset is out of range, or there is no start offset, and auto.offset.reset is none."""

    def __init__(self, tp: TopicPartition, offset: int | None, start: int, end: int) -> None:
        asked = "no start offset" if offset is None else f"offset {offset} is out of range"
        super().__init__(f"{tp}: {asked}: the log is from {start} to {end} and auto.offset.reset is none")
        self.tp = tp
        self.offset = offset
        self.start = start
        self.end = end


class CorruptRecords(ClientError):
    """A corrupt batch. The position stays before it.

    `next_offset` is the offset after the batch according to its header: seek() there skips the batch. None if
    the header is corrupt.
    """

    def __init__(self, tp: TopicPartition, offset: int, why: str, next_offset: int | None = None) -> None:
        further = "" if next_offset is None else f"; seek to {next_offset} to skip the batch"
        super().__init__(f"{tp}: the records at offset {offset} are corrupt: {why}{further}")
        self.tp = tp
        self.offset = offset
        self.why = why
        self.next_offset = next_offset


class LogTruncated(ClientError):
    """The log of a new leader lacks records that were read, and auto.offset.reset is none. (KIP-320)

    `diverged_at` is the first offset that may hold a different record now; None if the leader cannot tell.
    """

    def __init__(self, tp: TopicPartition, offset: int, diverged_at: int | None) -> None:
        to = "" if diverged_at is None else f" to offset {diverged_at}"
        super().__init__(f"{tp}: the log was truncated{to}, below the position {offset}")
        self.tp = tp
        self.offset = offset
        self.diverged_at = diverged_at


class TopicRecreated(ClientError):
    """The topic was deleted and recreated. Call assign() again to read the new topic."""

    def __init__(self, tp: TopicPartition, was: Uuid, now: Uuid) -> None:
        ids = f"from {format_uuid(was)} to {format_uuid(now)}"
        super().__init__(f"{tp}: topic {tp.topic} was recreated: its id changed {ids}")
        self.tp = tp
        self.was = was
        self.now = now


class NotAssigned(ClientError):
    """The partition is not assigned to this consumer."""

    def __init__(self, tp: TopicPartition) -> None:
        super().__init__(f"{tp} is not assigned")
        self.tp = tp


class NoArrow(ClientError):
    """arrow() needs pyarrow, which is not installed."""

    def __init__(self) -> None:
        super().__init__("arrow() needs pyarrow: pip install 'barnabas[arrow]'")
