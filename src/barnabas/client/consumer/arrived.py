"""The unread data of one partition in one fetch response."""

from typing import Final

from barnabas.client.consumer.decode import BatchReader
from barnabas.client.consumer.message import Message


class Arrived:
    """`data[start:whole]` holds complete batches of this partition; the rest of `data` is ignored."""

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
        # The offset after the last complete batch, and the leader epoch of that batch.
        self.next_offset: Final = next_offset
        self.last_epoch: Final = last_epoch
        # The end offset of the log for this reader at the time of the response.
        self.end_offset: Final = end_offset
        # (first offset, producer id) of aborted transactions.
        self.aborted: Final = aborted
        # The source broker: buffered bytes are counted per broker.
        self.node: Final = node
        self.begun = False
        self.reader: BatchReader | None = None
        # Decoded messages that were not read because the partition was paused.
        self.rest: list[Message] = []

    @property
    def size(self) -> int:
        """Bytes held in memory."""
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
