"""What one answer brought for one partition, until it is read."""

from typing import Final

from barnabas.client.consumer.decode import BatchReader
from barnabas.client.consumer.message import Message


class Arrived:
    """`data[start:whole]` is whole batches of this partition. What else is in `data` is not looked at."""

    __slots__ = (
        "aborted",
        "begun",
        "data",
        "end_offset",
        "from_offset",
        "last_epoch",
        "next_offset",
        "node",
        "reader",
        "rest",
        "start",
        "whole",
    )

    def __init__(
        self,
        *,
        data: bytes,
        start: int = 0,
        whole: int,
        from_offset: int,
        next_offset: int,
        last_epoch: int,
        end_offset: int,
        aborted: list[tuple[int, int]],
        node: int,
    ) -> None:
        self.data: Final = data
        self.start: Final = start
        self.whole: Final = whole
        self.from_offset: Final = from_offset
        # After the last whole batch, and the leader epoch of that batch.
        self.next_offset: Final = next_offset
        self.last_epoch: Final = last_epoch
        # Where the log ended for this reader when the answer was made.
        self.end_offset: Final = end_offset
        # (first offset, producer id) of the transactions to leave out.
        self.aborted: Final = aborted
        # Which broker it came from: the bytes are counted by broker.
        self.node: Final = node
        self.begun = False
        self.reader: BatchReader | None = None
        # Messages that were made and not read, because the partition was paused.
        self.rest: list[Message] = []

    @property
    def size(self) -> int:
        """What it keeps in memory."""
        return len(self.data)

    def open(self, topic: str, partition: int, *, check_crc: bool) -> BatchReader:
        if self.reader is None:
            self.reader = BatchReader(
                topic,
                partition,
                self.data,
                self.start,
                self.whole,
                self.from_offset,
                check_crc,
                self.aborted,
            )
        return self.reader
